"""Runs the suites named as make targets, all of them whatever fails, and adds up their tests.

The last line is `N passed, M failed`. Counts come from the JUnit files that the suites write, not from
what they print. A suite that fails without a failed test (a build error, a lint finding, a crash)
counts as one failure, so the exit code and the line never disagree.
"""

import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

REPORTS = Path("build/test-reports")
SCALA_REPORTS = Path("connector/target/test-reports")

# The closing line of each native test program: one program is one test to ctest, but many cases.
CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed", re.MULTILINE)


@dataclass
class Count:
    passed: int = 0
    failed: int = 0

    def add(self, other: "Count") -> None:
        self.passed += other.passed
        self.failed += other.failed


def count_case(case: ElementTree.Element) -> Count:
    """A JUnit test case: one test, or as many as its closing line says."""
    if case.find("skipped") is not None:
        return Count()
    failed = case.find("failure") is not None or case.find("error") is not None
    closing = CLOSING_LINE.findall(case.findtext("system-out") or "")
    if not closing:
        return Count(passed=int(not failed), failed=int(failed))
    cases = Count(passed=int(closing[-1][0]), failed=int(closing[-1][1]))
    if failed and cases.failed == 0:  # died after its last case, say of a sanitizer's finding
        cases.failed = 1
    return cases


def count_reports(folder: Path) -> Count:
    total = Count()
    for report in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            total.add(count_case(case))
    return total


def run_suite(name: str) -> Count:
    folder = SCALA_REPORTS if name == "test-scala" else REPORTS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"==== {name}", flush=True)
    exit_code = subprocess.run(["make", name], stdin=subprocess.DEVNULL).returncode
    count = count_reports(folder)
    ran_no_test = name.startswith("test") and count == Count()
    if (exit_code != 0 or ran_no_test) and count.failed == 0:
        count.failed = 1
    return count


def main(names: list[str]) -> int:
    total = Count()
    summary = []
    for name in names:
        start = time.monotonic()
        count = run_suite(name)
        total.add(count)
        seconds = time.monotonic() - start
        summary.append(f"{name:12} {count.passed:6} passed {count.failed:4} failed {seconds:6.0f} s")
    print("\n".join(["====", *summary]))
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
