"""A small matching engine that writes what it does to a stream, as OpenMatch does: the producer of the other examples.

    python examples/engine.py 'shm://engine-0?log=/tmp/engine-0' --rate 20000 --seconds 60

Orders for a few products arrive at random. What an order matches becomes MATCH records, what is left of it rests in the
book (INSERT) until it is matched or withdrawn (CANCEL). In the end it prints, as JSON, the totals that a reader must
find in the stream.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ombus

PRODUCTS = {1: "AAPL", 2: "MSFT", 3: "NVDA", 4: "TSLA"}
INSERT_TYPE, CANCEL_TYPE, MATCH_TYPE = 1, 2, 3
INSERT = struct.Struct("<4Q3H2x2IQ")  # order_id price volume vol_remain | org flags product_id | sizes | timestamp_ns
CANCEL = struct.Struct("<2QIH2x")  # order_id timestamp_ns slot_idx product_id
MATCH = struct.Struct("<5QH6x")  # maker_id taker_id price volume timestamp_ns product_id
BID, ASK = 0, 1
ORDERS_PER_SIDE_MAX = 64


@dataclass
class Order:
    id: int
    price: int
    volume: int


@dataclass
class Book:
    """One product's resting orders: on each side a queue of orders per price, first come, first served."""

    product: int
    mid: int
    sides: tuple[dict[int, deque[Order]], dict[int, deque[Order]]] = field(default_factory=lambda: ({}, {}))

    def best(self, side: int) -> int | None:
        prices = self.sides[side]
        return (max(prices) if side == BID else min(prices)) if prices else None


class Engine:
    """Matches random orders and publishes every change of a book."""

    def __init__(self, producer: ombus.Producer, seed: int) -> None:
        self.producer = producer
        self.random = random.Random(seed)
        self.books = [Book(product, 10_000 * product) for product in PRODUCTS]
        self.orders = 0
        self.types: Counter[int] = Counter()
        self.matches: Counter[int] = Counter()
        self.volume: Counter[int] = Counter()
        self.notional: Counter[int] = Counter()

    def step(self) -> None:
        """One order, of which one to a few records come."""
        book = self.random.choice(self.books)
        side = self.random.getrandbits(1)
        if self.random.random() < 0.15 or sum(map(len, book.sides[side].values())) >= ORDERS_PER_SIDE_MAX:
            self.cancel(book, side)
        else:
            book.mid = max(1_000, book.mid + self.random.randint(-2, 2))
            away = self.random.randint(-6, 12)  # below 0 the order crosses the spread
            self.orders += 1
            price = book.mid - away if side == BID else book.mid + away
            self.trade(book, side, Order(self.orders, price, self.random.randint(1, 200)))

    def trade(self, book: Book, side: int, order: Order) -> None:
        other = book.sides[1 - side]
        while order.volume and (best := book.best(1 - side)) is not None:
            if (best > order.price) if side == BID else (best < order.price):
                break
            maker = other[best][0]
            filled = min(maker.volume, order.volume)
            self.publish_match(book.product, maker, order, filled)
            order.volume -= filled
            maker.volume -= filled
            if not maker.volume:
                self.drop_first(other, best)
        if order.volume:
            book.sides[side].setdefault(order.price, deque()).append(order)
            sizes = (order.volume, order.volume, 0, side, book.product, 0, 0)
            self.publish(INSERT_TYPE, INSERT.pack(order.id, order.price, *sizes, time.time_ns()))

    def publish_match(self, product: int, maker: Order, taker: Order, volume: int) -> None:
        self.matches[product] += 1
        self.volume[product] += volume
        self.notional[product] += volume * maker.price
        self.publish(MATCH_TYPE, MATCH.pack(maker.id, taker.id, maker.price, volume, time.time_ns(), product))

    def cancel(self, book: Book, side: int) -> None:
        """Withdraw the oldest order at the worst price."""
        prices = book.sides[side]
        if prices:
            worst = min(prices) if side == BID else max(prices)
            self.publish(CANCEL_TYPE, CANCEL.pack(prices[worst][0].id, time.time_ns(), 0, book.product))
            self.drop_first(prices, worst)

    @staticmethod
    def drop_first(prices: dict[int, deque[Order]], price: int) -> None:
        prices[price].popleft()
        if not prices[price]:
            del prices[price]

    def publish(self, wal_type: int, payload: bytes) -> None:
        self.types[wal_type] += 1
        self.producer.publish(payload, wal_type)

    def totals(self) -> dict[str, Any]:
        """What a reader of the whole stream must find."""
        by_product = {
            product: {
                "matches": self.matches[product],
                "volume": self.volume[product],
                "notional": self.notional[product],
            }
            for product in PRODUCTS
        }
        return {"records": self.types.total(), "types": dict(self.types), "products": by_product}


def run(uri: str, rate: int, seconds: float, records: int, seed: int) -> None:
    """Publish at a steady rate until time is up, a SIGTERM comes or, with `records`, at least that many are written."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with ombus.Producer(uri) as producer:
        engine = Engine(producer, seed)
        print("ready", flush=True)
        start = time.monotonic()
        while not stopped.is_set() and not 0 < records <= engine.types.total():
            elapsed = time.monotonic() - start
            if elapsed >= seconds:
                break
            due = min(int(elapsed * rate) + 1, records or sys.maxsize)
            while engine.types.total() < due:
                engine.step()
            time.sleep(0.005)
        print(json.dumps(engine.totals()), flush=True)


@dataclass
class RunningEngine:
    """An engine in a process of its own."""

    uri: str
    process: subprocess.Popen[str]

    def stop(self) -> None:
        """Let it end now."""
        self.process.terminate()

    def totals(self) -> dict[str, Any]:
        """Wait for its end; what it has written, as :meth:`Engine.totals` says, with products as numbers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if self.process.wait() or not line:
            raise SystemExit("the engine has failed")
        totals: dict[str, Any] = json.loads(line)
        for key in ("types", "products"):
            totals[key] = {int(number): value for number, value in totals[key].items()}
        return totals


@contextlib.contextmanager
def running_engine(
    uri: str = "", *, rate: int = 5_000, seconds: float = 600, records: int = 0, seed: int = 1
) -> Iterator[RunningEngine]:
    """Start an engine as a process of its own, by default on a log in a new folder; both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ombus-engine-"))
    uri = uri or f"log://{folder}/engine-0"
    numbers = {"--rate": rate, "--seconds": seconds, "--records": records, "--seed": seed}
    arguments = [text for name, value in numbers.items() for text in (name, str(value))]
    process = subprocess.Popen([sys.executable, __file__, uri, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit("the engine has failed")
        yield RunningEngine(uri, process)
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("uri", help="where to write: log:///dir, shm://name or shm://name?log=/dir")
    parser.add_argument("--rate", type=int, default=5_000, help="records per second (5000)")
    parser.add_argument("--seconds", type=float, default=60, help="when to stop (60)")
    parser.add_argument("--records", type=int, default=0, help="stop after that many (no limit)")
    parser.add_argument("--seed", type=int, default=1, help="of the random orders (1)")
    args = parser.parse_args()
    run(args.uri, args.rate, args.seconds, args.records, args.seed)


if __name__ == "__main__":
    main()
