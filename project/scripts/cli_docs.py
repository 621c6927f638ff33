"""Writes docs/cli.md from the definitions of the `ombus` command: python project/scripts/cli_docs.py [--check]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from ombus.cli.main import parser

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/cli.md"

HEAD = """\
# The `ombus` command

Made by `python project/scripts/cli_docs.py` from the command's own definitions; a test compares the two.

Every command takes `--format json` for programs: one document on one line, or one per record where it prints records.
A log is named by its directory or its address (`log:///var/ombus/engine-0`), a ring by its address (`shm://engine-0`).
What takes long draws a bar on the standard error when that is a terminal.

Exit codes: 0 done; 1 the operation failed or found damage (one line on the standard error says why and what to do);
2 wrong usage; 130 interrupted.
"""


def commands(command: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands that can be run, in order."""
    groups = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield command
    for group in groups:
        for child in group.choices.values():
            yield from commands(child)


def rows(command: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """(argument, meaning)."""
    for action in command._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        name = action.option_strings[0] if action.option_strings else action.metavar or action.dest
        values = action.metavar
        if action.choices:
            values = " \\| ".join(map(str, action.choices))
        elif action.nargs != 0 and values is None:
            values = action.dest.upper()
        if isinstance(values, tuple):
            values = " ".join(values)
        argument = f"{name} {values}" if action.option_strings and action.nargs != 0 else str(name)
        if action.nargs in ("*", "+"):
            argument += " ..."
        yield argument, action.help or ""


def usage(command: argparse.ArgumentParser) -> str:
    """The call without its options."""
    parts = [command.prog]
    for action in command._actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest)
            parts.append({"*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name))
    return " ".join(parts)


def document() -> str:
    """The whole text."""
    parts = [HEAD]
    for command in commands(parser()):
        parts.append(f"\n## {command.prog}\n\n`{usage(command)}`: {command.description}.\n\n")
        parts.append("| argument | meaning |\n|---|---|\n")
        parts += [f"| `{argument}` | {meaning} |\n" for argument, meaning in rows(command)]
    return "".join(parts)


def main(arguments: list[str]) -> int:
    text = document()
    if arguments == ["--check"]:
        if DOCUMENT.read_text() == text:
            return 0
        print("docs/cli.md is not what the command says: run python project/scripts/cli_docs.py", file=sys.stderr)
        return 1
    DOCUMENT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
