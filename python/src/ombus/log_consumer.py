"""The reading side of a log as a stream that goes on."""

from __future__ import annotations

import datetime as dt
from os import PathLike
from typing import Any, Literal

import numpy as np

from . import _native
from .batch import LogBatch
from .consumer import Consumer
from .errors import BadAddress, InvalidArgument, LogNotFound, LogPruned
from .times import TimeLike, to_ns
from .uri import StreamUri


class LogConsumer(_native.LogReader, Consumer):
    """Reads a log and what is appended to it: what ``Consumer("log:///dir")`` gives.

    >>> with ombus.Consumer("log:///tmp/engine-0", name="billing", timeout=1) as consumer:
    ...     for record in consumer:
    ...         print(record.seq, record.payload)
    ...     consumer.save()

    It starts at `from_`: ``"first"``, ``"end"``, a wal_seq, or a datetime (also ISO text). With a `name` it goes on
    behind the position that save() has left, and `from_` counts only for the first time; retention and
    ``ombus lag`` know it under that name. Any number may read at once.

    Gaps are those that the writer has made: they are counted (`gaps`), with ``on_gap="raise"`` also raised.
    Damage is raised as LogCorrupt and reading stays in front of it; with `skip_corrupt` it is raised once as
    LogSkipped and reading goes on behind it. LogPruned says, once, that retention has removed records from
    the start or the saved position on; reading goes on with what is left. `durable_only` hands out what a
    power cut can no longer take back. One thread at a time; not usable after fork().
    """

    __slots__ = ("_dir", "name", "uri")

    def __init__(
        self,
        uri: str,
        *,
        from_: int | Literal["first", "end"] | TimeLike | None = None,
        name: str | None = None,
        on_gap: Literal["raise", "ignore"] = "ignore",
        timeout: float | None = None,
        crc: bool = True,
        skip_corrupt: bool = False,
        durable_only: bool = False,
    ) -> None:
        if on_gap not in ("raise", "ignore"):
            raise InvalidArgument(f"on_gap is {on_gap!r}, allowed are 'raise' and 'ignore'")
        address = StreamUri.parse(uri)
        if address.log_dir is None:
            raise BadAddress(f"{uri!r} names no log")
        super().__init__(address.log_dir, reader_flags(crc, skip_corrupt, durable_only), on_gap == "raise", timeout)
        self.uri = uri
        self.name = name
        self._dir = address.log_dir
        saved = self._saved()
        start: Any = saved + 1 if saved is not None else from_
        if start is None:
            start = "first" if address.scheme == "log" else "end"
        try:
            place(self, start)
        except LogPruned as pruned:  # said at the first poll; who goes on after it reads what is left
            self._pending = pruned

    def _saved(self) -> int | None:
        if self.name is None:
            return None
        try:
            return _native.log_consumer_load(self._dir, self.name)
        except LogNotFound:
            return None

    def poll_batch(self, max: int = 1024) -> LogBatch:
        """Up to `max` records at once, as columns; an empty batch when there is none. Never waits.

        A batch ends where a segment ends, before damage, and at 64 MiB.
        """
        return LogBatch(*self._poll_columns(max))

    def save(self) -> None:
        """Remember under `name`, durably, that everything read so far is done with."""
        if self.name is None:
            raise InvalidArgument("this consumer has no name: open it with name=")
        _native.log_consumer_save(self._dir, self.name, self.position - 1)

    def save_cursor(self, path: str | bytes | PathLike[str] | PathLike[bytes], /) -> None:
        """Write the position to a small file, atomically and durably; Consumer.load_cursor() reads it."""
        _native.save_cursor(path, self.position - 1)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"position={self.position}"
        return f"<Consumer {self.uri} {state}>"


def place(reader: _native.LogReader, where: Any) -> None:
    """Stand at "first", "end", a wal_seq or a time."""
    if where == "end":
        reader.seek_end()
    elif where == "first":
        reader.seek(max(reader.first_seq, 1))
    elif isinstance(where, (str, dt.datetime, np.datetime64)):
        reader.seek_time(to_ns(where))
    else:
        reader.seek(where)


def reader_flags(crc: bool, skip_corrupt: bool, durable_only: bool) -> int:
    """The options of a reader as the extension takes them."""
    return (
        (0 if crc else _native.LOG_NO_CRC)
        | (_native.LOG_SKIP_CORRUPT if skip_corrupt else 0)
        | (_native.LOG_DURABLE_ONLY if durable_only else 0)
    )
