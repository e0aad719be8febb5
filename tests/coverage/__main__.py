"""Measures which lines and branches of strongroom the tests run, server processes included.

    python -m tests.coverage [--add] [arguments of pytest]

With --add, what was measured before stays: a whole run can be made in parts, and a new test added.
Every process that finds COVERAGE_PROCESS_START in its environment measures itself: pytest, its workers, the servers and
commands that tests start, and the workers of those. A process that is killed loses its data, and so does one that a
test starts with an environment of its own; what only they run counts as not covered.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import coverage

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "strongroom"
FOLDER = ROOT / ".venv" / "coverage"  # not in the repository
SETTINGS = Path(__file__).with_name("settings.ini")
FOLDERS = ("actions", "store", "server", "client", "agent", "items", "mcp", "programs", "cli", "wire", "root")


def measure(arguments: list[str], folder: Path = FOLDER, *, add: bool = False) -> int:
    """Run these tests measured; the data of all processes come together in one file. The exit status of pytest."""
    if not add:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o1777)  # some tests start processes of another user
    environment = os.environ | {"COVERAGE_PROCESS_START": str(SETTINGS), "MEASURED_FOLDER": str(folder)}
    environment.pop("PYTEST_CURRENT_TEST", None)  # of a test that measures others
    command = [sys.executable, "-m", "pytest", "-p", "tests.coverage.plugin", *arguments]
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    measured = data(folder)
    if add:
        measured.load()
    measured.combine([str(folder)])
    measured.save()
    return status


def data(folder: Path = FOLDER) -> coverage.Coverage:
    """What was measured."""
    os.environ["MEASURED_FOLDER"] = str(folder)
    return coverage.Coverage(config_file=str(SETTINGS), data_suffix=False)


def table(folder: Path = FOLDER, source: Path = SOURCE) -> str:
    """Lines and branches by folder, of the sources below a folder; files that no test imports included."""
    measured = data(folder)
    measured.load()
    report = folder / "report.json"
    measured.json_report(morfs=[str(path) for path in sorted(source.rglob("*.py"))], outfile=str(report))
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, file in json.loads(report.read_text())["files"].items():
        parts = (ROOT / name).relative_to(SOURCE).parts
        for row in ("all", parts[0] if len(parts) > 1 else "root"):
            for figure, value in file["summary"].items():
                sums[row][figure] += value if isinstance(value, int) else 0
    rows = [_row(name, sums[name]) for name in (*FOLDERS, "all")]
    return "\n".join(["| folder | lines | covered | branches | covered |", "|---|---|---|---|---|", *rows])


def _row(name: str, of: dict[str, Any]) -> str:
    lines, branches = of["num_statements"], of["num_branches"]
    return (
        f"| {name} | {lines:,} | {of['covered_lines'] / max(lines, 1):.1%}"
        f" | {branches:,} | {of['covered_branches'] / max(branches, 1):.1%} |"
    )


if __name__ == "__main__":
    ended = measure([one for one in sys.argv[1:] if one != "--add"], add="--add" in sys.argv[1:])
    sys.stdout.write(table() + "\n")
    sys.exit(ended)
