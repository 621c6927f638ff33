"""--from and --to: a part of a log by wal_seq or by time."""

from __future__ import annotations

import argparse

from ..log import LogRange

_PLACE = "a wal_seq (negative: from the end), or a time such as 2026-01-31T12:00:00Z"


def add_range(command: argparse.ArgumentParser) -> None:
    """--from and --to."""
    command.add_argument("--from", dest="start", metavar="PLACE", help=_PLACE)
    command.add_argument("--to", dest="stop", metavar="PLACE", help="the end, which is not included; as --from")


def selected(log: LogRange, options: argparse.Namespace) -> LogRange:
    """The part of the log between --from and --to."""
    if options.start is not None:
        log = log[int(options.start) :] if _is_seq(options.start) else log.between(options.start, None)
    if options.stop is not None:
        log = log[: int(options.stop)] if _is_seq(options.stop) else log.between(None, options.stop)
    return log


def _is_seq(place: str) -> bool:
    return place.removeprefix("-").isdigit()
