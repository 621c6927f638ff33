"""Looking at a log, checking and mending it, and its named consumers, without being its reader."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from . import _native
from .damage import Damage
from .errors import BadAddress, Error, from_code
from .times import seconds_ns
from .uri import StreamUri

if TYPE_CHECKING:
    from ._native import _ReportTuple

LogPath = str | PathLike[str]


def log_dir(path: LogPath) -> str:
    """The directory of a path or of an address: ``log:///dir``, ``shm://name?log=/dir``.

    >>> log_dir("log:///var/ombus/engine-0")
    '/var/ombus/engine-0'
    """
    text = fspath(path)
    if "://" not in text:
        return text
    address = StreamUri.parse(text)
    if address.log_dir is None:
        raise BadAddress(f"{text!r} names no log")
    return address.log_dir


@dataclass(frozen=True)
class LogInfo:
    """A log as it is at this moment."""

    #: Its random identity in hexadecimal: a log that was created anew has another one.
    id: str
    created_ns: int
    #: How often it has been opened for writing.
    epoch: int
    #: 0 when the log is empty.
    first_seq: int
    last_seq: int
    #: Everything up to this wal_seq is on disk.
    durable_seq: int
    records: int
    #: Of their frames.
    bytes: int
    first_time_ns: int
    last_time_ns: int
    #: Of all segment files.
    disk_bytes: int
    segment_bytes: int
    segments: int
    #: Of the present or last writer; 0 = none yet.
    writer_pid: int
    writer_alive: bool


@dataclass(frozen=True)
class SegmentInfo:
    """One segment file of a log."""

    number: int
    first_seq: int
    last_seq: int
    records: int
    bytes: int
    first_time_ns: int
    max_time_ns: int
    file_bytes: int
    writer_epoch: int
    sealed: bool
    #: Its header cannot be read.
    damaged: bool


@dataclass(frozen=True)
class LogReport:
    """What a check or a repair found."""

    segments: int
    #: Valid ones, in order.
    records: int
    bytes: int
    first_seq: int
    last_seq: int
    #: Damaged places, without a torn tail and indexes.
    damages: int
    damaged_bytes: int
    #: Of a torn tail, which a writer or a repair cuts.
    tail_bytes: int
    tail_records: int
    indexes_wrong: int
    #: The last file that holds what was cut; empty when nothing was.
    side_file: str
    #: Each damaged place.
    found: tuple[Damage, ...] = ()
    #: The error when the log is damaged (check) or still is (repair).
    error: Error | None = None

    @property
    def ok(self) -> bool:
        """Whether everything that was promised is there."""
        return self.error is None


@dataclass(frozen=True)
class LogConsumerInfo:
    """A named consumer of a log: DIR/consumers/NAME.cursor."""

    name: str
    #: It needs nothing up to and with this one any more.
    wal_seq: int
    saved_ns: int
    #: Why its position cannot be read.
    error: Error | None = None


Progress = Callable[[int, int], object]


def log_info(path: LogPath) -> LogInfo:
    """Describe a log.

    >>> log_info("/var/ombus/engine-0").records
    1000
    """
    fields = _native.log_info(log_dir(path))
    return LogInfo(fields[0].hex(), *fields[1:])


def log_segments(path: LogPath) -> list[SegmentInfo]:
    """The segment files of a log, oldest first."""
    return [SegmentInfo(*fields) for fields in _native.log_segments(log_dir(path))]


def verify_log(path: LogPath, progress: Progress | None = None) -> LogReport:
    """Check every byte with the code that recovers a log, changing nothing.

    `progress(done_bytes, total_bytes)` is called now and then. Damage is in the report, not an exception.

    >>> verify_log("/var/ombus/engine-0").ok
    True
    """
    found: list[Damage] = []
    return _report(found, *_native.log_verify(log_dir(path), _collect(found), progress, 0))


def repair_log(path: LogPath, *, salvage: bool = False, progress: Progress | None = None) -> LogReport:
    """Mend a log that no writer holds: cut a torn tail and rewrite wrong indexes.

    With `salvage` also cover damage in the middle, so that reading goes on behind it; without it such a
    log stays as it is and the report has the error. Nothing is deleted: what is cut is first copied into
    a side file beside the segments.
    """
    found: list[Damage] = []
    flags = _native.LOG_SALVAGE if salvage else 0
    return _report(found, *_native.log_repair(log_dir(path), _collect(found), progress, flags))


def prune_log(
    path: LogPath,
    *,
    max_bytes: int = 0,
    max_age: float | dt.timedelta | None = None,
    keep_from: int = 0,
    for_consumers: bool = True,
) -> int:
    """Remove the oldest segments while the log is larger than `max_bytes` or they are older than `max_age` (seconds).

    Never what holds wal_seq `keep_from` or later, nor (with `for_consumers`) what a saved consumer has not
    read, nor the newest segment. Works beside a live writer. Returns how many segments went.
    """
    flags = _native.LOG_RETAIN_FOR_CONSUMERS if for_consumers else 0
    return _native.log_retain(log_dir(path), max_bytes, seconds_ns("max_age", max_age), keep_from, flags)


def log_consumers(path: LogPath) -> list[LogConsumerInfo]:
    """The named consumers of a log, by name."""
    rows = sorted(_native.log_consumers(log_dir(path)))
    return [LogConsumerInfo(name, seq, ns, from_code(rc) if rc else None) for name, seq, ns, rc in rows]


def forget_consumer(path: LogPath, name: str) -> None:
    """Remove a named consumer, so that retention no longer waits for it."""
    _native.log_consumer_remove(log_dir(path), name)


def _collect(found: list[Damage]) -> Callable[[tuple[int, int, int, int, int, int, int], str], None]:
    return lambda fields, text: found.append(Damage.of(fields, text))


def _report(found: list[Damage], rc: int, text: str, fields: _ReportTuple) -> LogReport:
    error = from_code(rc, text) if rc else None
    return replace(LogReport(*fields), found=tuple(found), error=error)
