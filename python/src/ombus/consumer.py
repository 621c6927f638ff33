"""The reading side of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._native import Record
from .batch import RecordBatch
from .closing import Closing
from .uri import StreamUri

if TYPE_CHECKING:
    from .times import TimeLike


class Consumer(Closing):
    """Reads the records of a ring or a log; the address says which.

    ==================================  ===============================================================
    ``shm://engine-0``                  a ring, live: see :class:`~ombus.RingConsumer` for its options
    ``log:///var/engine-0``             a log, from its first record on: see :class:`~ombus.LogConsumer`
    ``shm://engine-0?log=/var/e-0``     the log of a ring, from its end on
    ==================================  ===============================================================

    >>> with Consumer("log:///tmp/engine-0", timeout=1) as consumer:
    ...     for record in consumer:
    ...         print(record.seq, record.payload)

    Iteration waits for records, and ends when none came for `timeout` seconds (None: never).
    """

    __slots__ = ()

    #: The address it was opened with.
    uri: str

    def __new__(cls, uri: str = "", *arguments: Any, **options: Any) -> Consumer:
        return super().__new__(_class_for(uri) if cls is Consumer else cls)

    if TYPE_CHECKING:
        timeout: float | None

        def __init__(
            self,
            uri: str,
            *,
            on_gap: Literal["raise", "ignore"] = "raise",
            timeout: float | None = None,
            # rings
            index: int | None = None,
            zero_copy: bool = False,
            # logs
            from_: int | Literal["first", "end"] | TimeLike | None = None,
            name: str | None = None,
            crc: bool = True,
            skip_corrupt: bool = False,
            durable_only: bool = False,
        ) -> None: ...

    def poll(self) -> Record | None:
        """The next record, or None when there is none yet. Never waits."""
        raise NotImplementedError

    def poll_batch(self, max: int = 1024) -> RecordBatch:
        """Up to `max` records at once, as columns; an empty batch when there is none. Never waits."""
        raise NotImplementedError

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until there is something to poll: True, or False after `timeout` seconds. Uses no CPU."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Record]:
        raise NotImplementedError

    def __next__(self) -> Record:
        raise NotImplementedError

    @property
    def wal_seq(self) -> int:
        """wal_seq of the last record read; 0 before the first."""
        raise NotImplementedError

    @property
    def gaps(self) -> int:
        """Gaps in wal_seq seen so far."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop reading. From another thread: a call that waits ends with Closed."""
        raise NotImplementedError

    def save_cursor(self, path: str | bytes | PathLike[str] | PathLike[bytes], /) -> None:
        """Write wal_seq to a small file, atomically and durably; load_cursor() reads it."""
        raise NotImplementedError

    @staticmethod
    def load_cursor(path: str | bytes | PathLike[str] | PathLike[bytes]) -> int:
        """The wal_seq that save_cursor() wrote: the last record that was read then."""
        return _native.load_cursor(path)


def _class_for(uri: str) -> type[Consumer]:
    from .log_consumer import LogConsumer
    from .ring_consumer import RingConsumer

    address = StreamUri.parse(uri)
    if address.log_dir is not None:
        return LogConsumer
    address.ring_name()  # says what else is wrong with it
    return RingConsumer
