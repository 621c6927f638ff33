"""Fixtures that every test may use: ring names of their own, and child processes that never outlive the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SHM = Path("/dev/shm")


@pytest.fixture
def uri() -> Iterator[str]:
    """Address of a ring that nobody else uses; whatever has its name in the end is removed."""
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    yield f"shm://{name}"
    (SHM / f"om-bus-{name}").unlink(missing_ok=True)


@pytest.fixture
def shm_file(uri: str) -> Path:
    """The file behind `uri`, to damage it or to put something else in its place."""
    return SHM / f"om-bus-{uri.removeprefix('shm://')}"


class Child:
    """A Python program in a process of its own, which talks to the test in lines."""

    def __init__(self, code: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line it prints; fails with its error output when it ends instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the child ended: {self.process.communicate()[1]}")
        return line.rstrip("\n")

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def wait_until_asleep(self) -> None:
        """Until its main thread sleeps in the kernel, as it does when it waits for room or for a record."""
        stat = Path(f"/proc/{self.pid}/task/{self.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.001)

    def finish(self) -> str:
        """Wait for its end, which must be a good one, and return what else it printed."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()  # not communicate(): it would miss what line() has read ahead
        errors = self.process.communicate()[1]
        assert self.process.returncode == 0, errors
        return output


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    """child(code, *arguments) starts a Child."""
    children: list[Child] = []

    def start(code: str, *arguments: str) -> Child:
        children.append(Child(code, *arguments))
        return children[-1]

    yield start
    for one in children:
        if one.process.poll() is None:
            one.kill()
        one.process.communicate()


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Where a log of this test may be; not made yet."""
    return tmp_path / "log"


@pytest.fixture
def log_uri(log_dir: Path) -> str:
    """The address of that log."""
    return f"log://{log_dir}"
