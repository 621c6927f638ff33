"""Points in time as people write them, in the nanoseconds that a log counts in."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from .errors import InvalidArgument

#: Nanoseconds since 1970 UTC, a datetime (without a zone: local time), a NumPy or pandas time, or ISO 8601 text.
TimeLike = int | str | dt.datetime | np.datetime64 | Any

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def to_ns(time: TimeLike) -> int:
    """Nanoseconds since 1970 UTC.

    >>> to_ns("2026-01-01T00:00:00Z")
    1767225600000000000
    """
    ns = _ns_of(_parse(time) if isinstance(time, str) else time)
    if not 0 <= ns < 2**63:
        raise InvalidArgument(f"{time!r} is {ns} ns after 1970, allowed are 0 to 2^63 - 1")
    return ns


def _ns_of(time: Any) -> int:
    if hasattr(time, "nanosecond") and hasattr(time, "to_datetime64"):  # pandas.Timestamp
        return _ns_of(time.to_datetime64()) if time.tzinfo else _ns_of(time.to_pydatetime()) + int(time.nanosecond)
    if isinstance(time, dt.datetime):
        since = time.astimezone(dt.timezone.utc) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    if isinstance(time, np.datetime64):
        return int(time.astype("datetime64[ns]").astype(np.int64))
    if not hasattr(time, "__index__"):
        raise TypeError(f"a time is a datetime, nanoseconds or ISO text, not {type(time).__name__}")
    return int(time.__index__())


def _parse(text: str) -> dt.datetime | int:
    if text.isdigit():
        return int(text)
    try:
        return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InvalidArgument(
            f"{text!r} is no time: use 2026-01-31T12:00:00Z, without a zone for local time, or nanoseconds"
        ) from None


def format_ns(ns: int) -> str:
    """ISO 8601 in UTC with all nine digits.

    >>> format_ns(1767225600000000001)
    '2026-01-01T00:00:00.000000001Z'
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    try:
        return (_EPOCH + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:09d}Z"
    except OverflowError:
        return f"{ns} ns"


def seconds_ns(what: str, value: float | dt.timedelta | None) -> int:
    """A duration in seconds, or a timedelta, as nanoseconds; None = 0."""
    if value is None:
        return 0
    seconds = value.total_seconds() if isinstance(value, dt.timedelta) else value
    if not 0 < seconds < 9e9:
        raise InvalidArgument(f"{what} is {value!r}, allowed are seconds above 0, or None")
    return max(1, int(seconds * 1e9))
