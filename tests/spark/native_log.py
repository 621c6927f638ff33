"""Just enough of om_log.h for the tests to write logs of any shape: own sequence numbers, times, segments."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SYNC_NONE = 1
NO_CREATE = 2
SEGMENT_HEADER = 4096


class Record(ctypes.Structure):
    _fields_ = (
        ("wal_seq", ctypes.c_uint64),
        ("timestamp_ns", ctypes.c_uint64),
        ("payload", ctypes.c_char_p),
        ("payload_len", ctypes.c_uint32),
        ("wal_type", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 3),
    )


class Retention(ctypes.Structure):
    _fields_ = (
        ("max_bytes", ctypes.c_uint64),
        ("max_age_ns", ctypes.c_uint64),
        ("min_seq", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class WriterOptions(ctypes.Structure):
    _fields_ = (
        ("segment_bytes", ctypes.c_uint64),
        ("prefault_bytes", ctypes.c_uint64),
        ("sync", ctypes.c_uint32),
        ("linger_records", ctypes.c_uint32),
        ("linger_ms", ctypes.c_uint32),
        ("index_bytes", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("retention", Retention),
    )


def _load() -> Any:
    library = ctypes.CDLL(str(ROOT / "native" / "build" / "libombus.so"))
    library.om_log_append.restype = ctypes.c_int64
    library.om_log_append.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_uint8,
        ctypes.c_char_p,
        ctypes.c_uint32,
    )
    library.om_log_append_batch.restype = ctypes.c_int64
    library.om_log_append_batch.argtypes = (ctypes.c_void_p, ctypes.POINTER(Record), ctypes.c_size_t)
    library.om_log_append_array.restype = ctypes.c_int64
    library.om_log_append_array.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_uint8,
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_size_t,
        ctypes.c_size_t,
    )
    library.om_log_close.argtypes = (ctypes.c_void_p,)
    library.om_log_sync.argtypes = (ctypes.c_void_p,)
    library.om_log_consumer_load.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))
    library.om_bus_last_error.restype = ctypes.c_char_p
    return library


LIBRARY = _load()


class LogFailure(Exception):
    pass


def check(result: int) -> int:
    if result < 0:
        raise LogFailure(f"{result}: {LIBRARY.om_bus_last_error().decode()}")
    return result


class LogWriter:
    """A writer of a log. Small segments, no syncing: tests make and drop logs by the hundred."""

    def __init__(self, directory: Path, segment_bytes: int = 1 << 20, sync: int = SYNC_NONE) -> None:
        self.handle = ctypes.c_void_p()
        options = WriterOptions(segment_bytes=segment_bytes, prefault_bytes=1 << 16, sync=sync)
        check(LIBRARY.om_log_open_writer(ctypes.byref(self.handle), str(directory).encode(), ctypes.byref(options)))

    def append(self, payload: bytes, wal_type: int = 1, seq: int = 0) -> int:
        return check(LIBRARY.om_log_append(self.handle, seq, wal_type, payload, len(payload)))

    def append_at(self, records: Iterable[tuple[int, int, int, bytes]]) -> None:
        """(wal_seq, timestamp_ns, wal_type, payload), where 0 leaves the first two to the log."""
        rows = [Record(seq, ns, payload, len(payload), wal_type) for seq, ns, wal_type, payload in records]
        array = (Record * len(rows))(*rows)
        assert check(LIBRARY.om_log_append_batch(self.handle, array, len(rows))) == len(rows)

    def append_array(self, items: bytes, item_size: int, wal_type: int = 1) -> None:
        count = len(items) // item_size
        result = LIBRARY.om_log_append_array(self.handle, 0, wal_type, items, item_size, item_size, count)
        assert check(result) == count

    def sync(self) -> None:
        check(LIBRARY.om_log_sync(self.handle))

    def close(self) -> None:
        if self.handle:
            check(LIBRARY.om_log_close(self.handle))
            self.handle = ctypes.c_void_p()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_log(directory: Path, count: int, size: int = 16, **options: int) -> Path:
    """A log of `count` records, wal_seq 1 on, wal_type 1 to 3 in turn, payloads that tell their sequence number."""
    with LogWriter(directory, **options) as log:
        append_counted(log, 1, count, size)
    return directory


def append_counted(log: LogWriter, first: int, count: int, size: int = 16) -> None:
    for seq in range(first, first + count):
        log.append(payload_of(seq, size), 1 + seq % 3, seq)


def payload_of(seq: int, size: int = 16) -> bytes:
    return seq.to_bytes(8, "little") + bytes((seq + i) % 256 for i in range(size - 8))


def prune(directory: Path, max_bytes: int) -> int:
    return check(LIBRARY.om_log_retain(str(directory).encode(), ctypes.byref(Retention(max_bytes=max_bytes))))


def consumer_position(directory: Path, name: str) -> int:
    seq = ctypes.c_uint64()
    check(LIBRARY.om_log_consumer_load(str(directory).encode(), name.encode(), ctypes.byref(seq)))
    return seq.value
