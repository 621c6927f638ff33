"""The main job in miniature, as `make demo` runs it: a small matching engine in a process of its own publishes its
records to a ring in shared memory, this process reads them, shows a live table and checks that none is missing.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

import numpy as np
import numpy.typing as npt
import ombus

MATCH = np.dtype(  # an OpenMatch MATCH record, wal_type 3
    [
        ("maker_id", "<u8"),
        ("taker_id", "<u8"),
        ("price", "<u8"),
        ("volume", "<u8"),
        ("timestamp_ns", "<u8"),
        ("product_id", "<u2"),
        ("reserved", "<u2", 3),
    ]
)
MATCH_TYPE = 3
PRODUCTS = ("", "AAPL", "MSFT", "NVDA", "TSLA")


def engine(uri: str, seconds: float, rate: int) -> None:
    """Publish matches at a steady rate, in small batches as an engine's loop would."""
    prices = [0, 190_00, 410_00, 120_00, 250_00]
    batch = np.zeros(max(1, rate // 500), MATCH)
    order_id = 0
    with ombus.Producer(uri, capacity=65_536, slot_size=80) as producer:
        print("ready", flush=True)
        while all(slot.state is ombus.ConsumerState.FREE for slot in ombus.inspect(uri).consumers):
            time.sleep(0.001)  # a ring keeps no history: wait until somebody listens
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds:
            batch["timestamp_ns"] = time.time_ns()
            for row in batch:
                product = random.randrange(1, len(PRODUCTS))
                prices[product] = max(1, prices[product] + random.randint(-3, 3))
                order_id += 2
                row["maker_id"], row["taker_id"] = order_id, order_id + 1
                row["product_id"], row["price"], row["volume"] = product, prices[product], random.randint(1, 200)
            producer.publish_batch(batch, type=MATCH_TYPE)
            time.sleep(max(0.0, producer.last_seq / rate - elapsed))
        print(producer.last_seq, flush=True)


def show(
    volume: npt.NDArray[np.float64], notional: npt.NDArray[np.float64], seen: int, rate: float, lag_us: float
) -> None:
    if sys.stdout.isatty():
        print("\x1b[H\x1b[J", end="")
    print(f"{'product':10} {'volume':>12} {'VWAP':>10}")
    for product in range(1, len(PRODUCTS)):
        vwap = notional[product] / volume[product] / 100 if volume[product] else 0
        print(f"{PRODUCTS[product]:10} {int(volume[product]):12,} {vwap:10.2f}")
    print(f"{seen:,} records, {rate:,.0f} records/s, newest one read after {lag_us:,.0f} us\n", flush=True)


def watch(uri: str, finished: subprocess.Popen[str]) -> int:
    """Read until the engine has ended and the ring is empty; returns how many records came."""
    volume, notional = np.zeros(len(PRODUCTS)), np.zeros(len(PRODUCTS))
    seen, shown, next_show = 0, 0, time.monotonic() + 1
    with ombus.Consumer(uri) as consumer:
        while consumer.wait(0.2) or finished.poll() is None:
            batch = consumer.poll_batch(4096)  # raises GapDetected if a single wal_seq were missing
            if len(batch) == 0:
                continue
            matches = batch.to_numpy(MATCH)
            volume += np.bincount(matches["product_id"], matches["volume"], len(PRODUCTS))
            notional += np.bincount(matches["product_id"], matches["volume"] * matches["price"], len(PRODUCTS))
            seen += len(batch)
            if (now := time.monotonic()) >= next_show:
                lag_us = (time.time_ns() - int(matches["timestamp_ns"][-1])) / 1000
                show(volume, notional, seen, (seen - shown) / (now - next_show + 1), lag_us)
                shown, next_show = seen, now + 1
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", metavar="URI", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=50_000, help="records per second")
    args = parser.parse_args()
    if args.engine:
        engine(args.engine, args.seconds, args.rate)
        return
    uri = f"shm://demo-{time.time_ns()}"
    command = [sys.executable, __file__, "--engine", uri, "--seconds", str(args.seconds), "--rate", str(args.rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the ring is there
        seen = watch(uri, process)
        published = int(process.stdout.readline())
    ombus.unlink(uri)
    print(f"published {published:,}, read {seen:,}: {'nothing lost' if seen == published else 'RECORDS LOST'}")
    sys.exit(seen != published)


if __name__ == "__main__":
    main()
