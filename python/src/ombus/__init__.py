"""ombus carries a process's write-ahead log to its readers: shared memory on one host, Spark everywhere.

>>> import ombus
>>> with ombus.Producer("shm://engine-0") as producer, ombus.Consumer("shm://engine-0") as consumer:
...     producer.publish(b"hello")
...     consumer.poll()
1
Record(seq=1, type=1, payload=b'hello')
"""

from ._native import Record
from .batch import Payloads, RecordBatch, ZeroCopyBatch
from .consumer import Consumer
from .errors import (
    BadAddress,
    CannotBind,
    CannotConnect,
    CannotCreate,
    CannotMap,
    CannotOpen,
    CapacityNotPowerOfTwo,
    ChecksumMismatch,
    Closed,
    ConsumerStale,
    Corrupt,
    Disconnected,
    EpochChanged,
    Error,
    Forked,
    GapDetected,
    HandleBusy,
    InvalidArgument,
    NoRecord,
    NoSuchConsumer,
    NotARing,
    OutOfMemory,
    ProtocolError,
    ReceiveFailed,
    RecordTooLarge,
    ReorderDetected,
    RingGone,
    RingInUse,
    SendFailed,
    SlowClient,
    SocketError,
    Timeout,
    TooManyClients,
    UnsupportedScheme,
    VersionMismatch,
)
from .library import __version__, library_path
from .producer import Producer, ProducerStats
from .rings import ConsumerInfo, ConsumerState, RingInfo, inspect, rings, unlink

__all__ = [
    "BadAddress",
    "CannotBind",
    "CannotConnect",
    "CannotCreate",
    "CannotMap",
    "CannotOpen",
    "CapacityNotPowerOfTwo",
    "ChecksumMismatch",
    "Closed",
    "Consumer",
    "ConsumerInfo",
    "ConsumerStale",
    "ConsumerState",
    "Corrupt",
    "Disconnected",
    "EpochChanged",
    "Error",
    "Forked",
    "GapDetected",
    "HandleBusy",
    "InvalidArgument",
    "NoRecord",
    "NoSuchConsumer",
    "NotARing",
    "OutOfMemory",
    "Payloads",
    "Producer",
    "ProducerStats",
    "ProtocolError",
    "ReceiveFailed",
    "Record",
    "RecordBatch",
    "RecordTooLarge",
    "ReorderDetected",
    "RingGone",
    "RingInUse",
    "RingInfo",
    "SendFailed",
    "SlowClient",
    "SocketError",
    "Timeout",
    "TooManyClients",
    "UnsupportedScheme",
    "VersionMismatch",
    "ZeroCopyBatch",
    "__version__",
    "inspect",
    "library_path",
    "rings",
    "unlink",
]
