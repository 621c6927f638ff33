"""How a subcommand is added: each has --format and a function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

# argparse' own type is private.
Commands = Any


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], None], description: str
) -> argparse.ArgumentParser:
    """Add the command `name`, which `run` does."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=description, description=description)
    command.add_argument("--format", choices=("text", "json"), default="text")
    command.set_defaults(run=run)
    return command
