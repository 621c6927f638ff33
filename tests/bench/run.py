"""Runs every benchmark and writes bench-results/NAME.json: `make bench`, or `python tests/bench/run.py [NAME...]`.

A benchmark is a program `native/build/bench_NAME` or a script `tests/bench/bench_NAME.py`; each prints a table of
figures beside what the machine can do at best, measured in the same run, and writes the same as JSON to the path it is
given.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench-results"
# Needs a Spark session and minutes: `make bench-spark` runs it.
ONLY_BY_NAME = {"spark"}


def benchmarks() -> dict[str, list[str]]:
    """The command of each benchmark by its name."""
    programs = {p.name.removeprefix("bench_"): [str(p)] for p in sorted((ROOT / "native/build").glob("bench_*"))}
    scripts = {
        p.stem.removeprefix("bench_"): [sys.executable, str(p)]
        for p in sorted(Path(__file__).parent.glob("bench_*.py"))
    }
    return programs | scripts


def main(names: list[str]) -> int:
    known = benchmarks()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    RESULTS.mkdir(exist_ok=True)
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    print(cpu.replace("\t", ""), flush=True)
    failed = 0
    for name in names or [name for name in known if name not in ONLY_BY_NAME]:
        print(flush=True)
        failed += subprocess.run([*known[name], str(RESULTS / f"{name}.json")], check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
