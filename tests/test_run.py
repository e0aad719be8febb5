"""`make test` runs the same tests on every day, says what it left out, and leaves out nothing with CI=true."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit import report, requirements, samples
from tests.kit.programs.debian_programs import FAKETIME
from tests.run import QUICK
from tests.soak import LONG_HELPERS, PARTS, files_of

ROOT = Path(__file__).parents[1]
DATES = ("2026-11-18 12:00:00", "2028-02-29 23:59:50")


def collected(folder: Path, date: str) -> dict[str, Any]:
    """Every test that a run on this date would take, and the rows of tables that are its parameters."""
    path = folder / f"{date}.json"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")},
        "LD_PRELOAD": str(requirements.needed(FAKETIME)),
        "FAKETIME": f"@{date}",
        "FAKETIME_DONT_RESET": "1",
        report.VARIABLE: str(path),
    }
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return record


def test_no_test_is_chosen_by_the_date(tmp_path: Path) -> None:
    """Two dates, two years apart: the same tests, with the same parameters and the same rows of tables."""
    one, other = (collected(tmp_path, date) for date in DATES)
    assert len(one["left_out"]) > 1_000
    assert one == other


def test_a_sample_is_fixed_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fourth row, from the first one or from that of the shift; the last line counts them."""
    monkeypatch.setattr(samples, "LONG", False)
    monkeypatch.setattr(samples, "taken", samples.taken.copy())
    monkeypatch.setattr(samples, "total", samples.total.copy())
    assert samples.some("a planted table", range(10)) == [0, 4, 8]
    assert samples.some("a planted table", range(10), 5) == [1, 5, 9]
    assert samples.chosen("a planted table", "abc", "b") == ["b"]
    [use] = [use for use in samples.taken if use.table == "a planted table"]
    assert use.test.endswith("::test_a_sample_is_fixed_and_counted")
    assert (samples.taken[use], samples.total[use]) == (7, 23)
    monkeypatch.setattr(samples, "LONG", True)
    assert samples.some("a planted table", range(10)) == list(range(10))


def test_the_last_lines_say_what_ran_and_what_was_left_out() -> None:
    """Of both runs together, by reason; a test that one of them left out and the other ran has run."""
    first = {
        "run": ["a", "b"],
        "failed": ["b"],
        "left_out": {"c": "caddy is missing", "d": report.SOAK, "e": "caddy is missing"},
        "rows": [["table", "", 2, 8], ["table", "a", 1, 4]],
    }
    second = {"run": ["e"], "failed": [], "left_out": {"d": report.SOAK}, "rows": [["table", "", 2, 8]]}
    assert report.last_lines([first, second]).splitlines() == [
        "3 of 5 tests, 3 of 12 table rows run, 1 failed",
        "left out: 1, caddy is missing",
        "left out: 1, only in make soak",
    ]


def run(records: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.run`, as `make test` calls it."""
    given = {name: value for name, value in os.environ.items() if name != "CI" and "XDIST" not in name}
    command = [sys.executable, "-m", "tests.run", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**given, "PARALLEL": "1", "TEST_RECORDS": str(records), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_ends_with_the_count(tmp_path: Path) -> None:
    """A file of tests, of which none is left out."""
    done = run(tmp_path, "tests/test_identifiers.py")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "9 of 9 tests, 0 of 0 table rows run"


def test_the_folder_of_a_failed_run_stays_until_the_next(tmp_path: Path) -> None:
    """So that one can look at it; no more than one of each kind is left on the disk."""
    assert run(tmp_path, "tests/nowhere.py").returncode != 0
    folders = [Path(path.read_text("utf-8")) for path in tmp_path.glob("*.folder")]
    assert folders
    assert all(folder.is_dir() for folder in folders)
    assert run(tmp_path, "tests/test_identifiers.py").returncode == 0
    assert not any(folder.exists() for folder in folders)
    assert not list(tmp_path.glob("*.folder"))


def test_what_is_missing_is_a_skip_here_and_a_failure_in_ci(tmp_path: Path) -> None:
    """On a machine without programs: the reason is in the last lines, or nothing is run and everything is named."""
    words = ("tests/programs/test_units.py", "tests/test_identifiers.py")
    done = run(tmp_path, *words, PATH=str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == (
        "left out: 1, systemd-analyze is not installed. Debian's package is systemd."
    )
    done = run(tmp_path, *words, PATH=str(tmp_path), CI="true")
    assert done.returncode == 1
    assert "systemd-analyze is not installed. Debian's package is systemd." in done.stdout
    assert "chromium is not installed. Debian's package is chromium." in done.stdout
    assert "passed" not in done.stdout


HANGS = "import threading\n\n\ndef test_it() -> None:\n    threading.Event().wait()\n"


def test_a_test_that_hangs_fails_and_shows_where(tmp_path: Path) -> None:
    """The limit of pyproject.toml, here a second, with the stack of the test."""
    (tmp_path / "test_hang.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["-o", "timeout=1", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Timeout (>1.0s) from pytest-timeout." in done.stdout
    assert "threading.Event().wait()" in done.stdout


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    """Unless a run was given another one."""
    assert float(pytestconfig.getini("timeout")) > 0


def sampled() -> set[str]:
    """The names of the tables that some test samples."""
    calls = (
        node
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__) and "tests.kit.samples" in path.read_text("utf-8")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"some", "chosen"}
    )
    return {str(call.args[0].value) for call in calls if isinstance(call.args[0], ast.Constant)}


def test_the_soak_finds_what_has_more_to_do() -> None:
    """Every module beside tests that asks for more in `make soak` is known to it, and every part has files."""
    longer = {
        path.stem
        for path in (ROOT / "tests").rglob("*.py")
        if "from tests.kit.samples import" in path.read_text("utf-8")
        and not path.stem.startswith(("test_", "conftest"))
    }
    assert longer - {"report"} == set(LONG_HELPERS)
    assert [part for part in PARTS if not files_of(part)] == []
    assert "tests/security/test_planted.py" in files_of("security")


def test_the_quick_choice_exists() -> None:
    """A file that has moved would be left out of `make quick` with an error of pytest alone."""
    assert [path for path in QUICK if not (ROOT / path).exists()] == []


def test_the_page_lists_every_sample() -> None:
    """Each table of docs/samples.md is sampled by a test, and each that is sampled is there."""
    page = (ROOT / "docs/samples.md").read_text("utf-8")
    assert set(re.findall(r"^\| ([^|]+) \| `tests/", page, re.MULTILINE)) == sampled()
