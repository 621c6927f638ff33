"""Every example runs by itself, ends by itself and prints what examples/README.md promises."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import ombus
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text()


def run(name, *arguments, timeout=240):
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )


def output(name, *arguments):
    result = run(name, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def promised(name):
    """What the README shows as this example's output."""
    (text,) = re.findall(rf"\$ \.venv/bin/python examples/{name}\n(.*?)```", README, re.DOTALL)
    return text.rstrip()


def test_every_example_is_explained():
    unexplained = [file.name for file in EXAMPLES.glob("*.py") if f"examples/{file.name}" not in README]
    assert not unexplained


# Fixed input, so fixed results.
@pytest.mark.parametrize("name", ["quickstart.py", "join_static.py", "history_sql.py", "numpy_producer.py"])
def test_output(name):
    assert output(name).rstrip() == promised(name)


def test_candles_watermark():
    *candles, last = output("candles_watermark.py").splitlines()
    number = r"\d+\.\d\d"
    shape = rf"\d\d:\d\d:\d\d  AAPL  open {number}  high {number}  low {number}  close {number}  volume \d+"
    assert all(re.fullmatch(shape, line) for line in [*candles, *promised("candles_watermark.py").splitlines()[:-1]])
    assert len(candles) >= 3
    assert last == f"{4 * len(candles)} candles of 4 products"
    for line in candles:
        opened, high, low, closed = map(float, re.findall(number, line))
        assert low <= min(opened, closed) <= max(opened, closed) <= high
    for before, after in itertools.pairwise(candles):  # nothing between them: prices go on
        moved = float(after.split()[3]) - float(before.split()[9])
        assert abs(moved) < 1


def test_exactly_once_parquet():
    *stops, last = output("exactly_once_parquet.py").splitlines()
    assert len(stops) == 3
    assert len(set(re.findall(r"\d+", last))) == 1, last
    assert last.startswith("written ")


def test_ring_numpy_producer():
    published, read = output("ring_numpy_producer.py").splitlines()
    assert published.startswith("published 1000000 ticks, volume ")
    assert read == published.replace("published", "read")
    assert published in README


def test_wrong_arguments_show_the_usage():
    result = run("ring_numpy_producer.py", "fly")
    assert result.returncode == 1
    assert "terminal 1" in result.stderr


def test_the_engine_writes_what_it_says(tmp_path):
    text = output("engine.py", f"log://{tmp_path}/log", "--records", "5000", "--rate", "1000000")
    totals = json.loads(text.splitlines()[1])
    log = ombus.Log(tmp_path / "log")
    assert len(log) == totals["records"] == sum(totals["types"].values()) >= 5000
    sizes = {1: 56, 2: 24, 3: 48}
    assert all(len(record.payload) == sizes[record.type] for record in log)
    assert sum(record.type == 3 for record in log) == sum(one["matches"] for one in totals["products"].values())


def test_the_demo_survives_a_kill():
    text = output("demo.py", "--seconds", "3", "--rate", "3000")
    assert "SIGKILL to the Spark job after batch" in text
    assert text.endswith("every record was counted exactly once\n")
    assert text.count("  equal\n") == 15
    assert "DIFFERENT" not in text
    assert re.search(r"^AAPL +[\d,]+ +[\d,]+ +\d+\.\d\d", text, re.MULTILINE)


def test_log_quickstart(tmp_path):
    for arguments in ((), (tmp_path / "trades",)):
        assert output("log_quickstart.py", *arguments) in README
