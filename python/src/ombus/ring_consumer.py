"""The reading side of a ring."""

from __future__ import annotations

from typing import Literal

from . import _native
from .batch import RecordBatch, ZeroCopyBatch
from .consumer import Consumer
from .errors import InvalidArgument
from .uri import StreamUri


class RingConsumer(_native.RingConsumer, Consumer):
    """Reads the records of a ring in shared memory, from the moment it is opened: ``Consumer("shm://...")``.

    >>> with ombus.Consumer("shm://engine-0", timeout=1) as consumer:
    ...     for record in consumer:
    ...         print(record.seq, record.payload)

    Iteration waits for records, and ends when none came for `timeout` seconds (None: never). What is odd
    is raised once, and reading can go on after it: GapDetected and ReorderDetected (which carry the
    `record`), EpochChanged, ConsumerStale, ChecksumMismatch, Corrupt. With ``on_gap="ignore"`` gaps are only
    counted (`gaps`).

    `index` names the consumer slot; None takes a free one. With `zero_copy`, poll_batch() hands out the
    ring's own memory (see :class:`~ombus.ZeroCopyBatch`). One thread at a time; not usable after fork().
    """

    __slots__ = ("uri", "zero_copy")

    def __init__(
        self,
        uri: str,
        *,
        index: int | None = None,
        zero_copy: bool = False,
        on_gap: Literal["raise", "ignore"] = "raise",
        timeout: float | None = None,
    ) -> None:
        if on_gap not in ("raise", "ignore"):
            raise InvalidArgument(f"on_gap is {on_gap!r}, allowed are 'raise' and 'ignore'")
        super().__init__(StreamUri.parse(uri).ring_name(), index, on_gap == "ignore", timeout)
        self.uri = uri
        self.zero_copy = zero_copy

    def poll_batch(self, max: int = 1024) -> RecordBatch:
        """Up to `max` records at once, as columns; an empty batch when there is none. Never waits.

        Stops before a record that is odd; the next call raises what there is to say about it.
        """
        if self.zero_copy:
            return ZeroCopyBatch(self._peek(max))
        return RecordBatch(*self._poll_columns(max))

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"index={self.index} wal_seq={self.wal_seq}"
        return f"<Consumer {self.uri} {state}>"
