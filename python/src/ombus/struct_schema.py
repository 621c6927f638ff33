"""The Spark source's payloadSchema, from the description of a record that a Python program has anyway."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class _Field(NamedTuple):
    """One value inside a record, its type in the words of the schema."""

    name: str
    type: str
    size_bytes: int
    alignment: int
    offset: int


def struct_schema(record: Any) -> str:
    """The payloadSchema of records that are a NumPy structured dtype or a ctypes.Structure.

    >>> struct_schema(np.dtype([("id", "<u4"), ("price", "<f8"), ("code", "S4")]))
    'id uint32, price double @ 4, code string(4)'

    Fields keep their places: where one does not lie as a C compiler would put it, its offset is given, so that the
    schema is right for the source's default ``payloadAlignment``. Fields of nested records are called ``outer_inner``,
    elements of arrays ``name_0``, ``name_1``. Arrays of bytes become binary; void fields are padding.
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
    return ", ".join(_places(sorted(found, key=lambda field: field.offset)))


def _places(fields: list[_Field]) -> Iterator[str]:
    end = 0
    for field in fields:
        name = field.name if re.fullmatch(r"[^\W\d]\w*", field.name) else f"`{field.name}`"
        natural = -(-end // field.alignment) * field.alignment
        yield f"{name} {field.type}" + ("" if field.offset == natural else f" @ {field.offset}")
        end = field.offset + field.size_bytes


# ---- NumPy ----

_NUMPY_TYPES = {
    **{
        f"{sign}{bytes_}": f"{name}{8 * bytes_}"
        for sign, name in (("i", "int"), ("u", "uint"))
        for bytes_ in (1, 2, 4, 8)
    },
    "f4": "float",
    "f8": "double",
    "b1": "boolean",
}
_TIMES = {np.dtype(f"<M8[{unit}]"): f"timestamp({unit})" for unit in ("ns", "us", "ms", "s")}


def _numpy_fields(dtype: np.dtype[Any], name: str, offset: int) -> Iterator[_Field]:
    if dtype.names is not None:
        assert dtype.fields is not None
        for inner in dtype.names:
            kind, at = dtype.fields[inner][:2]
            yield from _numpy_fields(kind, f"{name}_{inner}" if name else inner, offset + at)
    elif dtype.subdtype is not None:
        element, shape = dtype.subdtype
        if element == np.dtype("u1"):
            yield _Field(name, f"binary({dtype.itemsize})", dtype.itemsize, 1, offset)
            return
        for index in range(int(np.prod(shape))):
            yield from _numpy_fields(element, f"{name}_{index}", offset + index * element.itemsize)
    elif dtype.kind != "V":
        yield _numpy_field(dtype, name, offset)


def _numpy_field(dtype: np.dtype[Any], name: str, offset: int) -> _Field:
    if not dtype.newbyteorder("<") == dtype:
        raise TypeError(f"field {name!r} is big-endian: payloads are little-endian, as {dtype.newbyteorder('<').str}")
    size = dtype.itemsize
    if dtype.kind == "S" and size:
        return _Field(name, f"string({size})", size, 1, offset)
    known = _TIMES.get(dtype) or _NUMPY_TYPES.get(f"{dtype.kind}{size}")
    if known is None:
        raise TypeError(f"field {name!r}: there is no column type for {dtype}")
    return _Field(name, known, size, size, offset)


# ---- ctypes ----

_CTYPES_WHOLE = {
    "int": (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64, ctypes.c_long, ctypes.c_longlong),
    "uint": (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_ulong, ctypes.c_ulonglong),
}
_CTYPES_TYPES: dict[Any, str] = {
    **{kind: f"{name}{8 * ctypes.sizeof(kind)}" for name, kinds in _CTYPES_WHOLE.items() for kind in kinds},
    ctypes.c_float: "float",
    ctypes.c_double: "double",
    ctypes.c_bool: "boolean",
    ctypes.c_char: "string(1)",
}


def _ctypes_fields(structure: type[ctypes.Structure], name: str, offset: int) -> Iterator[_Field]:
    if hasattr(structure, "_swappedbytes_"):
        raise TypeError(f"{structure.__name__} has the byte order of another machine: payloads are little-endian")
    for base in reversed(structure.__mro__):
        for inner, kind, *bits in base.__dict__.get("_fields_", ()):
            where = f"{name}_{inner}" if name else inner
            if bits:
                raise TypeError(f"field {where!r}: bit fields have no column type")
            yield from _ctypes_field(kind, where, offset + getattr(structure, inner).offset)


def _ctypes_field(kind: Any, name: str, offset: int) -> Iterator[_Field]:
    size = ctypes.sizeof(kind)
    if issubclass(kind, ctypes.Structure):
        yield from _ctypes_fields(kind, name, offset)
    elif issubclass(kind, ctypes.Array):
        element = kind._type_
        as_whole = {ctypes.c_char: "string", ctypes.c_uint8: "binary"}.get(element)
        if as_whole and size:
            yield _Field(name, f"{as_whole}({size})", size, 1, offset)
            return
        for index in range(kind._length_):
            yield from _ctypes_field(element, f"{name}_{index}", offset + index * ctypes.sizeof(element))
    elif kind in _CTYPES_TYPES:
        yield _Field(name, _CTYPES_TYPES[kind], size, size, offset)
    else:
        raise TypeError(f"field {name!r}: there is no column type for {kind.__name__}")
