"""docs/cli.md says what the command knows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ombus.cli.main import parser

ROOT = Path(__file__).parents[2]


def test_the_document_is_up_to_date():
    result = subprocess.run(
        [sys.executable, ROOT / "project/scripts/cli_docs.py", "--check"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("group", ["ring", "log", "lag"])
def test_every_group_is_in_it(group):
    assert f"## ombus {group}" in (ROOT / "docs/cli.md").read_text()


def test_every_command_has_a_format():
    commands = (ROOT / "docs/cli.md").read_text().split("\n## ")[1:]
    assert len(commands) > 14
    for command in commands:
        assert "`--format text \\| json" in command, command.splitlines()[0]


def test_help_is_printed(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["log", "--help"])
    shown = capsys.readouterr().out
    for name in ("info", "tail", "dump", "verify", "repair", "export", "import", "prune", "consumers"):
        assert re.search(rf"\n +{name}\s", shown), name
