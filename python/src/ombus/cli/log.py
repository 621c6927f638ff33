"""`ombus log`: describe, read, check, mend, convert and prune logs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice

from .. import _native
from .._native import Record
from ..damage import Damage
from ..errors import InvalidArgument, LogSkipped
from ..log import Log, LogRange
from ..log_info import (
    LogReport,
    forget_consumer,
    log_consumers,
    log_dir,
    log_info,
    log_segments,
    prune_log,
    repair_log,
    verify_log,
)
from ..times import format_ns
from . import log_transfer
from .commands import Commands, add_command, add_group, duration, size
from .lag import log_rows
from .output import Value, hex_lines, preview, print_fields, print_json, print_table
from .progress import Progress
from .ranges import add_range, selected

_DIR = "the log's directory, or its address: log:///var/ombus/engine-0"


def add_commands(groups: Commands) -> None:
    """Add `log` and its subcommands."""
    commands = add_group(groups, "log", "logs on disk")
    info = add_command(commands, "info", _info, "describe a log")
    info.add_argument("dir", metavar="DIR", help=_DIR)
    info.add_argument("--segments", action="store_true", help="also list its segment files")
    tail = add_command(commands, "tail", _tail, "print the last records, and new ones as they are appended")
    tail.add_argument("dir", metavar="DIR", help=_DIR)
    tail.add_argument("--lines", type=int, default=10, metavar="N", help="start N records before the end (10)")
    tail.add_argument("--count", type=int, metavar="N", help="stop after N records")
    tail.add_argument("--timeout", type=float, metavar="S", help="stop after S seconds of silence")
    dump = add_command(commands, "dump", _dump, "print records", ("text", "json", "hex"))
    dump.add_argument("dir", metavar="DIR", help=_DIR)
    add_range(dump)
    dump.add_argument("--type", type=int, action="append", metavar="N", help="only this wal_type; may be repeated")
    dump.add_argument("--count", type=int, metavar="N", help="stop after N records")
    dump.add_argument("--skip-corrupt", action="store_true", help="go on behind damage")
    verify = add_command(commands, "verify", _verify, "check every byte; exit code 1 when the log is damaged")
    verify.add_argument("dir", metavar="DIR", help=_DIR)
    repair = add_command(commands, "repair", _repair, "cut a torn tail, rewrite wrong indexes; nothing is deleted")
    repair.add_argument("dir", metavar="DIR", help=_DIR)
    repair.add_argument("--salvage", action="store_true", help="also cover damage in the middle")
    log_transfer.add_commands(commands)
    prune = add_command(commands, "prune", _prune, "remove old segments")
    prune.add_argument("dir", metavar="DIR", help=_DIR)
    prune.add_argument("--max-bytes", type=size, default=0, metavar="SIZE", help="while the log is larger: 500M, 20G")
    prune.add_argument("--max-age", type=duration, metavar="TIME", help="segments older than this: 90m, 12h, 7d")
    prune.add_argument("--keep-from", type=int, default=0, metavar="SEQ", help="never this wal_seq or a later one")
    prune.add_argument("--ignore-consumers", action="store_true", help="also what a named consumer has not read")
    consumers = add_command(commands, "consumers", _consumers, "list the named consumers, set or forget one")
    consumers.add_argument("dir", metavar="DIR", help=_DIR)
    consumers.add_argument("--set", nargs=2, metavar=("NAME", "SEQ"), help="NAME needs nothing up to SEQ any more")
    consumers.add_argument("--forget", metavar="NAME", help="remove a consumer, so that pruning no longer waits for it")


# ---- looking ----


def _info(options: argparse.Namespace) -> None:
    info = log_info(options.dir)
    consumers = log_rows(options.dir)
    fields: dict[str, Value] = {"dir": os.path.abspath(log_dir(options.dir)), **asdict(info)}
    segments: list[dict[str, Value]] = [asdict(segment) for segment in log_segments(options.dir)]
    if options.format == "json":
        print_json({**fields, "consumers": consumers, "segment_files": segments if options.segments else None})
        return
    for key in ("created_ns", "first_time_ns", "last_time_ns"):
        value = fields.pop(key)
        assert isinstance(value, int)
        fields[key.removesuffix("_ns")] = format_ns(value) if value else "-"
    print_fields(fields)
    if consumers:
        print()
        print_table(consumers)
    if options.segments:
        print()
        print_table(segments)


def _tail(options: argparse.Namespace) -> None:
    with Log(options.dir) as log:
        start = max(log.last_seq + 1 - options.lines, 1)
        _print_records(islice(log.follow(options.timeout, from_=start), options.count), options.format)


def _dump(options: argparse.Namespace) -> None:
    with Log(options.dir, skip_corrupt=options.skip_corrupt) as log:
        part = selected(log, options)
        records = (record for record in _said(part) if not options.type or record.type in options.type)
        _print_records(islice(records, options.count), options.format)


def _said(part: LogRange) -> Iterator[Record]:
    """The records; damage that is passed over is said."""
    reader = part._placed()
    while True:
        try:
            yield next(reader)
        except LogSkipped as skipped:
            print(f"ombus: {skipped}", file=sys.stderr)
        except StopIteration:
            return


def _print_records(records: Iterable[Record], form: str) -> None:
    for record in records:
        payload = record.payload
        if form == "json":
            print_json(
                {
                    "wal_seq": record.seq,
                    "wal_type": record.type,
                    "timestamp_ns": record.timestamp_ns,
                    "payload_hex": payload.hex(),
                }
            )
            continue
        shown = "" if form == "hex" else "  " + preview(payload)
        time = format_ns(record.timestamp_ns)
        print(f"{record.seq:>12} {time} {record.type:>3} {len(payload):>5} B{shown}", flush=form == "text")
        if form == "hex":
            for line in hex_lines(payload):
                print(f"    {line}")


# ---- checking and mending ----


def _verify(options: argparse.Namespace) -> int:
    with Progress("verify") as progress:
        report = verify_log(options.dir, progress)
    _print_report(report, options.format, [])
    return 0 if report.ok else 1


def _repair(options: argparse.Namespace) -> int:
    directory = log_dir(options.dir)
    before = set(os.listdir(directory)) if os.path.isdir(directory) else set()
    with Progress("repair") as progress:
        report = repair_log(options.dir, salvage=options.salvage, progress=progress)
    moved = sorted(name for name in set(os.listdir(directory)) - before if ".cut-" in name)
    _print_report(report, options.format, moved)
    if options.format == "text":
        for name in moved:
            size_bytes = os.path.getsize(os.path.join(directory, name))
            print(f"moved {size_bytes} bytes into {os.path.join(directory, name)}")
        if report.ok and not moved:
            print("nothing had to be cut")
    return 0 if report.ok else 1


def _print_report(report: LogReport, form: str, moved: list[str]) -> None:
    if form == "json":
        fields = asdict(report)
        fields["found"] = [_damage_row(damage) for damage in report.found]
        fields["error"] = None if report.error is None else str(report.error)
        print_json({"ok": report.ok, **fields, "moved": moved})
        return
    for damage in report.found:
        print(f"{damage.kind.name.lower()}: {damage.text or _place(damage)}")
    what = f"{report.records} records, wal_seq {report.first_seq} to {report.last_seq}, in {report.segments} segments"
    print(f"{'ok' if report.ok else 'DAMAGED'}: {what}; {report.bytes} bytes")
    if report.tail_bytes:
        print(f"torn tail of {report.tail_bytes} bytes, {report.tail_records} whole records, never reported durable")
    if report.indexes_wrong:
        print(f"{report.indexes_wrong} index files were wrong; readers rebuild them")
    if report.error is not None:
        print(f"ombus: {report.error}", file=sys.stderr)


def _damage_row(damage: Damage) -> dict[str, Value]:
    return {**asdict(damage), "kind": damage.kind.name.lower()}


def _place(damage: Damage) -> str:
    last = damage.lost_last_seq or "the end"
    return (
        f"segment {damage.segment}, offset {damage.offset}, {damage.size_bytes} bytes; "
        f"wal_seq {damage.lost_first_seq} to {last}"
    )


# ---- retention ----


def _prune(options: argparse.Namespace) -> None:
    if not options.max_bytes and not options.max_age:
        raise InvalidArgument("say what may go: --max-bytes or --max-age")
    removed = prune_log(
        options.dir,
        max_bytes=options.max_bytes,
        max_age=options.max_age,
        keep_from=options.keep_from,
        for_consumers=not options.ignore_consumers,
    )
    info = log_info(options.dir)
    if options.format == "json":
        print_json({"removed_segments": removed, "first_seq": info.first_seq, "disk_bytes": info.disk_bytes})
    else:
        print(f"{removed} segments removed; the log now starts at wal_seq {info.first_seq}")


def _consumers(options: argparse.Namespace) -> None:
    if options.set:
        name, seq = options.set
        if not seq.isdigit():
            raise InvalidArgument(f"{seq!r} is no wal_seq")
        log_info(options.dir)  # not a directory without a log
        _native.log_consumer_save(log_dir(options.dir), name, int(seq))
    if options.forget:
        forget_consumer(options.dir, options.forget)
    rows = log_rows(options.dir)
    if options.format == "json":
        print_json(rows)
    else:
        print_table(rows)
    for consumer in log_consumers(options.dir):
        if consumer.error is not None:
            print(f"ombus: consumer {consumer.name}: {consumer.error}", file=sys.stderr)
