"""A NumPy producer and a consumer in two processes, over a ring in shared memory.

    python examples/ring_numpy_producer.py produce shm://ticks      # terminal 1
    python examples/ring_numpy_producer.py consume shm://ticks      # terminal 2

Without arguments it starts both itself, moves a million ticks and checks that all have arrived.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import numpy.typing as npt
import ombus

TICK = np.dtype([("time_ns", "<i8"), ("product", "<u4"), ("volume", "<u4"), ("price", "<i8")])
ROWS_PER_BATCH = 1000
BATCHES = 1000


def make_ticks(random: np.random.Generator) -> npt.NDArray[np.void]:
    ticks = np.empty(ROWS_PER_BATCH, TICK)
    ticks["time_ns"] = time.time_ns()
    ticks["product"] = random.integers(1, 5, ROWS_PER_BATCH)
    ticks["volume"] = random.integers(1, 100, ROWS_PER_BATCH)
    ticks["price"] = 10_000 + random.integers(-50, 50, ROWS_PER_BATCH)
    return ticks


def produce(uri: str, batches: int = BATCHES) -> None:
    """Publish whole arrays: one record per row, no Python work per record."""
    random = np.random.default_rng(1)
    volume = 0
    with ombus.Producer(uri, capacity=65_536, slot_size=48, keep=False) as producer:
        while not has_consumer(uri):
            time.sleep(0.01)  # a ring keeps no history: wait until somebody listens
        for _ in range(batches):
            ticks = make_ticks(random)
            volume += int(ticks["volume"].sum())
            producer.publish_batch(ticks)
        print(f"published {producer.last_seq} ticks, volume {volume}", flush=True)


def has_consumer(uri: str) -> bool:
    return any(slot.state is ombus.ConsumerState.CLAIMED for slot in ombus.inspect(uri).consumers)


def consume(uri: str, rows: int = BATCHES * ROWS_PER_BATCH) -> None:
    """Read batches as arrays: `to_numpy` is a view, nothing is parsed."""
    volume = read = 0
    with ombus.Consumer(uri) as consumer:
        while read < rows and consumer.wait(10):
            batch = consumer.poll_batch(4096)
            volume += int(batch.to_numpy(TICK)["volume"].sum())
            read += len(batch)
    print(f"read {read} ticks, volume {volume}", flush=True)


def both() -> None:
    """Producer and consumer as two processes; their totals must agree."""
    uri = f"shm://example-{time.time_ns()}"
    program = [sys.executable, __file__]
    with subprocess.Popen([*program, "produce", uri], stdout=subprocess.PIPE, text=True) as producer:
        while uri not in [ring.uri for ring in ombus.rings()]:
            time.sleep(0.01)
        consumed = subprocess.run([*program, "consume", uri], stdout=subprocess.PIPE, text=True, check=True).stdout
        published = producer.communicate()[0]
    print(published + consumed, end="")
    if published.split()[1:] != consumed.split()[1:]:
        sys.exit("the totals differ")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["produce", uri]:
            produce(uri)
        case ["consume", uri]:
            consume(uri)
        case []:
            both()
        case _:
            sys.exit(__doc__)
