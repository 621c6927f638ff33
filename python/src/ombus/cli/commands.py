"""What the definitions of all commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

# argparse' own type is private.
Commands = Any
# The exit code; None = 0.
Run = Callable[[argparse.Namespace], "int | None"]


def add_group(groups: Commands, name: str, description: str) -> Commands:
    """A group of subcommands."""
    return groups.add_parser(name, help=description, description=description).add_subparsers(
        metavar="COMMAND", required=True
    )


def add_command(
    commands: Commands, name: str, run: Run, description: str, formats: Sequence[str] = ("text", "json")
) -> argparse.ArgumentParser:
    """A subcommand with its --format."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=description, description=description)
    command.add_argument("--format", choices=formats, default="text", help="of the output (text)")
    command.set_defaults(run=run)
    return command


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def size(text: str) -> int:
    """Bytes, also as 500M or 20G.

    >>> size("2k")
    2048
    """
    number, unit = text.rstrip("kKmMgGtT"), text[len(text.rstrip("kKmMgGtT")) :].lower()
    if not number.isdigit() or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: use bytes, or 500M, 20G")
    return int(number) * _UNITS[unit]


def duration(text: str) -> float:
    """Seconds, also as 90m, 12h or 7d.

    >>> duration("2h")
    7200.0
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in _SECONDS else (text, "s")
    try:
        seconds = float(number) * _SECONDS[unit]
    except ValueError:
        seconds = -1
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: use seconds, or 90m, 12h, 7d")
    return seconds
