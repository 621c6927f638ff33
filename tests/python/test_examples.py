"""Examples and code in documents do what they say."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_ring_numpy_producer():
    result = run(ROOT / "examples/ring_numpy_producer.py")
    assert result.returncode == 0, result.stdout + result.stderr
    published, read = result.stdout.splitlines()
    assert published.startswith("published 1000000 ticks, volume ")
    assert read == published.replace("published", "read")
    assert published in (ROOT / "examples/README.md").read_text()


def test_log_quickstart(tmp_path):
    for arguments in ((), (tmp_path / "trades",)):
        result = run(ROOT / "examples/log_quickstart.py", *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout in (ROOT / "examples/README.md").read_text()


def test_wrong_arguments_show_the_usage():
    result = run(ROOT / "examples/ring_numpy_producer.py", "fly")
    assert result.returncode == 1
    assert "terminal 1" in result.stderr


def test_the_package_s_readme(uri):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.DOTALL)
    result = run("-c", code.replace("shm://engine-0", uri))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Record(seq=1, type=1, payload=b'hello')\n"
