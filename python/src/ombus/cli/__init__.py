"""The `ombus` command."""

from .main import main

__all__ = ["main"]
