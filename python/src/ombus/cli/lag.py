"""`ombus lag`: how far every reader of a stream is behind. A Spark query is a named consumer of the logs it reads."""

from __future__ import annotations

import argparse
import time

from ..errors import InvalidArgument
from ..log_info import log_consumers, log_info
from ..rings import ConsumerState, inspect
from ..uri import StreamUri
from .command import Commands, add_command
from .output import Value, print_json, print_table


def add_commands(groups: Commands) -> None:
    """Add `lag`."""
    lag = add_command(groups, "lag", _lag, "show how far the readers of streams are behind")
    lag.add_argument("uri", nargs="+", help="log:///dir: its named consumers; shm://name: those of the ring")


def _lag(options: argparse.Namespace) -> None:
    rows = [row for uri in options.uri for row in _rows(uri)]
    if options.format == "json":
        print_json(rows)
    elif rows:
        print_table(rows)
    else:
        print("no reader has saved a position")


def _rows(uri: str) -> list[dict[str, Value]]:
    address = StreamUri.parse(uri)
    if address.scheme == "tcp":
        raise InvalidArgument(f"{uri}: a server does not tell its clients' positions; ask where the log is")
    rows = _ring_rows(uri, address) if address.scheme == "shm" else []
    if address.log_dir is not None:
        rows += _log_rows(address.stream, address.log_dir)
    return rows


def _log_rows(stream: str, directory: str) -> list[dict[str, Value]]:
    last_seq = log_info(directory).last_seq
    return [
        {
            "stream": stream,
            "consumer": consumer.name,
            "wal_seq": consumer.wal_seq,
            "last_wal_seq": last_seq,
            "lag": max(last_seq - consumer.wal_seq, 0),
            "saved_s_ago": round(max(time.time_ns() - consumer.saved_ns, 0) / 1e9),
            "state": str(consumer.error) if consumer.error else "ok",
        }
        for consumer in log_consumers(directory)
    ]


def _ring_rows(uri: str, address: StreamUri) -> list[dict[str, Value]]:
    ring = inspect("shm://" + uri.removeprefix("shm://").partition("?")[0])
    return [
        {
            "stream": address.stream,
            "consumer": f"ring slot {slot.index}, pid {slot.pid}",
            "wal_seq": slot.wal_seq,
            "last_wal_seq": ring.last_wal_seq,
            "lag": slot.lag,
            "saved_s_ago": 0,
            "state": slot.state.name.lower(),
        }
        for slot in ring.consumers
        if slot.state is not ConsumerState.FREE
    ]
