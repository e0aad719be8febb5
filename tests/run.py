"""`make test`: every test that is not only in `make soak`. The last lines say what ran, and what was left out and why.

`python -m tests.run [--quick] [arguments of pytest]`. Tests run in parallel; those marked `alone` run after the others.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.kit import report, requirements

PARALLEL: Final = os.environ.get("PARALLEL", "6")  # three times the cores that it aims at: many tests wait
# What the last run ran, test by test.
RECORDS: Final = Path(os.environ.get("TEST_RECORDS", f"{sys.prefix}/test-records"))
# `--quick`: what breaks first when the API, its rules, the database or a format is changed; on SQLite alone.
QUICK: Final = (
    *("tests/contract", "tests/server", "tests/store", "tests/items"),
    *(
        "tests/client/test_box.py",
        "tests/client/test_seal.py",
        "tests/client/test_vectors.py",
        "tests/client/test_client.py",
    ),
    *("tests/test_architecture.py", "tests/test_import_cycles.py", "tests/test_kit.py", "tests/test_wire.py"),
    *("tests/test_rules.py", "tests/test_identifiers.py", "tests/test_credentials.py", "tests/test_webauthn.py"),
)
NOT_QUICK: Final = "not postgres and not typescript"
NONE_CHOSEN: Final = 5  # the exit code of pytest where no test is of the requested kind


def run(path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """A run of pytest: its exit code, and the record of what it ran.

    It has a folder of its own: in the one that runs share by default, each takes the others' rights away. After a
    failure the folder stays until the next run.
    """
    path.unlink(missing_ok=True)
    failed = path.with_suffix(".folder")
    if failed.exists():
        shutil.rmtree(failed.read_text("utf-8"), ignore_errors=True)
        failed.unlink()
    folder = tempfile.mkdtemp(prefix="sr-")  # short, for sockets have short names
    command = [sys.executable, "-m", "pytest", "--basetemp", f"{folder}/t", *arguments]
    code = subprocess.run(command, env={**os.environ, report.VARIABLE: str(path)}, check=False).returncode
    if code in {0, NONE_CHOSEN}:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        failed.write_text(folder, "utf-8")
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
    RECORDS.mkdir(parents=True, exist_ok=True)
    parallel = ["-m", "not alone", "--numprocesses", PARALLEL, "--dist", "worksteal", "--durations", "20"]
    if arguments[:1] == ["--quick"]:
        code, record = run(RECORDS / "quick.json", *parallel, "-k", NOT_QUICK, *QUICK, *arguments[1:])
        print(report.last_lines([record]), "This was make quick; make test runs every test.", sep="\n")  # noqa: T201
        return code
    alone = ["-m", "alone", "--durations", "5"]
    first = run(RECORDS / "parallel.json", *parallel, *arguments)
    second = run(RECORDS / "alone.json", *alone, *(arguments or files_with_lone_tests()))
    print(report.last_lines([first[1], second[1]]))  # noqa: T201
    codes = [code for code, _ in (first, second) if code != NONE_CHOSEN]
    return max(codes, default=NONE_CHOSEN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
