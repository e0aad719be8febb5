"""Records what a run of pytest ran and what it left out, for the last line of `make test`."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kit import samples

VARIABLE: Final = "TEST_REPORT"  # the file that the record is written to
SOAK: Final = "only in make soak"
Rows = dict[tuple[str, str], tuple[int, int]]  # rows that were played and all rows, by table and test


class Report:
    """Listens to a run. In a worker of pytest-xdist it hands over what only the worker knows."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._run: set[str] = set()
        self._failed: set[str] = set()
        self._selected: set[str] = set()
        self._left_out: dict[str, str] = {}
        self._rows: Rows = {}

    def leave_out(self, names: Iterable[str], reason: str) -> None:
        """Tests that are not run, by their node ids."""
        self._left_out.update(dict.fromkeys(names, reason))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._left_out[report.nodeid] = reason.removeprefix("Skipped: ")
        elif report.when == "call" or report.failed:
            self._run.add(report.nodeid)
            if report.failed:
                self._failed.add(report.nodeid)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected.update(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._selected.update(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        self._left_out.update(output.get("left_out", {}))
        self._add(output.get("rows", []))

    def pytest_sessionfinish(self) -> None:
        rows = [(*use, count, samples.total[use]) for use, count in samples.taken.items()]
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput |= {"left_out": self._left_out, "rows": rows}
            return
        self._add(rows)
        not_reached = self._selected - self._run - self._left_out.keys()
        self.leave_out(not_reached, "the run ended before")
        if path := os.environ.get(VARIABLE):
            record = {
                "run": sorted(self._run),
                "failed": sorted(self._failed),
                "left_out": self._left_out,
                "rows": [(*use, *counts) for use, counts in self._rows.items()],
            }
            Path(path).write_text(json.dumps(record), "utf-8")

    def _add(self, rows: Iterable[tuple[str, str, int, int]]) -> None:
        """Every worker imports a table of parameters, and one worker plays the rows of a test."""
        for table, test, taken, total in rows:
            self._rows[table, test] = max(self._rows.get((table, test), (0, 0)), (taken, total))


def last_lines(records: list[dict[str, Any]]) -> str:
    """What all runs together have run, and what they left out, by reason."""
    run = {name for record in records for name in record["run"]}
    left_out = {name: reason for record in records for name, reason in record["left_out"].items() if name not in run}
    rows = {(table, test): counts for record in records for table, test, *counts in record["rows"]}
    played, every = (sum(counts[at] for counts in rows.values()) for at in (0, 1))
    failed = {name for record in records for name in record["failed"]}
    line = f"{len(run):,} of {len(run) + len(left_out):,} tests, {played:,} of {every:,} table rows run"
    line += f", {len(failed):,} failed" if failed else ""
    reasons = Counter(left_out.values()).most_common()
    return "\n".join([line, *(f"left out: {count:,}, {reason}" for reason, count in reasons)])
