"""Points in time as people write them."""

import datetime as dt

import numpy as np
import ombus
import pandas
import pytest
from ombus.times import format_ns, seconds_ns, to_ns

NS = 1767225600_123456789


@pytest.mark.parametrize(
    ("time", "ns"),
    [
        (NS, NS),
        (np.int64(NS), NS),
        (str(NS), NS),
        (np.datetime64(NS, "ns"), NS),
        (np.datetime64("2026-01-01"), 1767225600_000000000),
        (pandas.Timestamp(NS, tz="UTC"), NS),
        (pandas.Timestamp(NS, tz="Asia/Tokyo"), NS),
        ("2026-01-01T00:00:00.123456Z", 1767225600_123456000),
        ("2026-01-01T01:00:00+01:00", 1767225600_000000000),
        (dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), 1767225600_000000000),
        (dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc), 0),
    ],
)
def test_to_ns(time, ns):
    assert to_ns(time) == ns


def test_without_a_zone_it_is_local_time():
    local = dt.datetime(2026, 7, 1, 12)
    assert to_ns(local) == to_ns(local.isoformat()) == int(local.timestamp()) * 10**9
    assert to_ns(pandas.Timestamp(local)) == to_ns(local)


@pytest.mark.parametrize("time", [-1, 2**63, dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc), "12 o'clock", ""])
def test_no_time(time):
    with pytest.raises(ombus.InvalidArgument):
        to_ns(time)


@pytest.mark.parametrize("time", [None, 1.5, b"2026"])
def test_wrong_types(time):
    with pytest.raises(TypeError):
        to_ns(time)


def test_format():
    assert format_ns(NS) == "2026-01-01T00:00:00.123456789Z"
    assert format_ns(0) == "1970-01-01T00:00:00.000000000Z"
    assert to_ns(pandas.Timestamp(format_ns(NS))) == NS
    assert format_ns(2**63 - 1).startswith("2262-04-11T")
    assert format_ns(2**64 - 1).endswith("Z")


def test_durations():
    assert seconds_ns("x", None) == 0
    assert seconds_ns("x", 1.5) == 1_500_000_000
    assert seconds_ns("x", dt.timedelta(minutes=1)) == 60_000_000_000
    with pytest.raises(ombus.InvalidArgument, match="x is 0"):
        seconds_ns("x", 0)
