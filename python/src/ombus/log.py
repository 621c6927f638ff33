"""A log as a collection of records: slices by wal_seq and by time, iteration, arrays, tables."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._native import Record
from .batch import LogBatch, fixed_dtype
from .closing import Closing
from .errors import InvalidArgument, LogPruned, LogSkipped, NoSuchRecord, from_code
from .log_consumer import reader_flags
from .log_info import LogConsumerInfo, LogInfo, LogPath, SegmentInfo, log_consumers, log_dir, log_info, log_segments
from .times import TimeLike, to_ns

if TYPE_CHECKING:
    import pandas
    import pyarrow

ARROW_ROWS = 64 * 1024
ARROW_BYTES = 16 * 1024 * 1024


class LogRange:
    """Records of a log from one wal_seq up to another: what slicing a :class:`Log` gives.

    Nothing is read before it is asked for. A range without an end ends at the record that is the last when
    reading starts; only follow() waits for more. Anything that knows the Arrow PyCapsule protocol reads a
    range directly, in batches of bounded size::

        polars.DataFrame(log[100:])
        pyarrow.RecordBatchReader.from_stream(log)
        duckdb.sql("select max(wal_seq) from log")

    Columns: wal_seq int64, wal_type int16, timestamp (ns, UTC), payload binary.
    """

    def __init__(self, path: LogPath, flags: int, start: int | None, stop: int | None) -> None:
        self._dir = log_dir(path)
        self._flags = flags
        self._start = start
        self._stop = stop

    # ---- parts ----

    @overload
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> LogRange: ...
    def __getitem__(self, key: int | slice) -> Record | LogRange:
        """``log[100:200]``: records with wal_seq 100 to 199; ``log[150]``: the one with that wal_seq.

        Negative numbers count from the end: ``log[-1]`` is the last record, ``log[-10:]`` the last ten wal_seq.
        """
        if isinstance(key, slice):
            if key.step is not None:
                raise InvalidArgument("a log has no steps: slice the array, log[a:b].to_numpy(dtype)[::step]")
            return self._part(self._seq(key.start), self._seq(key.stop))
        seq = self._seq(key)
        assert seq is not None
        for record in self._part(seq, seq + 1):
            return record
        raise NoSuchRecord(f"wal_seq {seq} in {self._dir}")

    def between(self, start: TimeLike | None = None, stop: TimeLike | None = None) -> LogRange:
        """The records from one time up to, but not including, another.

        Times are datetimes (without a zone: local time), NumPy or pandas times, ISO 8601 text, or nanoseconds
        since 1970. Where the clock stepped backward, records after the step count as no older than those before.

        >>> log.between("2026-01-01T12:00:00Z", "2026-01-01T12:00:10Z").to_pandas()
        """
        with self._open() as reader:
            first = None if start is None else reader.seek_time(to_ns(start))
            end = None if stop is None else reader.seek_time(to_ns(stop))
        return self._part(first, end)

    def _part(self, start: int | None, stop: int | None) -> LogRange:
        if self._start is not None:
            start = self._start if start is None else max(start, self._start)
        if self._stop is not None:
            stop = self._stop if stop is None else min(stop, self._stop)
        return LogRange(self._dir, self._flags, start, stop)

    def _seq(self, key: Any) -> int | None:
        if key is None:
            return None
        seq = int(key.__index__())
        if seq < 0:
            with self._open() as reader:
                seq = max(self._bounds(reader)[1] + seq, 0)
        return seq

    # ---- reading ----

    def __len__(self) -> int:
        """How many records; counted from the index, without reading them."""
        with self._open() as reader:
            return reader._range_stats(*self._bounds(reader))[0]

    def counts(self) -> tuple[int, int]:
        """How many records, and how many bytes their frames have; from the index, without reading them."""
        with self._open() as reader:
            return reader._range_stats(*self._bounds(reader))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Record]:
        """The records one by one."""
        return self._iterate(self._placed())

    def follow(
        self, timeout: float | None = None, *, from_: int | Literal["first", "end"] | TimeLike | None = None
    ) -> Iterator[Record]:
        """The records, and those that are appended meanwhile; ends when none came for `timeout` seconds.

        Starts where the range starts, or at `from_` as in :class:`~ombus.LogConsumer`.

        >>> for record in log.follow(timeout=10, from_="end"):
        ...     print(record)
        """
        from .log_consumer import place

        reader = self._open()
        if from_ is None:
            self._seek(reader, self._bounds(reader)[0], self._stop)
        else:
            place(reader, from_)
            reader.seek(reader.position, self._stop)
        reader.timeout = timeout
        return self._iterate(reader)

    def batches(self, rows: int = ARROW_ROWS) -> Iterator[LogBatch]:
        """The records as columns, up to `rows` at a time (at most 65536, and 64 MiB)."""
        with self._placed() as reader:
            while True:
                try:
                    batch = LogBatch(*reader._poll_columns(rows))
                except LogSkipped as skipped:
                    _warn(skipped)
                    continue
                if not len(batch):
                    return
                yield batch

    def to_numpy(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """All payloads as one array, copied once; all must have the dtype's size.

        >>> log[:1000].to_numpy([("price", "<i8"), ("volume", "<i8")])["price"].max()
        """
        dtype = fixed_dtype(dtype)
        with self._open() as reader:
            start, stop = self._bounds(reader)
            parts: list[npt.NDArray[Any]] = [np.empty(reader._range_stats(start, stop)[0], dtype)]
            self._seek(reader, start, stop)
            rows = _fill(reader, parts[0])
            # The count is the index's, which cannot see damage or what a range without an end has got since.
            while rows == len(parts[-1]) and reader.position < stop:
                parts.append(np.empty(1024, dtype))
                rows = _fill(reader, parts[-1])
        parts[-1] = parts[-1][:rows]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def to_arrow(self) -> pyarrow.Table:
        """All records as a pyarrow Table.

        For more than fits into memory use ``pyarrow.RecordBatchReader.from_stream(log)``.
        """
        import pyarrow as pa

        try:
            return pa.RecordBatchReader.from_stream(self).read_all()
        except (pa.ArrowException, OSError) as error:
            raise typed_error(error) from None

    def to_pandas(self) -> pandas.DataFrame:
        """All records as a pandas DataFrame; through pyarrow where that is installed."""
        import pandas as pd

        try:
            import pyarrow  # noqa: F401
        except ImportError:
            return pd.concat([_frame(pd, batch) for batch in self.batches()] or [_frame(pd, None)], ignore_index=True)
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The range as an Arrow C stream, for whoever knows the PyCapsule protocol."""
        with self._open() as reader:
            for attempt in range(3):
                start, stop = self._bounds(reader)
                try:
                    return _native.arrow_stream(
                        self._dir, self._flags, start, max(start, stop), ARROW_ROWS, ARROW_BYTES
                    )
                except LogPruned:  # retention was faster: where no start was asked for, the next record will do
                    if self._start is not None or attempt == 2:
                        raise
        raise AssertionError

    # ---- readers ----

    def _open(self) -> _Reader:
        return _Reader(self._dir, self._flags, False, 0)

    def _bounds(self, reader: _native.LogReader) -> tuple[int, int]:
        start = max(reader.first_seq, 1) if self._start is None else self._start
        stop = reader.last_seq + 1 if self._stop is None else self._stop
        return start, max(start, stop)

    def _seek(self, reader: _native.LogReader, start: int, stop: int | None) -> None:
        try:
            reader.seek(start, stop)
        except LogPruned:
            if self._start is not None:
                raise

    def _placed(self) -> _Reader:
        reader = self._open()
        self._seek(reader, *self._bounds(reader))
        return reader

    def _iterate(self, reader: _Reader) -> Iterator[Record]:
        return reader if not self._flags & _native.LOG_SKIP_CORRUPT else _passing_over(reader)

    def __repr__(self) -> str:
        start = "" if self._start is None else self._start
        stop = "" if self._stop is None else self._stop
        return f"<{type(self).__name__} {self._dir} [{start}:{stop}]>"


class Log(LogRange, Closing):
    """A log on this host, for reading; by its directory or its address.

    >>> log = ombus.Log("/tmp/engine-0")
    >>> len(log), log.first_seq, log.last_seq
    (1000, 1, 1000)
    >>> log[10].payload
    b'hello'
    >>> log.between("2026-01-01T12:00Z", "2026-01-01T13:00Z").to_pandas()

    A log that is being written is read as it is at that moment. `crc=False` does not check checksums;
    `skip_corrupt` reads on behind damage, with a warning for each; `durable_only` reads what a power cut
    can no longer take back.
    """

    def __init__(
        self, path: LogPath, *, crc: bool = True, skip_corrupt: bool = False, durable_only: bool = False
    ) -> None:
        super().__init__(path, reader_flags(crc, skip_corrupt, durable_only), None, None)
        self._reader = self._open()

    @property
    def path(self) -> str:
        """The directory."""
        return self._dir

    @property
    def first_seq(self) -> int:
        """First wal_seq that is still there; 0 = the log is empty."""
        return self._reader.first_seq

    @property
    def last_seq(self) -> int:
        """Last wal_seq; 0 = the log is empty."""
        return self._reader.last_seq

    @property
    def durable_seq(self) -> int:
        """Everything up to this wal_seq is on disk."""
        return self._reader.durable_seq

    @property
    def id(self) -> str:
        """The log's random identity in hexadecimal: a log that was created anew has another one."""
        return self._reader.id.hex()

    @property
    def epoch(self) -> int:
        """How often the log has been opened for writing."""
        return self._reader.epoch

    def info(self) -> LogInfo:
        """All that is known about the log as a whole."""
        return log_info(self._dir)

    def segments(self) -> list[SegmentInfo]:
        """Its segment files, oldest first."""
        return log_segments(self._dir)

    def consumers(self) -> list[LogConsumerInfo]:
        """Its named consumers."""
        return log_consumers(self._dir)

    def close(self) -> None:
        """Let go of the log's files; ranges made from it can still be read."""
        self._reader.close()


class _Reader(_native.LogReader, Closing):
    """A reader that a `with` block closes."""

    __slots__ = ()


def _fill(reader: _native.LogReader, array: npt.NDArray[Any]) -> int:
    """Copy payloads into the array, from its start on; how many."""
    size = array.dtype.itemsize
    rows, odd_seq, odd_size = reader._fill(array.view(np.uint8), size)
    if odd_seq:
        raise InvalidArgument(f"the payload of wal_seq {odd_seq} has {odd_size} bytes, {array.dtype!r} has {size}")
    return rows


def _passing_over(reader: _native.LogReader) -> Iterator[Record]:
    while True:
        try:
            yield next(reader)
        except LogSkipped as skipped:
            _warn(skipped)
        except StopIteration:
            return


def _warn(skipped: LogSkipped) -> None:
    warnings.warn(str(skipped), RuntimeWarning, stacklevel=3)


def typed_error(error: Exception) -> Exception:
    """The exception that an Arrow stream could only pass on as text."""
    found = re.search(r"(OM_ERR_\w+): .*?\((.*)\)", str(error), re.DOTALL)
    code = _native.error_codes().get(found[1]) if found else None
    return error if not found or code is None else from_code(code, found[2])


def _frame(pd: Any, batch: LogBatch | None) -> pandas.DataFrame:
    columns: dict[str, Any] = {
        "wal_seq": np.empty(0, np.int64) if batch is None else batch.seqs.astype(np.int64),
        "wal_type": np.empty(0, np.int16) if batch is None else batch.types.astype(np.int16),
        "timestamp": pd.to_datetime([] if batch is None else batch.timestamps, utc=True).as_unit("ns"),
        "payload": pd.Series([] if batch is None else [bytes(payload) for payload in batch.payloads], dtype=object),
    }
    return pd.DataFrame(columns)
