"""DataFrames from ombus streams, with options in Python's words."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import SparkNotReady
from .struct_schema import struct_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "ombus"


def read_stream(spark: SparkSession, uri: str | Iterable[str], **options: object) -> DataFrame:
    """A streaming DataFrame of the stream at `uri`; several addresses are several partitions.

    >>> trades = read_stream(spark, "log:///var/ombus/engine-0", starting_offsets="earliest",
    ...                      payload_format="openmatch")  # doctest: +SKIP

    Options are those of the source (docs/spark.md), by their own names (``startingOffsets``) or in Python's style
    (``starting_offsets``). A dict becomes JSON (``starting_offsets={"engine-0": 17}``), a list is joined with
    commas, a datetime becomes a timestamp, and `payload_schema` may be a NumPy dtype or a ctypes.Structure.
    """
    return _load(spark.readStream, uri, options)


def read(spark: SparkSession, uri: str | Iterable[str], **options: object) -> DataFrame:
    """A DataFrame of what the stream at `uri` holds now; options as with :func:`read_stream`.

    >>> read(spark, "log:///var/ombus/engine-0").where("wal_seq > 1000").count()  # doctest: +SKIP
    """
    return _load(spark.read, uri, options)


def source_options(options: Mapping[str, object]) -> dict[str, str]:
    """Options as the source takes them: camel case, all values text.

    >>> source_options({"starting_offsets": {"engine-0": 17}, "failOnDataLoss": False, "wal_types": [1, 3]})
    {'startingOffsets': '{"engine-0": 17}', 'failOnDataLoss': 'false', 'walTypes': '1,3'}
    """
    named: dict[str, str] = {}
    for name, value in options.items():
        if value is None:
            continue
        key = re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
        if key in named:
            raise TypeError(f"the option {key!r} is given twice")
        named[key] = _text(value)
    return named


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, ctypes.Structure)):
        return struct_schema(value)
    if isinstance(value, Mapping):
        return json.dumps(value)
    if isinstance(value, datetime):
        return value.astimezone().isoformat()
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return ",".join(_text(one) for one in value)
    return str(value)


def _load(reader: Any, uri: str | Iterable[str], options: Mapping[str, object]) -> DataFrame:
    address = uri if isinstance(uri, str) else ",".join(uri)
    load: Callable[[str], DataFrame] = reader.format(FORMAT).options(**source_options(options)).load
    try:
        return load(address)
    except Exception as error:
        if "[DATA_SOURCE_NOT_FOUND]" not in str(error):  # its class differs between releases of Spark
            raise
        raise SparkNotReady(
            "this Spark session has no connector: make it with ombus.spark() or ombus.configure(), "
            "or give its server the jar that `ombus jar` prints"
        ) from error
