"""Speed of the log from Python, each figure beside numpy.copyto() of the same payload bytes in the same run.

python bench_python_log.py [RESULT.json]: prints a table and writes {name: {value, unit, peer, peer_value, ratio}}.
ratio is value / peer_value: above 1 is better for rows/s, below 1 for ns.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import ombus
import pyarrow as pa

REPEATS = 5
ROWS = 1_000_000
SIZE = 56
CALLS = 100_000


@dataclass
class Figure:
    value: float
    unit: str
    peer: str
    peer_value: float
    ratio: float


def best(run: Callable[[], float]) -> float:
    """The fastest of several runs: the others were disturbed."""
    return min(run() for _ in range(REPEATS))


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def time_copy(rows: npt.NDArray[np.uint8]) -> float:
    target = np.empty_like(rows)
    return best(lambda: timed(lambda: np.copyto(target, rows)))


def time_publish_batch(folder: Path, items: object, sync: str) -> float:
    """A log of its own per run, with one batch before, so that the first segments are there."""

    def run() -> float:
        path = folder / "publish"
        with ombus.Producer(f"log://{path}", sync=sync) as producer:  # type: ignore[arg-type]
            producer.publish(b"first")
            time.sleep(0.1)
            seconds = timed(lambda: producer.publish_batch(items))  # type: ignore[arg-type]
        shutil.rmtree(path)
        return seconds

    return best(run)


def time_publish(folder: Path) -> float:
    payload = bytes(SIZE)

    def run() -> float:
        path = folder / "single"
        with ombus.Producer(f"log://{path}", sync="none") as producer:
            publish = producer.publish
            publish(payload)
            time.sleep(0.1)
            start = time.perf_counter()
            for _ in range(CALLS):
                publish(payload)
            seconds = time.perf_counter() - start
        shutil.rmtree(path)
        return seconds

    return best(run) / CALLS


def time_python_copy() -> float:
    view, payload = memoryview(bytearray(SIZE)), bytes(SIZE)

    def run() -> float:
        start = time.perf_counter()
        for _ in range(CALLS):
            view[:] = payload
        return time.perf_counter() - start

    return best(run) / CALLS


def stream(log: ombus.Log) -> int:
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(log))


def measure(folder: Path) -> dict[str, Figure]:
    rows = np.random.default_rng(1).integers(0, 255, (ROWS, SIZE), np.uint8)
    copy_rate = ROWS / time_copy(rows)
    copy_ns, publish_ns = time_python_copy() * 1e9, time_publish(folder) * 1e9
    figures = {
        f"python log publish {SIZE} B": Figure(publish_ns, "ns", "memoryview copy", copy_ns, publish_ns / copy_ns)
    }

    def add(name: str, seconds: float, count: int = ROWS) -> None:
        rate = count / seconds
        figures[f"python log {name}"] = Figure(rate, "rows/s", "np.copyto", copy_rate, rate / copy_rate)

    for sync in ("none", "linger"):
        add(f"publish_batch array {SIZE} B, sync={sync}", time_publish_batch(folder, rows, sync))
    payloads = [bytes(SIZE)] * (ROWS // 10)
    add(f"publish_batch list {SIZE} B, sync=none", time_publish_batch(folder, payloads, "none"), len(payloads))
    with ombus.Producer(f"log://{folder}/read", sync="none") as producer:
        producer.publish_batch(rows)
    for crc in (True, False):
        suffix = "" if crc else ", no CRC"
        log = ombus.Log(folder / "read", crc=crc)
        add(f"to_numpy{suffix}", best(lambda log=log: timed(lambda: log.to_numpy(f"V{SIZE}"))))  # type: ignore[misc]
        add(f"Arrow stream{suffix}", best(lambda log=log: timed(lambda: stream(log))))  # type: ignore[misc]
        add(f"to_arrow{suffix}", best(lambda log=log: timed(log.to_arrow)))  # type: ignore[misc]
    part = ombus.Log(folder / "read")[: ROWS // 10]
    add("iterate records", best(lambda: timed(lambda: sum(1 for _ in part))), ROWS // 10)
    return figures


def show(value: float, unit: str) -> str:
    return f"{value / 1e6:.1f} M rows/s" if unit == "rows/s" else f"{value:.1f} {unit}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder))
    width = max(map(len, figures))
    print(f"{'':{width}}  {'value':>14}  {'copy':>14}  ratio")
    for name, figure in figures.items():
        value, peer = show(figure.value, figure.unit), show(figure.peer_value, figure.unit)
        print(f"{name:{width}}  {value:>14}  {peer:>14}  {figure.ratio:5.2f}")
    if len(sys.argv) > 1:
        results = {name: asdict(figure) for name, figure in figures.items()}
        Path(sys.argv[1]).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
