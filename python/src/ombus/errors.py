"""One exception per error code of the library, all under :class:`Error`.

Every message says what happened, what to do, and the object or sequence concerned. Catch the class,
not the text::

    try:
        record = consumer.poll()
    except ombus.GapDetected as gap:
        replay_until(gap.record.seq)

A new code of the library needs one class here or, for servers and columns, in net_errors.py
(``tests/python/test_errors.py`` names it when it is missing).
"""

from __future__ import annotations

from typing import Any, ClassVar

from . import _native
from ._native import Record
from .damage import Damage

_classes: dict[int, type[Error]] = {}
_names: dict[int, str] = {code: name for name, code in _native.error_codes().items()}


class Error(Exception):
    """Base of everything that ombus raises about streams."""

    #: The library's result code, such as -810.
    code: int = 0
    #: What happened and what to do, where the library's own text for the code does not say it.
    text: ClassVar[str | None] = None

    def __init_subclass__(cls, code: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if code is not None:
            cls.code = code
            _classes[code] = cls

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        #: The file, offset, sequence or system's reason concerned; may be empty.
        self.detail = detail

    @property
    def name(self) -> str:
        """The code's name in C, such as ``OM_ERR_BUS_GAP_DETECTED``."""
        return _names.get(self.code, "")

    def __str__(self) -> str:
        text = self.text or _native.error_string(self.code)
        return f"{text} ({self.detail})" if self.detail else text


class InvalidArgument(Error, ValueError, code=-800):
    """An argument that cannot be used."""


class Closed(InvalidArgument):
    """The producer or consumer was closed before."""

    text = "this handle is closed: open a new one"


class BadAddress(InvalidArgument):
    """A URI that names no stream."""

    text = "not an ombus address: use shm://name, log:///directory or tcp://host:port/name"


class NoSuchRecord(InvalidArgument, IndexError):
    """The log has no record with that wal_seq."""

    text = "no such record: it was never written, or retention has removed it; see first_seq and last_seq"


class UnsupportedScheme(InvalidArgument):
    """A URI that is right, but whose kind of stream cannot be opened here."""

    text = "this build of ombus cannot open that kind of address yet: use shm://name or log:///directory"


class SparkNotReady(Error, RuntimeError):
    """Spark cannot use ombus as things are; the message says how it can."""

    text = "Spark cannot use ombus here"


class BadCheckpoint(Error, ValueError):
    """A directory that is no checkpoint, or positions that it cannot take."""

    text = "cannot do that with the checkpoint"


class CannotCreate(Error, OSError, code=-801):
    """The shared-memory object could not be created."""


class CannotMap(Error, OSError, code=-802):
    """The shared-memory object could not be mapped."""


class CannotOpen(Error, OSError, code=-803):
    """There is no such ring or file, or it may not be opened."""


class CapacityNotPowerOfTwo(Error, ValueError, code=-804):
    """A ring's capacity must be a power of two."""


class NoSuchConsumer(Error, ValueError, code=-805):
    """The consumer index is not below max_consumers."""


class RecordTooLarge(Error, ValueError, code=-806):
    """The payload does not fit into a slot."""


class NotARing(Error, code=-807):
    """The object exists but holds something else."""


class VersionMismatch(Error, code=-808):
    """The object was written by an incompatible release."""


class ChecksumMismatch(Error, code=-809):
    """A record or cursor file was damaged."""


class _RecordError(Error):
    """An error that comes with a record, which has been read."""

    #: The record concerned; None when it comes with the next batch (zero copy).
    record: Record | None = None


class GapDetected(_RecordError, code=-810):
    """wal_seq jumped forward: records are missing before :attr:`record`."""


class NoRecord(Error, code=-811):
    """There is no record to read."""


class CannotBind(Error, OSError, code=-812):
    """The server's address cannot be used."""


class CannotConnect(Error, ConnectionError, code=-813):
    """The server cannot be reached."""


class SendFailed(Error, ConnectionError, code=-814):
    """The connection broke while sending."""


class ReceiveFailed(Error, ConnectionError, code=-815):
    """The connection broke while receiving."""


class Disconnected(Error, ConnectionError, code=-816):
    """The other side closed the connection."""


class ProtocolError(Error, code=-817):
    """The other side does not speak ombus' protocol."""


class SocketError(Error, OSError, code=-818):
    """Waiting on sockets failed."""


class TooManyClients(Error, code=-819):
    """The server serves as many clients as it may."""


class EpochChanged(Error, code=-820):
    """Another producer has taken over the stream."""


class ConsumerStale(Error, code=-821):
    """This consumer was too slow; the ring went on without it."""


class SlowClient(Error, code=-822):
    """The server is about to drop this client."""


class ReorderDetected(_RecordError, code=-823):
    """wal_seq went backward at :attr:`record`."""


class Timeout(Error, TimeoutError, code=-824):
    """The time given was not enough."""

    #: Records of the call that were published before time was up.
    published: int = 0


class Forked(Error, code=-825):
    """The handle belongs to the parent process."""


class RingInUse(Error, code=-826):
    """Another live process holds the ring or the consumer slot."""


class HandleBusy(RingInUse):
    """The handle is in use by another thread or by the call that a signal handler interrupted."""

    text = "this handle is in use: give every thread a producer or consumer of its own"


class Corrupt(Error, code=-827):
    """Shared memory holds contradictory values."""


class OutOfMemory(Error, MemoryError, code=-828):
    """There is not enough memory."""


class RingGone(Error, code=-829):
    """The ring was removed, or replaced by one of another shape; every further poll says the same."""


class LogCannotOpen(Error, OSError, code=-840):
    """The log's directory or files cannot be opened or created."""


class LogLocked(Error, code=-841):
    """Another writer has the log open; the message names its pid."""


class LogDiskFull(Error, OSError, code=-842):
    """There is no space for a new segment; what was appended is safe."""

    #: Records of the call that were appended before.
    published: int = 0


class LogIOError(Error, OSError, code=-843):
    """A file of the log could not be read, mapped or synced."""

    #: Records of the call that were appended; that they are on disk is not certain.
    published: int = 0


class LogSequenceOrder(Error, ValueError, code=-844):
    """wal_seq must be greater than the last one."""


class LogSequenceLimit(Error, ValueError, code=-845):
    """wal_seq is beyond what a signed 64-bit integer can address."""


class LogRecordTooLarge(RecordTooLarge, code=-846):
    """The payload is larger than 64 MiB."""

    text = "payload larger than 64 MiB: split it into several records"


class LogCorrupt(Corrupt, code=-847):
    """The log is damaged; :attr:`damage` says where, and which wal_seq are lost."""

    _damage: tuple[int, int, int, int, int, int, int] | None = None

    @property
    def damage(self) -> Damage | None:
        """Segment, offset, size and the wal_seq range concerned; None when the log could not even be opened."""
        return Damage.of(self._damage) if self._damage else None


class LogSkipped(LogCorrupt, code=-848):
    """Damage was passed over as asked (`skip_corrupt`); reading goes on behind it."""


class LogPruned(Error, LookupError, code=-849):
    """Retention has removed these records."""


class LogForeign(Error, code=-850):
    """A file in the directory belongs to something else."""


class LogVersionMismatch(VersionMismatch, code=-851):
    """The log was written by an incompatible release."""


class DurabilityTimeout(Timeout, code=-852):
    """The records are not on disk yet."""


class LogReservation(Error, code=-853):
    """A reservation is open, or none is."""


class LogReservedType(Error, ValueError, code=-854):
    """wal_type 0xFD to 0xFF are reserved."""


class LogNotFound(Error, FileNotFoundError, code=-855):
    """There is no log in the directory, or no such consumer."""


class LogConsumerName(Error, ValueError, code=-856):
    """A consumer's name may hold letters, digits, '.', '_' and '-'."""


class LogCancelled(Error, code=-857):
    """Stopped by the caller."""

    text = "stopped by the caller: start it again"


class WalDamaged(Corrupt):
    """An OpenMatch WAL file is damaged at :attr:`offset`."""

    text = "the WAL file is damaged: import what is before it, or go on behind it with --skip-damage"

    #: Where in the file.
    offset: int = 0


class MissingPackage(Error):
    """An optional package is needed for this."""

    text = "a package is missing: install it with pip"


def from_code(code: int, detail: str = "") -> Error:
    """The exception for a result code of the library."""
    error = _classes.get(code, Error)(detail)
    error.code = code
    return error


def from_name(name: str, detail: str = "") -> Error:
    """The exception of that class name; for errors that have no code of their own."""
    error = globals()[name](detail)
    assert isinstance(error, Error)
    return error
