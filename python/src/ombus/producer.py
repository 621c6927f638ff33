"""The writing side of a stream."""

from __future__ import annotations

from typing import NamedTuple

from . import _native
from .closing import Closing
from .errors import InvalidArgument
from .uri import StreamUri


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


class Producer(_native.RingProducer, Closing):
    """Publishes records to a ring in shared memory.

    One producer per ring, any number of consumers up to `max_consumers`. A ring that exists already is
    continued: its consumers read on, and sequence numbers go on after its last one.

    >>> with Producer("shm://engine-0", keep=False) as producer:
    ...     producer.publish(b"hello")
    1

    `capacity` slots (a power of two) of `slot_size` bytes each, 24 of which are not payload. With
    `staleness` (seconds) a live consumer that blocks a full ring that long is passed over; without it the
    producer waits. `crc` adds a checksum that consumers check; `reject_reorder` makes them report a
    wal_seq that goes backward. `keep=False` removes the ring on close.

    May be shared by threads: they publish one after the other. Not usable after fork().
    """

    __slots__ = ("_keep", "uri")

    def __init__(
        self,
        uri: str,
        *,
        capacity: int = 4096,
        slot_size: int = 256,
        max_consumers: int = 8,
        crc: bool = True,
        reject_reorder: bool = False,
        staleness: float | None = None,
        keep: bool = True,
    ) -> None:
        name = StreamUri.parse(uri).ring_name()
        flags = (_native.FLAG_CRC if crc else 0) | (_native.FLAG_REJECT_REORDER if reject_reorder else 0)
        super().__init__(
            name,
            _checked("capacity", capacity),
            _checked("slot_size", slot_size),
            _checked("max_consumers", max_consumers),
            flags,
            _staleness_ns(staleness),
        )
        self.uri = uri
        self._keep = keep

    def stats(self) -> ProducerStats:
        """Counters and positions; also while another thread waits in publish()."""
        return ProducerStats(*self._counters())

    def close(self) -> None:
        """Stop publishing. The ring stays for its readers and the next producer, unless keep=False.

        From another thread or a signal handler: a call that waits for room ends with Closed.
        """
        if self._keep:
            self._detach()
        else:
            self._destroy()

    def destroy(self) -> None:
        """Close and remove the ring's name; consumers that have it open keep what they have."""
        self._destroy()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"last_seq={self.last_seq}"
        return f"<Producer {self.uri} {state}>"


def _checked(what: str, value: int) -> int:
    # To the library 0 means "default"; here whoever writes 0 has made a mistake.
    if not 0 < value <= 0xFFFFFFFF:
        raise InvalidArgument(f"{what} is {value}, allowed are 1 to {0xFFFFFFFF}")
    return value


def _staleness_ns(seconds: float | None) -> int:
    if seconds is None:
        return 0
    if not 0 < seconds < 9e9:
        raise InvalidArgument(f"staleness is {seconds!r}, allowed are seconds above 0, or None")
    return max(1, int(seconds * 1e9))
