"""Many records at once, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ._native import Record, RingView
from .closing import Closing
from .errors import InvalidArgument

Column = bytes | bytearray


def fixed_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype, if its items have a size in bytes."""
    dtype = np.dtype(dtype)
    if dtype.itemsize == 0 or dtype.hasobject:
        raise InvalidArgument(f"{dtype!r} has no fixed size in bytes")
    return dtype


class Payloads(Sequence[memoryview]):
    """The payloads of a batch as memoryviews into its buffer; nothing is copied."""

    __slots__ = ("_buffer", "_sizes", "_starts")

    def __init__(
        self,
        buffer: Column | RingView,
        starts: npt.NDArray[Any],
        sizes: npt.NDArray[np.uint32],
    ) -> None:
        self._buffer = buffer
        self._starts = starts
        self._sizes = sizes

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, index: int) -> memoryview: ...
    @overload
    def __getitem__(self, index: slice) -> list[memoryview]: ...
    def __getitem__(self, index: int | slice) -> memoryview | list[memoryview]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        size = int(self._sizes[index])
        start = int(self._starts[index if index >= 0 else len(self) + index])
        return memoryview(self._buffer)[start : start + size]

    def __iter__(self) -> Iterator[memoryview]:
        whole = memoryview(self._buffer)
        for start, size in zip(self._starts[: len(self)].tolist(), self._sizes.tolist(), strict=True):
            yield whole[start : start + size]


class RecordBatch:
    """Records copied out of a ring: columns that stay valid for as long as anything refers to them.

    >>> batch = consumer.poll_batch()
    >>> batch.seqs
    array([1, 2, 3], dtype=uint64)
    >>> bytes(batch.payloads[0])
    b'hello'

    Iterating gives :class:`~ombus.Record` objects, `to_numpy(dtype)` the payloads as one array.
    """

    __slots__ = ("_buffer", "_offsets", "_seqs", "_types")

    def __init__(self, seqs: Column, types: Column, offsets: Column, payloads: Column | RingView) -> None:
        self._seqs = seqs
        self._types = types
        self._offsets = offsets
        self._buffer = payloads

    @property
    def seqs(self) -> npt.NDArray[np.uint64]:
        """wal_seq of each record."""
        return np.frombuffer(self._seqs, np.uint64)

    @property
    def types(self) -> npt.NDArray[np.uint8]:
        """wal_type of each record."""
        return np.frombuffer(self._types, np.uint8)

    @property
    def offsets(self) -> npt.NDArray[Any]:
        """Where each payload starts in the batch's buffer, and as a last value where the last one ends.

        That is Arrow's layout for binary columns. A zero-copy batch has no last value: there is room
        between its payloads.
        """
        return np.frombuffer(self._offsets, np.uint32)

    @property
    def sizes(self) -> npt.NDArray[np.uint32]:
        """Size of each payload in bytes."""
        offsets: npt.NDArray[np.uint32] = self.offsets
        return offsets[1:] - offsets[:-1]

    @property
    def payloads(self) -> Payloads:
        """The payloads as memoryviews into the batch's buffer."""
        return Payloads(self._buffer, self.offsets, self.sizes)

    def to_numpy(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The payloads as one array of `dtype`, without a copy; all must have the dtype's size.

        >>> batch.to_numpy([("price", "<i8"), ("volume", "<i8")])["price"].sum()
        """
        return np.frombuffer(memoryview(self._buffer), self._checked_dtype(dtype), count=len(self))

    def _checked_dtype(self, dtype: npt.DTypeLike) -> np.dtype[Any]:
        dtype = fixed_dtype(dtype)
        sizes = self.sizes
        if len(sizes) and not (sizes == dtype.itemsize).all():
            found = f"{sizes.min()} to {sizes.max()}"
            raise InvalidArgument(f"payloads have {found} bytes, {dtype!r} has {dtype.itemsize}")
        return dtype

    def __len__(self) -> int:
        return len(self._types)

    def __iter__(self) -> Iterator[Record]:
        columns = zip(self.seqs.tolist(), self.types.tolist(), self.payloads, strict=True)
        return (Record(seq, type_, bytes(payload)) for seq, type_, payload in columns)

    def __getitem__(self, index: int) -> Record:
        return Record(self.seqs[index], self.types[index], bytes(self.payloads[index]))

    def __repr__(self) -> str:
        if not len(self):
            return f"<{type(self).__name__} empty>"
        return f"<{type(self).__name__} {len(self)} records, wal_seq {self.seqs[0]} to {self.seqs[-1]}>"


class LogBatch(RecordBatch):
    """Records copied out of a log: as :class:`RecordBatch`, with the time of each append."""

    __slots__ = ("_times",)

    def __init__(self, seqs: Column, types: Column, times: Column, offsets: Column, payloads: Column) -> None:
        super().__init__(seqs, types, offsets, payloads)
        self._times = times

    @property
    def timestamps_ns(self) -> npt.NDArray[np.uint64]:
        """When each record was appended, in nanoseconds since 1970 UTC."""
        return np.frombuffer(self._times, np.uint64)

    @property
    def timestamps(self) -> npt.NDArray[np.datetime64]:
        """The same as NumPy times (UTC).

        >>> batch.timestamps[0]
        np.datetime64('2026-01-01T12:00:00.000000000')
        """
        return np.frombuffer(self._times, "datetime64[ns]")

    def __iter__(self) -> Iterator[Record]:
        columns = zip(self.seqs.tolist(), self.types.tolist(), self.payloads, self.timestamps_ns.tolist(), strict=True)
        return (Record(seq, type_, bytes(payload), ns) for seq, type_, payload, ns in columns)

    def __getitem__(self, index: int) -> Record:
        return Record(self.seqs[index], self.types[index], bytes(self.payloads[index]), int(self.timestamps_ns[index]))


class ZeroCopyBatch(RecordBatch, Closing):
    """Records in place in the ring, which keeps them until the batch is given back.

    Given back by release(), at the end of a `with` block, or by the consumer's next poll. As with a
    bytearray that is a BufferError while a memoryview or array of the batch is alive: delete it, or
    copy what is to be kept. ConsumerStale on giving back means that the producer did not wait
    (`staleness`) and what was read may have been overwritten meanwhile.
    """

    __slots__ = ("_view",)

    def __init__(self, view: RingView) -> None:
        super().__init__(view.seqs, view.types, view.starts, view)
        self._view = view

    @property
    def offsets(self) -> npt.NDArray[Any]:
        """Where each payload starts in the batch's buffer."""
        return np.frombuffer(self._offsets, np.uint64)

    @property
    def sizes(self) -> npt.NDArray[np.uint32]:
        """Size of each payload in bytes."""
        return np.frombuffer(self._view.sizes, np.uint32)

    def to_numpy(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The payloads as one array of `dtype`, with the slot size as its stride: a view."""
        dtype = self._checked_dtype(dtype)
        if not len(self):
            return np.empty(0, dtype)
        starts = self.offsets
        # frombuffer() holds the view's export; ndarray() alone would let go of it.
        memory = np.frombuffer(memoryview(self._view), np.uint8)
        stride = int(starts[1] - starts[0]) if len(starts) > 1 else dtype.itemsize
        return np.ndarray((len(starts),), dtype, memory, int(starts[0]), (stride,))

    @property
    def released(self) -> bool:
        """Whether the records were given back."""
        return self._view.released

    def release(self) -> None:
        """Give the records back to the ring now."""
        self._view.release()

    close = release
