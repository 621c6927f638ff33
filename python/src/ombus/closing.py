"""The `with` statement for everything that has a close()."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

_Self = TypeVar("_Self", bound="Closing")


class Closing:
    """Closes itself at the end of a `with` block."""

    __slots__ = ()

    def close(self) -> None:
        """Let go of what this holds; may be called twice."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
