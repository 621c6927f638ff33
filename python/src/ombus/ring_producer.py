"""The writing side of a ring."""

from __future__ import annotations

from . import _native
from .errors import InvalidArgument
from .producer import Producer, ProducerStats
from .times import seconds_ns
from .uri import StreamUri


class RingProducer(_native.RingProducer, Producer):
    """Publishes records to a ring in shared memory: what ``Producer("shm://...")`` gives.

    One producer per ring, any number of consumers up to `max_consumers`. A ring that exists already is
    continued: its consumers read on, and sequence numbers go on after its last one.

    >>> with ombus.Producer("shm://engine-0", keep=False) as producer:
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
        super().__init__(name, *ring_shape(capacity, slot_size, max_consumers, crc, reject_reorder, staleness))
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


def ring_shape(
    capacity: int, slot_size: int, max_consumers: int, crc: bool, reject_reorder: bool, staleness: float | None
) -> tuple[int, int, int, int, int]:
    """The options of a ring as the extension takes them."""
    flags = (_native.FLAG_CRC if crc else 0) | (_native.FLAG_REJECT_REORDER if reject_reorder else 0)
    return (
        checked("capacity", capacity),
        checked("slot_size", slot_size),
        checked("max_consumers", max_consumers),
        flags,
        seconds_ns("staleness", staleness),
    )


def checked(what: str, value: int, limit: int = 0xFFFFFFFF) -> int:
    """The value, which must be 1 to `limit`: to the library 0 means "default", here it is a mistake."""
    if not 0 < value <= limit:
        raise InvalidArgument(f"{what} is {value}, allowed are 1 to {limit}")
    return value
