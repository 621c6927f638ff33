"""project/scripts/run_suites.py: what `make test` says must be what happened."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "project" / "scripts" / "run_suites.py"

PASSING = "<testsuite><testcase name='a'/><testcase name='b'/></testsuite>"
FAILING = "<testsuite><testcase name='a'/><testcase name='b'><failure message='no'/></testcase></testsuite>"
ERROR = "<testsuite><testcase name='a'><error message='no'/></testcase></testsuite>"
SKIPPED = "<testsuite><testcase name='a'><skipped/></testcase></testsuite>"
CASES = "<testsuite><testcase name='t'><system-out>ok x\n17 passed, 0 failed\n</system-out></testcase></testsuite>"
FAILED_CASES = (
    "<testsuite><testcase name='t'><failure message='1'/>"
    "<system-out>15 passed, 2 failed\n</system-out></testcase></testsuite>"
)
CRASH_AT_THE_END = (
    "<testsuite><testcase name='t'><failure message='1'/>"
    "<system-out>17 passed, 0 failed\nERROR: LeakSanitizer\n</system-out></testcase></testsuite>"
)
CRASH_IN_THE_MIDDLE = (
    "<testsuite><testcase name='t'><failure message='SEGV'/><system-out>ok x\n</system-out></testcase></testsuite>"
)


@pytest.mark.parametrize(
    ("report", "passed", "failed"),
    [
        (PASSING, 2, 0),
        (FAILING, 1, 1),
        (ERROR, 0, 1),
        (SKIPPED, 0, 0),
        (CASES, 17, 0),
        (FAILED_CASES, 15, 2),
        (CRASH_AT_THE_END, 17, 1),
        (CRASH_IN_THE_MIDDLE, 0, 1),
    ],
)
def test_counts_each_kind_of_report(tmp_path: Path, report: str, passed: int, failed: int) -> None:
    spec = importlib.util.spec_from_file_location("run_suites", SCRIPT)
    assert spec is not None and spec.loader is not None
    run_suites = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run_suites)
    (tmp_path / "report.xml").write_text(report)
    count = run_suites.count_reports(tmp_path)
    assert (count.passed, count.failed) == (passed, failed)


def run(folder: Path, makefile: str, *suites: str) -> tuple[int, str]:
    (folder / "Makefile").write_text(makefile)
    done = subprocess.run([sys.executable, SCRIPT, *suites], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()[-1]


def writes(suite: str, report: str, then: str = "true") -> str:
    return f'{suite}:\n\t@printf "%s" "{report}" > build/test-reports/{suite}/r.xml; {then}\n'


def test_adds_up_all_suites(tmp_path: Path) -> None:
    makefile = "lint:\n\ttrue\n" + writes("test-a", PASSING) + writes("test-b", PASSING)
    assert run(tmp_path, makefile, "lint", "test-a", "test-b") == (0, "4 passed, 0 failed")


def test_goes_on_after_a_failure(tmp_path: Path) -> None:
    makefile = "lint:\n\tfalse\n" + writes("test-a", FAILING, then="false") + writes("test-b", PASSING)
    assert run(tmp_path, makefile, "lint", "test-a", "test-b") == (1, "3 passed, 2 failed")


def test_a_suite_that_ran_no_test_has_failed(tmp_path: Path) -> None:
    assert run(tmp_path, "test-a:\n\ttrue\n", "test-a") == (1, "0 passed, 1 failed")


def test_a_suite_that_breaks_after_its_tests_has_failed(tmp_path: Path) -> None:
    assert run(tmp_path, writes("test-a", PASSING, then="exit 3"), "test-a") == (1, "2 passed, 1 failed")


def test_old_reports_do_not_count(tmp_path: Path) -> None:
    old = tmp_path / "build" / "test-reports" / "test-a" / "old.xml"
    old.parent.mkdir(parents=True)
    old.write_text(FAILING)
    assert run(tmp_path, writes("test-a", PASSING), "test-a") == (0, "2 passed, 0 failed")
