"""A bar on the standard error for what takes long; nothing where that is not a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_WIDTH = 30
_EVERY_S = 0.1


class Progress:
    """``with Progress("verify") as progress: progress(done, total)``.

    >>> with Progress("verify", unit="B") as progress:
    ...     verify_log(path, progress)
    """

    def __init__(self, what: str, unit: str = "B") -> None:
        self._what = what
        self._unit = unit
        self._shown = sys.stderr.isatty()
        self._start = time.monotonic()
        self._next = 0.0
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Draw, at most ten times a second."""
        now = time.monotonic()
        if not self._shown or (now < self._next and done < total):
            return
        self._next = now + _EVERY_S
        part = min(done / total, 1.0) if total else 1.0
        rate = done / max(now - self._start, 1e-9)
        bar = ("#" * int(part * _WIDTH)).ljust(_WIDTH, ".")
        print(f"\r{self._what} [{bar}] {part:4.0%} {_short(rate)}{self._unit}/s ", end="", file=sys.stderr, flush=True)
        self._drawn = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _short(number: float) -> str:
    for unit in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} T"
