"""payloadSchema from NumPy and ctypes; that Spark reads it so is tests/python/test_spark_helpers.py's business."""

import ctypes

import numpy as np
import ombus
import pytest

MATCH = np.dtype(
    [
        ("maker_id", "<u8"),
        ("taker_id", "<u8"),
        ("price", "<i8"),
        ("volume", "<i8"),
        ("at", "<M8[ns]"),
        ("product_id", "<u2"),
        ("reserved", "V6"),
    ]
)


class Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_double), ("y", ctypes.c_float))


class Order(ctypes.Structure):
    _fields_ = (
        ("side", ctypes.c_int8),
        ("id", ctypes.c_uint64),
        ("org", ctypes.c_uint16),
        ("code", ctypes.c_char * 5),
        ("key", ctypes.c_uint8 * 3),
        ("at", Point),
        ("levels", ctypes.c_int32 * 2),
        ("live", ctypes.c_bool),
    )


class PackedOrder(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("side", ctypes.c_int8), ("id", ctypes.c_uint64), ("org", ctypes.c_uint16))


class Longer(PackedOrder):
    _fields_ = (("more", ctypes.c_uint32),)


def test_every_numpy_type():
    whole = [(f"{kind}{size}", f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
    dtype = np.dtype([*whole, ("f4", "<f4"), ("f8", "<f8"), ("b", "?"), ("s", "S3"), ("raw", "u1", 4)], align=True)
    assert ombus.struct_schema(dtype) == (
        "i1 int8, i2 int16, i4 int32, i8 int64, u1 uint8, u2 uint16, u4 uint32, u8 uint64, "
        "f4 float, f8 double, b boolean, s string(3), raw binary(4)"
    )


def test_times():
    dtype = [("a", "<M8[ns]"), ("b", "<M8[us]"), ("c", "<M8[ms]"), ("d", "<M8[s]")]
    assert ombus.struct_schema(dtype) == "a timestamp(ns), b timestamp(us), c timestamp(ms), d timestamp(s)"


def test_padding_becomes_no_column():
    assert ombus.struct_schema(MATCH) == (
        "maker_id uint64, taker_id uint64, price int64, volume int64, at timestamp(ns), product_id uint16"
    )


def test_offsets_are_given_where_a_c_compiler_would_choose_others():
    assert ombus.struct_schema([("a", "u1"), ("b", "<u4"), ("c", "<u4")]) == "a uint8, b uint32 @ 1, c uint32 @ 5"
    dtype = np.dtype({"names": ["late", "early"], "formats": ["<i4", "<i8"], "offsets": [24, 0], "itemsize": 64})
    assert ombus.struct_schema(dtype) == "early int64, late int32 @ 24"


def test_nested_records_and_arrays():
    dtype = [("leg", [("price", "<i8"), ("size", "<i8")], 2)]
    assert ombus.struct_schema(dtype) == ("leg_0_price int64, leg_0_size int64, leg_1_price int64, leg_1_size int64")
    assert ombus.struct_schema([("a b", "<i4"), ("1st", "<i4")]) == "`a b` int32, `1st` int32"


def test_ctypes():
    assert ombus.struct_schema(Order) == (
        "side int8, id uint64, org uint16, code string(5), key binary(3), at_x double, at_y float, "
        "levels_0 int32 @ 48, levels_1 int32, live boolean"
    )
    assert Order.at.offset == 32
    assert Order.levels.offset == 48


def test_packed_and_inherited_ctypes():
    assert ombus.struct_schema(PackedOrder) == "side int8, id uint64 @ 1, org uint16 @ 9"
    assert ombus.struct_schema(Longer).startswith(ombus.struct_schema(PackedOrder) + ", more uint32")


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (np.dtype("<i8"), "has no fields"),
        ([("a", ">i4")], "little-endian, as <i4"),
        ([("a", "<f2")], "no column type for float16"),
        ([("a", "O")], "no column type for object"),
        ([("a", "<c8")], "no column type for complex64"),
        ([("a", "V4")], "no columns"),
        (type("U", (ctypes.Union,), {"_fields_": [("a", ctypes.c_int)]}), "share their bytes"),
        (type("B", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_int, 3)]}), "bit fields"),
        (type("P", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_void_p)]}), "c_void_p"),
        (type("E", (ctypes.BigEndianStructure,), {"_fields_": [("a", ctypes.c_int)]}), "byte order"),
        (type("N", (ctypes.Structure,), {"_fields_": []}), "no columns"),
    ],
)
def test_what_has_no_columns(record, says):
    with pytest.raises(TypeError, match=says):
        ombus.struct_schema(record)
