"""`make test`: every test that is not only in `make soak`. The last lines say what ran, and what was left out and why.

`python -m tests.run [arguments of pytest]`. Tests run in parallel; those marked `alone` run after the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.kit import report, requirements

PARALLEL: Final = os.environ.get("PARALLEL", "6")  # three times the cores that it aims at: many tests wait
# What the last run ran, test by test.
RECORDS: Final = Path(os.environ.get("TEST_RECORDS", f"{sys.prefix}/test-records"))
NONE_CHOSEN: Final = 5  # the exit code of pytest where no test is of the requested kind


def run(path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """A run of pytest: its exit code, and the record of what it ran."""
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *arguments]
    code = subprocess.run(command, env={**os.environ, report.VARIABLE: str(path)}, check=False).returncode
    nothing: dict[str, Any] = {"run": [], "failed": [], "left_out": {}, "rows": []}
    return code, json.loads(path.read_text("utf-8")) if path.exists() else nothing


def files_with_lone_tests() -> list[str]:
    """Those with a test that runs alone: reading all files to find them takes a quarter of a minute."""
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if "mark.alone" in path.read_text("utf-8"))


def main(arguments: list[str]) -> int:
    """Run both kinds of tests; the first exit code that is not 0."""
    if requirements.IS_CI and (missing := list(requirements.missing())):
        print("With CI=true no test may be left out because something is missing here:", *missing, sep="\n")  # noqa: T201
        return 1
    parallel = ["-m", "not alone", "--numprocesses", PARALLEL, "--dist", "worksteal", "--durations", "20"]
    alone = ["-m", "alone", "--durations", "5"]
    RECORDS.mkdir(parents=True, exist_ok=True)
    first = run(RECORDS / "parallel.json", *parallel, *arguments)
    second = run(RECORDS / "alone.json", *alone, *(arguments or files_with_lone_tests()))
    print(report.last_lines([first[1], second[1]]))  # noqa: T201
    codes = [code for code, _ in (first, second) if code != NONE_CHOSEN]
    return max(codes, default=NONE_CHOSEN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
