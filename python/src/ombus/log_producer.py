"""The writing side of a log, with or without a ring beside it."""

from __future__ import annotations

import datetime as dt
from typing import Literal, NamedTuple

from . import _native
from .errors import BadAddress, InvalidArgument
from .log_info import LogReport
from .producer import Producer
from .ring_producer import checked, ring_shape
from .times import seconds_ns
from .uri import StreamUri

_SYNC = {"linger": _native.LOG_SYNC_LINGER, "none": _native.LOG_SYNC_NONE, "each": _native.LOG_SYNC_EACH}


class LogProducerStats(NamedTuple):
    """Counters of a :class:`LogProducer`; the first four are those of any producer."""

    #: Records appended through this handle.
    records_published: int
    #: Position of the next record in the ring; 0 without one.
    head: int
    #: Position of the ring's slowest live consumer.
    min_tail: int
    #: wal_seq of the last record.
    last_seq: int
    #: Everything up to this wal_seq is on disk.
    durable_seq: int
    #: Of frames, with headers and padding.
    bytes: int
    rotations: int
    #: Rotations that found no segment ready and had to make one.
    rotation_waits: int
    syncs: int
    sync_errors: int
    #: By the retention options.
    segments_pruned: int
    #: Records too large for the ring: its consumers see a gap.
    publish_skipped: int
    #: Records that the ring did not take for another reason.
    publish_errors: int

    @property
    def lag(self) -> int:
        """Records that the ring's slowest consumer has not read yet."""
        return self.head - self.min_tail


class LogProducer(_native.LogWriter, Producer):
    """Appends records to a log, and to a ring beside it: what ``Producer("log:///dir")`` gives.

    One writer per log; another one gets LogLocked with its pid. A log that exists is continued after its
    last record; what a crash has left half written at its end is cut (`repaired` tells). A record is
    readable by others when publish() returns, and survives this process from then on.

    >>> with ombus.Producer("log:///tmp/engine-0", sync="linger") as producer:
    ...     seq = producer.publish(b"hello")
    ...     producer.wait_durable(seq)

    `sync` says when records survive a power cut: ``"linger"`` every `linger_records` or `linger_ms` in the
    background, ``"each"`` when publish() returns, ``"none"`` when the system gets to it or sync() is called.
    Segment files have `segment_size` bytes. Old segments are removed when the log is larger than `retain_bytes`
    or they are older than `retain_age` (seconds or a timedelta), with `retain_for_consumers` not before every
    named consumer has read them. `create=False` refuses a directory without a log; `salvage` opens a
    damaged one, keeping what is cut in side files.

    With ``shm://name?log=/dir`` each record goes into the log and then to the ring, whose options
    (`capacity`, `slot_size`, `max_consumers`, `crc`, `reject_reorder`, `staleness`, `keep`) apply; a full ring
    makes publish() wait, a record too large for it is in the log only.

    May be shared by threads: they publish one after the other. Not usable after fork().
    """

    __slots__ = ("_keep", "uri")

    def __init__(
        self,
        uri: str,
        *,
        segment_size: int = 64 << 20,
        sync: Literal["linger", "none", "each"] = "linger",
        linger_records: int = 500,
        linger_ms: int = 100,
        retain_bytes: int | None = None,
        retain_age: float | dt.timedelta | None = None,
        retain_for_consumers: bool = False,
        create: bool = True,
        salvage: bool = False,
        capacity: int | None = None,
        slot_size: int | None = None,
        max_consumers: int | None = None,
        crc: bool | None = None,
        reject_reorder: bool | None = None,
        staleness: float | None = None,
        keep: bool = True,
    ) -> None:
        address = StreamUri.parse(uri)
        if address.log_dir is None:
            raise BadAddress(f"{uri!r} names no log")
        if sync not in _SYNC:
            raise InvalidArgument(f"sync is {sync!r}, allowed are 'linger', 'none' and 'each'")
        ring_options = (capacity, slot_size, max_consumers, crc, reject_reorder, staleness)
        ring: tuple[str | None, int, int, int, int, int] = (None, 0, 0, 0, 0, 0)
        if address.scheme == "shm":
            defaults = (4096, 256, 8, True, False, None)
            shape = [default if given is None else given for given, default in zip(ring_options, defaults, strict=True)]
            ring = (address.ring_name(), *ring_shape(*shape))  # type: ignore[arg-type]
        elif any(option is not None for option in ring_options) or not keep:
            raise InvalidArgument(
                f"{uri} has no ring: capacity, slot_size, max_consumers, crc, reject_reorder, staleness and keep are "
                f"options of shm://NAME?log={address.log_dir}"
            )
        flags = (0 if create else _native.LOG_NO_CREATE) | (_native.LOG_SALVAGE if salvage else 0)
        super().__init__(
            address.log_dir,
            (
                checked("segment_size", segment_size, 1 << 30),
                _SYNC[sync],
                checked("linger_records", linger_records),
                checked("linger_ms", linger_ms),
                flags,
            ),
            (
                0 if retain_bytes is None else checked("retain_bytes", retain_bytes, 2**63),
                seconds_ns("retain_age", retain_age),
                _native.LOG_RETAIN_FOR_CONSUMERS if retain_for_consumers else 0,
            ),
            ring,
        )
        self.uri = uri
        self._keep = keep

    @property
    def repaired(self) -> LogReport | None:
        """What had to be cut at the log's end when it was opened; None when nothing was."""
        report = LogReport(*self._repair_report())
        return report if report.tail_bytes or report.damages else None

    def stats(self) -> LogProducerStats:  # type: ignore[override]
        """Counters and positions; also while another thread waits in publish()."""
        return LogProducerStats(*self._counters())

    def close(self) -> None:
        """Put what is pending on disk (not with sync="none") and release the log.

        The ring stays for its readers and the next producer, unless keep=False. An error says that the
        last records may not be on disk; the handle is closed even so.
        """
        if self._keep:
            self._close()
        else:
            self._destroy()

    def destroy(self) -> None:
        """Close, and remove the ring's name; the log stays."""
        self._destroy()
