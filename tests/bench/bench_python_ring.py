"""Speed of the ring from Python, each figure beside the cost of moving the same bytes in the same run.

python bench_python_ring.py [RESULT.json]: prints a table and writes {name: {value, unit, peer, ratio}}.
The peer of a single call is a copy of the payload by Python itself (view[:] = payload), that of a batch is
numpy.copyto() of the same rows; ratio is value / peer, so below 1 is better for ns and above 1 for rows/s.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import ombus

REPEATS = 7
CALLS = 50_000
ROWS = 4096
ROUNDS = 100
PAYLOAD = bytes(range(56))


@dataclass
class Figure:
    value: float
    unit: str
    peer: float

    @property
    def ratio(self) -> float:
        return self.value / self.peer


def best_ns(run: Callable[[], int]) -> float:
    """The fastest of several runs: the others were disturbed."""
    return float(min(run() for _ in range(REPEATS)))


def ring(crc: bool, slot_size: int = 88) -> ombus.Producer:
    uri = f"shm://bench-python-{os.getpid()}"
    return ombus.Producer(uri, capacity=4 * ROWS, slot_size=slot_size, crc=crc, keep=False)


def time_publish(crc: bool) -> float:
    with ring(crc) as producer:

        def run() -> int:
            publish, payload = producer.publish, PAYLOAD
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                publish(payload)
            return time.perf_counter_ns() - start

        return best_ns(run) / CALLS


def time_python_copy() -> float:
    view, payload = memoryview(bytearray(len(PAYLOAD))), PAYLOAD

    def run() -> int:
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            view[:] = payload
        return time.perf_counter_ns() - start

    return best_ns(run) / CALLS


def time_poll(crc: bool) -> float:
    """One poll() per record, its Record included."""
    with ring(crc) as producer, ombus.Consumer(producer.uri) as consumer:
        rows = np.zeros((ROWS, len(PAYLOAD)), np.uint8)

        def run() -> int:
            producer.publish_batch(rows)
            poll = consumer.poll
            start = time.perf_counter_ns()
            for _ in range(ROWS):
                poll()
            return time.perf_counter_ns() - start

        return best_ns(run) / ROWS


def time_batches(crc: bool, zero_copy: bool) -> tuple[float, float]:
    """Rows per second of publish_batch() and poll_batch(), 64 bytes a row."""
    rows = np.random.default_rng(1).integers(0, 255, (ROWS, 64), np.uint8)
    publish_ns: list[int] = []
    poll_ns: list[int] = []
    with ring(crc) as producer, ombus.Consumer(producer.uri, zero_copy=zero_copy) as consumer:
        for _ in range(REPEATS):
            publishing = polling = 0
            for _ in range(ROUNDS):
                start = time.perf_counter_ns()
                producer.publish_batch(rows)
                middle = time.perf_counter_ns()
                got = 0
                while got < ROWS:
                    got += len(consumer.poll_batch(ROWS))
                publishing += middle - start
                polling += time.perf_counter_ns() - middle
            publish_ns.append(publishing)
            poll_ns.append(polling)
    return ROWS * ROUNDS / min(publish_ns) * 1e9, ROWS * ROUNDS / min(poll_ns) * 1e9


def copy_rows() -> float:
    source = np.random.default_rng(1).integers(0, 255, (ROWS, 64), np.uint8)
    target = np.empty((4 * ROWS, 64), np.uint8)  # as many rows as the ring has slots: the same cache misses

    def run() -> int:
        start = time.perf_counter_ns()
        for i in range(ROUNDS):
            part = i % 4 * ROWS
            np.copyto(target[part : part + ROWS], source)
        return time.perf_counter_ns() - start

    return ROWS * ROUNDS / best_ns(run) * 1e9


def measure() -> dict[str, Figure]:
    copy_ns, copy_rate = time_python_copy(), copy_rows()
    figures = {
        "python publish 56 B": Figure(time_publish(crc=False), "ns", copy_ns),
        "python publish 56 B, CRC": Figure(time_publish(crc=True), "ns", copy_ns),
        "python poll 56 B": Figure(time_poll(crc=False), "ns", copy_ns),
        "python poll 56 B, CRC": Figure(time_poll(crc=True), "ns", copy_ns),
    }
    for crc in (False, True):
        suffix = ", CRC" if crc else ""
        publish, poll = time_batches(crc, zero_copy=False)
        _, peek = time_batches(crc, zero_copy=True)
        figures[f"python publish_batch 64 B{suffix}"] = Figure(publish, "rows/s", copy_rate)
        figures[f"python poll_batch 64 B{suffix}"] = Figure(poll, "rows/s", copy_rate)
        figures[f"python poll_batch 64 B zero copy{suffix}"] = Figure(peek, "rows/s", copy_rate)
    return figures


def show(value: float, unit: str) -> str:
    return f"{value / 1e6:.1f} M rows/s" if unit == "rows/s" else f"{value:.1f} {unit}"


def main() -> None:
    figures = measure()
    width = max(map(len, figures))
    print(f"{'':{width}}  {'value':>14}  {'copy':>14}  ratio")
    for name, figure in figures.items():
        value, peer = show(figure.value, figure.unit), show(figure.peer, figure.unit)
        print(f"{name:{width}}  {value:>14}  {peer:>14}  {figure.ratio:5.2f}")
    if len(sys.argv) > 1:
        results = {name: {**asdict(figure), "ratio": figure.ratio} for name, figure in figures.items()}
        Path(sys.argv[1]).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
