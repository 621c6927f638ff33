"""`ombus log export` and `import`: Parquet, Arrow IPC and OpenMatch WAL files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from ..errors import Error, InvalidArgument, MissingPackage
from ..log import Log, typed_error
from ..log_info import log_dir
from ..log_producer import LogProducer
from ..openmatch import OpenMatchWal
from ..uri import log_uri
from .commands import Commands, add_command
from .output import Value, print_json
from .progress import Progress
from .ranges import add_range, selected

_KINDS = {".parquet": "parquet", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow"}
_ROWS = 16_384


def add_commands(commands: Commands) -> None:
    """Add `export` and `import`."""
    export = add_command(commands, "export", _export, "write records to a Parquet or Arrow IPC file (needs pyarrow)")
    export.add_argument("dir", metavar="DIR", help="the log's directory or address")
    export.add_argument("file", metavar="FILE", help="ends in .parquet, .arrow, .ipc or .feather, or see --as")
    export.add_argument("--as", dest="kind", choices=("parquet", "arrow"), help="the file's format (by its name)")
    add_range(export)
    importing = add_command(commands, "import", _import, "append the records of a file to a log, which may be new")
    importing.add_argument("dir", metavar="DIR", help="the log's directory or address")
    importing.add_argument("file", metavar="FILE", help="an OpenMatch WAL file, or what export writes")
    importing.add_argument(
        "--as", dest="kind", choices=("openmatch", "parquet", "arrow"), help="the file's format (by its name)"
    )
    importing.add_argument(
        "--crc", choices=("auto", "yes", "no"), default="auto", help="whether OpenMatch records have checksums (auto)"
    )
    importing.add_argument("--skip-damage", action="store_true", help="OpenMatch: go on behind damage")


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingPackage("pip install pyarrow") from None
    return pyarrow


# ---- export ----


def _export(options: argparse.Namespace) -> None:
    pa = _pyarrow()
    kind = options.kind or _KINDS.get(os.path.splitext(options.file)[1])
    if kind is None:
        raise InvalidArgument(f"{options.file}: the name does not say what it is to be: use --as parquet or arrow")
    part_file = f"{options.file}.part"
    with Log(options.dir) as log, Progress("export", "rows") as progress:
        part = selected(log, options)
        total, rows = len(part), 0
        reader = pa.RecordBatchReader.from_stream(part)
        try:
            with _writer(pa, kind, part_file, reader.schema) as writer:
                for batch in _typed_batches(reader):
                    writer.write_batch(batch)
                    rows += batch.num_rows
                    progress(rows, total)
            os.replace(part_file, options.file)  # a file with that name is always whole
        except OSError as reason:
            if isinstance(reason, Error):
                raise
            raise InvalidArgument(f"cannot write {options.file}: {reason}") from None
        finally:
            if os.path.exists(part_file):
                os.unlink(part_file)
    _say(options, {"exported": rows, "file": options.file, "bytes": os.path.getsize(options.file)}, "exported")


def _writer(pa: Any, kind: str, path: str, schema: Any) -> Any:
    if kind == "parquet":
        return pa.parquet.ParquetWriter(path, schema, compression="zstd")
    return pa.ipc.new_file(path, schema)


def _typed_batches(reader: Any) -> Iterator[Any]:
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except Exception as error:
            raise typed_error(error) from None
        yield batch


# ---- import ----


def _import(options: argparse.Namespace) -> int:
    kind = options.kind or _KINDS.get(os.path.splitext(options.file)[1], "openmatch")
    damaged: list[int] = []
    imported = 0
    if not os.path.exists(options.file):
        raise InvalidArgument(f"{options.file}: no such file")
    with (
        LogProducer(log_uri(log_dir(options.dir))) as producer,
        Progress("import", "B") as progress,
    ):
        before = producer.stats().records_published
        try:
            if kind == "openmatch":
                _import_openmatch(producer, options, progress, damaged)
            else:
                _import_arrow(producer, options.file, kind, progress)
        finally:
            imported = producer.stats().records_published - before
            last_seq = producer.last_seq
    fields: dict[str, Value] = {"imported": imported, "last_wal_seq": last_seq}
    _say(options, {**fields, "damaged_offsets": damaged}, "imported")
    return 1 if damaged else 0


def _import_openmatch(
    producer: LogProducer, options: argparse.Namespace, progress: Progress, damaged: list[int]
) -> None:
    crc: bool | Literal["auto"] = "auto" if options.crc == "auto" else options.crc == "yes"
    wal = OpenMatchWal(options.file, crc=crc, skip_damage=options.skip_damage)
    wal.damaged = damaged
    seqs: list[int] = []
    types: list[int] = []
    payloads: list[bytes] = []

    def flush() -> None:
        if seqs:
            _append(producer, np.array(seqs, np.uint64), np.array(types, np.uint8), None, payloads)
            progress(wal.offset, wal.size)
        for column in (seqs, types, payloads):
            column.clear()

    try:
        for seq, kind, payload in wal:
            seqs.append(seq)
            types.append(kind)
            payloads.append(payload)
            if len(seqs) == _ROWS:
                flush()
    finally:
        flush()  # also what came before damage


def _append(producer: LogProducer, seqs: Any, types: Any, times: Any, payloads: list[bytes]) -> None:
    offsets = np.zeros(len(payloads) + 1, np.int32)
    np.cumsum([len(payload) for payload in payloads], out=offsets[1:])
    if times is None:
        times = np.zeros(len(seqs), np.uint64)  # now
    producer._append_columns(seqs, types, times, offsets, b"".join(payloads))


def _import_arrow(producer: LogProducer, path: str, kind: str, progress: Progress) -> None:
    pa = _pyarrow()
    try:
        if kind == "parquet":
            file = pa.parquet.ParquetFile(path)
            total, batches = file.metadata.num_rows, file.iter_batches(_ROWS)
        else:
            reader = pa.ipc.open_file(path)
            total, batches = reader.num_record_batches, (reader.get_batch(i) for i in range(reader.num_record_batches))
    except (pa.ArrowException, OSError) as reason:
        raise InvalidArgument(f"{path} is no {kind} file: {reason}") from None
    done = 0
    for batch in batches:
        _append_batch(producer, pa, path, batch)
        done += batch.num_rows if kind == "parquet" else 1
        progress(done, total)


def _append_batch(producer: LogProducer, pa: Any, path: str, batch: Any) -> None:
    names = set(batch.schema.names)
    if "payload" not in names:
        raise InvalidArgument(
            f"{path} has no column 'payload': a log's columns are wal_seq, wal_type, timestamp, payload"
        )
    rows = batch.num_rows

    def numbers(name: str, default: int, dtype: Any, cast: Any) -> Any:
        if name not in names:
            return np.full(rows, default, dtype)
        column = batch.column(name)
        if column.null_count:
            raise InvalidArgument(f"{path}: column {name!r} has nulls")
        return column.cast(cast).to_numpy(zero_copy_only=False).astype(dtype)

    seqs = numbers("wal_seq", 0, np.uint64, pa.int64())
    types = numbers("wal_type", 1, np.uint8, pa.int16())
    times = _times(pa, batch, path) if "timestamp" in names else None
    payloads = batch.column("payload").cast(pa.binary()).to_pylist()
    if any(payload is None for payload in payloads):
        raise InvalidArgument(f"{path}: column 'payload' has nulls")
    _append(producer, seqs, types, times, payloads)


def _times(pa: Any, batch: Any, path: str) -> Any:
    column = batch.column("timestamp")
    if column.null_count:
        raise InvalidArgument(f"{path}: column 'timestamp' has nulls")
    unit = pa.timestamp("ns", getattr(column.type, "tz", None))
    return column.cast(unit).cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64)


def _say(options: argparse.Namespace, fields: dict[str, Any], what: str) -> None:
    if options.format == "json":
        print_json(fields)
        return
    print(f"{fields[what]} records {what}")
    for offset in fields.get("damaged_offsets", []):
        print(f"damage at offset {offset} was skipped")
