"""Write a log, read it by sequence number and by time, and as NumPy, Arrow and pandas.

python examples/log_quickstart.py [DIRECTORY]
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np
import ombus

TRADE = np.dtype([("product", "<u4"), ("volume", "<u4"), ("price", "<i8")])


def write(uri: str) -> int:
    """A hundred thousand trades in two parts; returns the time between them."""
    random = np.random.default_rng(1)
    trades = np.empty(50_000, TRADE)
    trades["product"] = random.integers(1, 5, len(trades))
    trades["volume"] = random.integers(1, 100, len(trades))
    trades["price"] = 10_000 + random.integers(-50, 50, len(trades))
    with ombus.Producer(uri) as producer:
        producer.publish_batch(trades)
        time.sleep(0.01)
        noon_ns = time.time_ns()
        last = producer.publish_batch(trades[::-1].copy())
        producer.wait_durable(last)  # from here on a power cut cannot take them back
        print(f"wrote {last} trades, durable up to wal_seq {producer.durable_seq}")
    return noon_ns


def read(path: str, noon_ns: int) -> None:
    """The same records in every way there is."""
    log = ombus.Log(path)
    print(f"the log has {len(log)} records, wal_seq {log.first_seq} to {log.last_seq}")
    trades = log.to_numpy(TRADE)
    print(f"volume {trades['volume'].sum()} in all, {log[:50_001].to_numpy(TRADE)['volume'].sum()} in the first half")
    later = log.between(noon_ns)
    print(f"{len(later)} records since the pause, the first is wal_seq {next(iter(later)).seq}")
    table = log[99_998:].to_arrow()  # polars.DataFrame(log) and duckdb read a log directly, too
    print(f"as Arrow: {table.num_rows} rows of {', '.join(table.schema.names)}")
    with ombus.Consumer(f"log://{path}", name="example") as consumer:
        volume = 0
        while batch := consumer.poll_batch(10_000):
            volume += int(batch.to_numpy(TRADE)["volume"].sum())
        consumer.save()  # the next one with this name goes on here
        print(f"the consumer 'example' has read up to wal_seq {consumer.wal_seq}, volume {volume}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as temporary:
        directory = sys.argv[1] if len(sys.argv) == 2 else f"{temporary}/trades"
        read(directory, write(f"log://{directory}"))
