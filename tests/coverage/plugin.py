"""A plugin of pytest for measured runs: each test is a context of its own, and its outcome and duration are kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

RESULTS = "tests.json"
_seconds: dict[str, float] = {}
_failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure what this process runs as this test's."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        if measuring is not None:
            measuring.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the phases of a test."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the seconds of each test that passed; with several processes, the one that hears of all does so."""
    if hasattr(session.config, "workerinput"):
        return
    kept = Path(os.environ["MEASURED_FOLDER"]) / RESULTS
    before = json.loads(kept.read_text()) if kept.exists() else {}
    now = {test: round(taken, 3) for test, taken in _seconds.items()}
    kept.write_text(json.dumps({test: taken for test, taken in (before | now).items() if test not in _failed}))
