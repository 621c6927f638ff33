"""Where the fields of a fixed-size record are, read from a NumPy dtype or a ctypes.Structure."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: What a field holds. A "binary" or "string" may have any size, the others that of their machine type.
KINDS = ("int", "uint", "float", "bool", "binary", "string")

#: A record's description.
Record = npt.DTypeLike | type[ctypes.Structure]


class Field(NamedTuple):
    """One value inside a record."""

    name: str
    kind: str
    size_bytes: int
    offset: int


def fields(record: Any) -> list[Field]:
    """The fields of a record in the order of their offsets; nested ones are named ``outer_inner``.

    >>> fields(np.dtype([("id", "<u8"), ("price", "<f8", 2), ("code", "S4")]))[1:]  # doctest: +NORMALIZE_WHITESPACE
    [Field(name='price_0', kind='float', size_bytes=8, offset=8),
     Field(name='price_1', kind='float', size_bytes=8, offset=16),
     Field(name='code', kind='string', size_bytes=4, offset=24)]
    """
    if isinstance(record, type) and issubclass(record, ctypes.Structure):
        found = list(_ctypes_fields(record, "", 0))
    elif isinstance(record, type) and issubclass(record, ctypes.Union):
        raise TypeError(f"{record.__name__} is a union: its fields share their bytes")
    else:
        dtype = np.dtype(record)
        if dtype.names is None:
            raise TypeError(f"{dtype} has no fields: use a structured dtype, such as [('price', '<i8')]")
        found = list(_numpy_fields(dtype, "", 0))
    if not found:
        raise TypeError("a record without fields has no columns")
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise TypeError(f"two fields would be called {name!r}")
    return sorted(found, key=lambda one: one.offset)


def _numpy_fields(dtype: np.dtype[Any], name: str, offset: int) -> Iterator[Field]:
    if dtype.names is not None:
        assert dtype.fields is not None
        for inner in dtype.names:
            kind, at = dtype.fields[inner][:2]
            yield from _numpy_fields(kind, f"{name}_{inner}" if name else inner, offset + at)
    elif dtype.subdtype is not None:
        element, shape = dtype.subdtype
        if element in (np.dtype("u1"), np.dtype("V1")):  # bytes
            yield Field(name, "binary", dtype.itemsize, offset)
        else:
            for index in range(int(np.prod(shape))):
                yield from _numpy_fields(element, f"{name}_{index}", offset + index * element.itemsize)
    else:
        yield from _numpy_scalar(dtype, name, offset)


def _numpy_scalar(dtype: np.dtype[Any], name: str, offset: int) -> Iterator[Field]:
    kind = {"i": "int", "u": "uint", "f": "float", "b": "bool", "S": "string", "V": "padding"}.get(dtype.kind)
    if kind is None or (kind == "float" and dtype.itemsize not in (4, 8)):
        raise TypeError(f"field {name!r}: a payload column cannot be {dtype}")
    if dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big"):
        raise TypeError(f"field {name!r} is big-endian: payloads are little-endian, as in {dtype.newbyteorder('<')}")
    if kind != "padding":
        yield Field(name, kind, dtype.itemsize, offset)


_CTYPES_KINDS: dict[Any, str] = {
    **dict.fromkeys((ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64, ctypes.c_longlong), "int"),
    **dict.fromkeys((ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_ulonglong), "uint"),
    ctypes.c_float: "float",
    ctypes.c_double: "float",
    ctypes.c_bool: "bool",
    ctypes.c_char: "string",
}


def _ctypes_fields(structure: type[ctypes.Structure], name: str, offset: int) -> Iterator[Field]:
    if issubclass(structure, ctypes.BigEndianStructure):
        raise TypeError(f"{structure.__name__} is big-endian: payloads are little-endian")
    inherited = (base.__dict__.get("_fields_", ()) for base in reversed(structure.__mro__))
    for inner, kind, *bits in (one for part in inherited for one in part):
        where = f"{name}_{inner}" if name else inner
        if bits:
            raise TypeError(f"field {where!r}: bit fields have no column type")
        yield from _ctypes_field(kind, where, offset + getattr(structure, inner).offset)


def _ctypes_field(kind: Any, name: str, offset: int) -> Iterator[Field]:
    if issubclass(kind, ctypes.Structure):
        yield from _ctypes_fields(kind, name, offset)
    elif issubclass(kind, ctypes.Array):
        element = kind._type_
        if element is ctypes.c_char:
            yield Field(name, "string", kind._length_, offset)
        elif element is ctypes.c_uint8:
            yield Field(name, "binary", kind._length_, offset)
        else:
            for index in range(kind._length_):
                yield from _ctypes_field(element, f"{name}_{index}", offset + index * ctypes.sizeof(element))
    elif kind in _CTYPES_KINDS:
        yield Field(name, _CTYPES_KINDS[kind], ctypes.sizeof(kind), offset)
    else:
        raise TypeError(f"field {name!r}: a payload column cannot be {kind.__name__}")
