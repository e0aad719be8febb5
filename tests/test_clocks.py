"""No test compares processor time with a constant: outside the kit, only these measure it, and compare two measures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = re.compile(r"\b(process_time|thread_time|perf_counter|getrusage)(_ns)?\b|\.monotonic\(\) - \w+ <=? *[0-9]")
COMPARING = {
    "contract/test_accounts.py",
    "faults/test_deletion.py",
    "faults/test_retention.py",
    "store/test_wal_checksum.py",
    "test_benchmarks.py",
    "test_clocks.py",
    "test_memory.py",  # a clock that the test sets
}


def measuring(text: str) -> bool:
    """Whether a test reads a clock that judges speed."""
    return CLOCKS.search(text) is not None


def test_processor_time_is_measured_by_the_kit() -> None:
    """`tests/kit/calibration.py` has the measure, and the reference to compare with."""
    found = {path.relative_to(TESTS).as_posix(): path.read_text("utf-8") for path in TESTS.rglob("*.py")}
    assert {name for name, text in found.items() if not name.startswith("kit/") and measuring(text)} == COMPARING


@pytest.mark.parametrize(
    "planted",
    [
        "assert time.process_time() - began < allowed",
        "assert time.monotonic() - began < 2",
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_utime",
    ],
)
def test_a_planted_clock_is_found(planted: str) -> None:
    """In each of the ways in which tests once judged speed."""
    assert measuring(planted)
