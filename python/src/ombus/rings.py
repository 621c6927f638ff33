"""Looking at the rings of this host, and removing them, without being a consumer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from . import _native
from .uri import StreamUri, ring_uri


class ConsumerState(Enum):
    """What a consumer slot is doing."""

    FREE = 0
    CLAIMED = 1
    #: Too slow: the producer no longer waits for it.
    PASSED_OVER = 2
    #: Its process is gone; the slot is free to take.
    DEAD = 3
    #: A consumer of OpenMatch's own library, which leaves no claim.
    FOREIGN = 4


@dataclass(frozen=True)
class ConsumerInfo:
    """One consumer slot of a ring."""

    index: int
    state: ConsumerState
    #: 0 when it is not known.
    pid: int
    tail: int
    wal_seq: int
    #: Records not read yet.
    lag: int


@dataclass(frozen=True)
class RingInfo:
    """A ring as it is at this moment."""

    name: str
    size_bytes: int
    slot_size: int
    capacity: int
    max_consumers: int
    flags: int
    head: int
    min_tail: int
    producer_epoch: int
    #: wal_seq of the newest record; 0 when there is none.
    last_wal_seq: int
    #: 0 when it is not known.
    producer_pid: int
    producer_alive: bool
    #: Empty from rings(), which does not look that deep.
    consumers: tuple[ConsumerInfo, ...] = ()

    @property
    def uri(self) -> str:
        """The ring's address, such as ``shm://engine-0``."""
        return ring_uri(self.name)

    @property
    def crc(self) -> bool:
        """Whether records carry a checksum."""
        return bool(self.flags & _native.FLAG_CRC)


def rings() -> list[RingInfo]:
    """Every ring on this host that we may read, by name."""
    return sorted((RingInfo(*ring) for ring in _native.list_rings()), key=lambda ring: ring.name)


def inspect(uri: str) -> RingInfo:
    """Describe a ring and its consumer slots.

    >>> inspect("shm://engine-0").capacity
    4096
    """
    ring, consumers = _native.inspect(StreamUri.parse(uri).ring_name())
    slots = (ConsumerInfo(index, ConsumerState(state), *rest) for index, state, *rest in consumers)
    return RingInfo(*ring, consumers=tuple(slots))


def unlink(uri: str) -> None:
    """Remove a ring's name. Who has it open keeps it; anything that is not a ring is refused."""
    _native.unlink(StreamUri.parse(uri).ring_name())
