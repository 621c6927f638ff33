"""The native library that this package brings along."""

from __future__ import annotations

from pathlib import Path

from . import _native

__version__: str = _native.VERSION


def library_path() -> Path:
    """The libombus.so in use, for others (a JVM, say) that must load the same one."""
    return Path(_native.library_path()).resolve()


def _check_version() -> None:
    """Refuse to work with a library of another release: LD_LIBRARY_PATH can put one in our way."""
    found = _native.library_version()
    if found != __version__:
        raise ImportError(
            f"ombus {__version__} has loaded libombus {found} from {library_path()}: "
            "remove that file's directory from LD_LIBRARY_PATH, or install the same release of both"
        )


_check_version()
