"""`ombus jar`: where the Spark connector's jar is, as in `spark-submit --jars $(ombus jar) job.py`."""

from __future__ import annotations

import argparse

from ..spark_session import jar_path
from .commands import Commands, add_command
from .output import print_json


def add_command_to(groups: Commands) -> None:
    """Add `jar`."""
    add_command(groups, "jar", _jar, "print the path of the Spark connector's jar")


def _jar(options: argparse.Namespace) -> None:
    path = str(jar_path())
    if options.format == "json":
        print_json({"jar": path})
    else:
        print(path)
