"""The main job in miniature, as `make demo` runs it.

A small matching engine (engine.py, a process of its own) writes its orders and trades to a ring and a log. A PySpark
job (demo_job.py, another process) reads them as they come and computes volume, VWAP and spread per product. This
program shows the job's results live, kills the job with SIGKILL in the middle, starts it again, and in the end compares
its sums with the engine's: nothing is lost, nothing is counted twice. It takes about a minute; the exit status tells.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ombus
from engine import CANCEL_TYPE, INSERT_TYPE, MATCH_TYPE, PRODUCTS, RunningEngine, running_engine

GIVE_UP_SECONDS = 240
SHOW_SECONDS = 1.0 if sys.stdout.isatty() else 5.0
COLUMNS = {"match": MATCH_TYPE, "insert": INSERT_TYPE, "cancel": CANCEL_TYPE}


class Job:
    """The Spark job's process and what it prints."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.errors = (folder / "job.err").open("a")
        program = Path(__file__).with_name("demo_job.py")
        self.process = subprocess.Popen(
            [sys.executable, program, uri, folder / "checkpoint"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,  # so that Python and its JVM can be killed together
        )
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{") and line.endswith("}\n"):  # a killed process may leave half a line
                self.lines.put(json.loads(line))
        self.lines.put({"kind": "ended"})

    def next_line(self) -> dict[str, Any]:
        """What it has printed next, or that it has printed nothing for a moment."""
        try:
            return self.lines.get(timeout=0.2)
        except queue.Empty:
            return {"kind": "nothing"}

    def finish(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("finish\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.errors.close()


@dataclass
class Results:
    """What the job has told: for each window and product the latest values, and how it is doing."""

    windows: dict[tuple[float, int], dict[str, Any]] = field(default_factory=dict)
    batch: int = -1
    rate: float = 0
    lag_seconds: float = 0

    def take(self, line: dict[str, Any]) -> None:
        if line["kind"] == "windows":
            for row in line["rows"]:
                self.windows[row["window"], row["product_id"]] = row
        elif line["kind"] == "progress":
            self.batch, self.rate = line["batch"], line["rate"]
            self.lag_seconds = line["lag_seconds"]

    def total(self, column: str, product: int | None = None) -> int:
        return sum(row[column] for (_, one), row in self.windows.items() if product in (None, one))

    def records(self) -> int:
        return sum(self.total(column) for column in COLUMNS)

    def last_window(self, product: int) -> dict[str, Any] | None:
        """The latest window that is over, as far as can be seen."""
        starts = sorted({start for start, _ in self.windows})
        return self.windows.get((starts[-2], product)) if len(starts) > 1 else None


class Screen:
    """A table that is painted over in a terminal, and repeated now and then elsewhere."""

    def __init__(self) -> None:
        self.next_time = 0.0
        self.started = time.monotonic()
        self.height = 0

    def show(self, results: Results, written: int, state: str) -> None:
        if time.monotonic() < self.next_time:
            return
        self.next_time = time.monotonic() + SHOW_SECONDS
        lines = [f"{'product':8} {'trades':>9} {'volume':>12} {'VWAP':>9}   {'in 5 s':>9} {'VWAP':>9} {'spread':>7}"]
        lines += [self.line(results, product) for product in PRODUCTS]
        read = results.records()
        lines.append(f"{time.monotonic() - self.started:5.0f} s  the engine has written {written:,} records")
        lines.append(
            f"{'Spark':>7}  {state}: batch {results.batch}, {read:,} records read, {results.rate:,.0f} per second,"
        )
        lines.append(f"{'':7}  {max(written - read, 0):,} behind, the last batch by {results.lag_seconds:.1f} s")
        self.paint(lines)

    def line(self, results: Results, product: int) -> str:
        volume = results.total("volume", product)
        text = f"{PRODUCTS[product]:8} {results.total('match', product):9,} {volume:12,} "
        text += price(results.total("notional", product), volume)
        window = results.last_window(product)
        if window is not None:
            text += f"   {window['volume']:9,} {price(window['notional'], window['volume'])}"
            text += f" {(window['spread'] or 0) / 100:7.3f}"
        return text

    def paint(self, lines: list[str]) -> None:
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns  # a line that is broken would count twice
            lines = [line[:width] for line in lines]
            if self.height:
                print(f"\x1b[{self.height}F\x1b[J", end="")
            self.height = len(lines)
        else:
            lines = [*lines, ""]
        print("\n".join(lines), flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.height = 0
        print(f"--- {text}", flush=True)


def price(notional: int, volume: int) -> str:
    return f"{notional / volume / 100:9.2f}" if volume else " " * 9


def check(results: Results, totals: dict[str, Any]) -> bool:
    """Compare every sum with what the engine has written; all must be equal."""
    rows = [
        (f"{name.upper()} records", totals["types"][number], results.total(name)) for name, number in COLUMNS.items()
    ]
    for product, name in PRODUCTS.items():
        for column, ours in (("matches", "match"), ("volume", "volume"), ("notional", "notional")):
            rows.append((f"{name} {column}", totals["products"][product][column], results.total(ours, product)))
    print(f"{'check':18} {'engine wrote':>18} {'Spark counted':>18}")
    for what, written, counted in rows:
        print(f"{what:18} {written:18,} {counted:18,}  {'equal' if written == counted else 'DIFFERENT'}")
    return all(written == counted for _, written, counted in rows)


def watch(engine: RunningEngine, folder: Path, work_seconds: float) -> Results:
    """Follow the job to its end, with one kill on the way."""
    results, screen = Results(), Screen()
    log = ombus.Log(engine.uri.partition("log=")[2])
    screen.say(f"the engine runs (pid {engine.process.pid}), starting Spark on {engine.uri}")
    job, state, runs, working_since = Job(engine.uri, folder), "starting", 1, 0.0
    try:
        while True:
            line = job.next_line()
            results.take(line)
            if line["kind"] == "done":
                return results
            if line["kind"] == "ended":
                print((folder / "job.err").read_text()[-4000:], file=sys.stderr)
                raise SystemExit("the Spark job has failed")
            if line["kind"] == "progress" and not working_since:
                state, working_since = "running", time.monotonic()
            if working_since and time.monotonic() - working_since > work_seconds and state == "running":
                if runs == 1:
                    job.kill()
                    screen.say(f"SIGKILL to the Spark job after batch {results.batch}; starting it again")
                    job, state, runs, working_since = Job(engine.uri, folder), "killed, starting again", 2, 0.0
                else:
                    engine.stop()
                    engine.process.wait()
                    job.finish()
                    state = "reading the rest"
            screen.show(results, log.last_seq, state)
            if time.monotonic() - screen.started > GIVE_UP_SECONDS:
                raise SystemExit("the demo takes too long; is the machine busy?")
    finally:
        job.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12, help="of work before the kill, and after it (12)")
    parser.add_argument("--rate", type=int, default=10_000, help="records per second (10000)")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ombus-demo-"))
    ring = f"shm://demo-{os.getpid()}"
    try:
        with running_engine(f"{ring}?log={folder}/log", rate=args.rate, seconds=GIVE_UP_SECONDS) as engine:
            results = watch(engine, folder, args.seconds)
            good = check(results, engine.totals())
    finally:
        ombus.unlink(ring)
        shutil.rmtree(folder, ignore_errors=True)
    print("every record was counted exactly once" if good else "RECORDS WERE LOST OR COUNTED TWICE")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
