"""The code in the package's README does what it says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.DOTALL)


def test_a_ring(uri):
    code = blocks()[0]
    result = run("-c", code.replace("shm://engine-0", uri))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Record(seq=1, type=1, payload=b'hello')\n"


def test_spark(tmp_path):
    result = run("-c", blocks()[1].replace("/var/ombus/", f"{tmp_path}/"))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[3:5] == ["|      1|       1|  hello|", "|      2|       1|  world|"]
