"""The writing side of a stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex

from .closing import Closing
from .errors import UnsupportedScheme
from .uri import StreamUri

if TYPE_CHECKING:
    from ._native import _Buffer


class ProducerStats(NamedTuple):
    """Counters of a :class:`Producer`."""

    #: Records published through this handle.
    records_published: int
    #: Position of the next record in the ring.
    head: int
    #: Position of the slowest live consumer; equals head when there is none.
    min_tail: int
    #: wal_seq of the last record.
    last_seq: int

    @property
    def lag(self) -> int:
        """Records that the slowest consumer has not read yet."""
        return self.head - self.min_tail


class Producer(Closing):
    """Publishes records to a ring, to a log, or to both; the address says which.

    ==================================  ===============================================================
    ``shm://engine-0``                  a ring: see :class:`~ombus.RingProducer` for its options
    ``log:///var/engine-0``             a log: see :class:`~ombus.LogProducer`
    ``shm://engine-0?log=/var/e-0``     both: into the log first, then to the ring; options of both
    ==================================  ===============================================================

    >>> with Producer("log:///tmp/engine-0") as producer:
    ...     producer.publish(b"hello")
    1
    """

    __slots__ = ()

    #: The address it was opened with.
    uri: str

    def __new__(cls, uri: str = "", *arguments: Any, **options: Any) -> Producer:
        return super().__new__(_class_for(uri) if cls is Producer else cls)

    if TYPE_CHECKING:

        def __init__(
            self,
            uri: str,
            *,
            # rings
            capacity: int = 4096,
            slot_size: int = 256,
            max_consumers: int = 8,
            crc: bool = True,
            reject_reorder: bool = False,
            staleness: float | None = None,
            keep: bool = True,
            # logs
            segment_size: int = 64 << 20,
            sync: Literal["linger", "none", "each"] = "linger",
            linger_records: int = 500,
            linger_ms: int = 100,
            retain_bytes: int | None = None,
            retain_age: float | dt.timedelta | None = None,
            retain_for_consumers: bool = False,
            create: bool = True,
            salvage: bool = False,
        ) -> None: ...

    def publish(
        self,
        payload: _Buffer,
        type: SupportsIndex = 1,
        seq: SupportsIndex | None = None,
        timeout: float | None = None,
    ) -> int:
        """Publish one record and return its wal_seq."""
        raise NotImplementedError

    def try_publish(self, payload: _Buffer, type: SupportsIndex = 1, seq: SupportsIndex | None = None) -> int | None:
        """As publish(), but return None at once when a ring is full."""
        raise NotImplementedError

    def publish_batch(
        self,
        items: _Buffer | Iterable[_Buffer],
        type: SupportsIndex = 1,
        seq: SupportsIndex | None = None,
        timeout: float | None = None,
        itemsize: SupportsIndex | None = None,
    ) -> int:
        """Publish many records under consecutive wal_seq and return the last one's."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        raise NotImplementedError

    @property
    def last_seq(self) -> int:
        """wal_seq of the last record; 0 when there is none."""
        raise NotImplementedError

    @property
    def durable_seq(self) -> int:
        """Everything up to this wal_seq is on disk. Logs only."""
        raise UnsupportedScheme(f"{self.uri} has no log: a ring keeps nothing")

    def sync(self) -> None:
        """Put everything appended so far on disk. Logs only."""
        raise UnsupportedScheme(f"{self.uri} has no log: a ring keeps nothing")

    def wait_durable(self, seq: SupportsIndex | None = None, timeout: float | None = None) -> None:
        """Wait until everything up to `seq` (None: the last record) is on disk. Logs only."""
        raise UnsupportedScheme(f"{self.uri} has no log: a ring keeps nothing")

    def stats(self) -> ProducerStats:
        """Counters and positions; also while another thread waits in publish()."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop publishing; ring and log stay for their readers and the next producer."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Close and remove the ring's name; a log stays."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"last_seq={self.last_seq}"
        return f"<Producer {self.uri} {state}>"


def _class_for(uri: str) -> type[Producer]:
    from .log_producer import LogProducer
    from .ring_producer import RingProducer

    address = StreamUri.parse(uri)
    if address.log_dir is not None:
        return LogProducer
    address.ring_name()  # says what else is wrong with it
    return RingProducer
