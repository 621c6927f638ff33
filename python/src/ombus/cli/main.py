"""Entry point: finds the subcommand, turns errors into one line and an exit code.

0 = done, 1 = the operation failed or found damage (the message says why and what to do), 2 = wrong usage,
130 = interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import Error
from . import checkpoint, jar, lag, log, ring


def parser() -> argparse.ArgumentParser:
    """The whole command line; every group of subcommands adds its own."""
    top = argparse.ArgumentParser(prog="ombus", description="Look at and use ombus streams.")
    top.add_argument("--version", action="version", version=f"ombus {__version__}")
    groups = top.add_subparsers(metavar="GROUP", required=True)
    ring.add_commands(groups)
    log.add_commands(groups)
    lag.add_command_to(groups)
    checkpoint.add_commands(groups)
    jar.add_command_to(groups)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        code: int | None = options.run(options)
        sys.stdout.flush()
    except Error as error:
        print(f"ombus: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `ombus ring tail ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush into it
        code = 0
    return code or 0
