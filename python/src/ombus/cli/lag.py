"""`ombus lag`: how far the consumers of logs and rings are behind."""

from __future__ import annotations

import argparse

from ..errors import Error
from ..log import Log
from ..log_info import LogPath, log_consumers, log_dir
from ..rings import ConsumerState, inspect, rings
from ..times import format_ns
from ..uri import StreamUri, log_uri
from .commands import Commands, add_command
from .output import Value, print_json, print_table


def add_command_to(groups: Commands) -> None:
    """Add `lag`."""
    lag = add_command(groups, "lag", _lag, "how far consumers are behind")
    lag.add_argument(
        "stream", nargs="*", help="directories of logs, log:///DIR, shm://NAME; all rings of this host when left out"
    )


def _lag(options: argparse.Namespace) -> None:
    rows: list[dict[str, Value]] = []
    for stream in options.stream or [ring.uri for ring in rings()]:
        if "://" in stream and StreamUri.parse(stream).scheme == "shm":
            rows += _ring_rows(stream)
        if "://" not in stream or StreamUri.parse(stream).log_dir is not None:
            where = log_uri(log_dir(stream))
            rows += [{"stream": where, **row} for row in log_rows(stream)]
    if options.format == "json":
        print_json(rows)
    else:
        print_table(rows)


def _ring_rows(uri: str) -> list[dict[str, Value]]:
    return [
        {
            "stream": uri.partition("?")[0],
            "consumer": f"{slot.index} ({slot.state.name.lower()}, pid {slot.pid})",
            "wal_seq": slot.wal_seq,
            "lag_records": slot.lag,
            "lag_bytes": None,
            "lag_seconds": None,
            "saved": None,
        }
        for slot in inspect(uri).consumers
        if slot.state is not ConsumerState.FREE
    ]


def log_rows(path: LogPath) -> list[dict[str, Value]]:
    """Each named consumer of a log: where it stands and what it has not read yet."""
    rows: list[dict[str, Value]] = []
    with Log(path) as log:
        for consumer in log_consumers(path):
            row: dict[str, Value] = {"consumer": consumer.name, "wal_seq": consumer.wal_seq}
            if consumer.error is None:
                row |= _lag_of(log, consumer.wal_seq)
            else:
                row |= {"wal_seq": None, "lag_records": None, "lag_bytes": None, "lag_seconds": None}
            rows.append({**row, "saved": format_ns(consumer.saved_ns)})
    return rows


def _lag_of(log: Log, wal_seq: int) -> dict[str, Value]:
    """Records, bytes of frames, and seconds between the first record not yet read and the last one."""
    rest = log[wal_seq + 1 :]
    records, size_bytes = rest.counts()
    seconds = 0.0
    if records:
        try:
            first, last = next(iter(rest)), log[log.last_seq]
            seconds = max(last.timestamp_ns - first.timestamp_ns, 0) / 1e9
        except Error:  # pruned or damaged there: the other figures still hold
            seconds = float("nan")
    return {
        "lag_records": records,
        "lag_bytes": size_bytes,
        "lag_seconds": None if seconds != seconds else round(seconds, 6),
    }
