"""`make soak`: whole tables, long kills, races and fuzzing, and the tests that only it runs; two parts at a time.

`python -m tests.soak [PART…]`. A part is the test files of its folders that have more to do here than in `make test`.
Their tests that need a quiet machine are the last part, `alone`, beside which nothing runs.
Their output goes to .venv/soak-logs; the last lines say how each part ended and how many minutes it took. Of one part
alone, the output is shown. `KILLS=10000 make soak-faults` sets the size of a run; the variables are in docs/testing.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Final, NamedTuple

from tests.run import NONE_CHOSEN

# The folders of each part, the longest first. Mutation runs tests of these folders, those that notice faults quickly.
PARTS: Final = {
    "mutation": (
        *("tests/contract", "tests/server", "tests/store", "tests/security", "tests/client"),
        *("tests/agent", "tests/items", "tests/mcp", "tests/programs"),
    ),
    "sync": ("tests/sync",),
    "faults": ("tests/faults",),
    "client": ("tests/client",),
    "security": ("tests/security",),
    "js": ("tests/js",),
    "operating": ("tests/operating", "tests/cli"),
    "server": ("tests/server", "tests/http_differential"),
    "proxies": ("tests/proxies",),
    "store": ("tests/store",),
    "cluster": ("tests/cluster",),
    "fairness": ("tests/fairness",),
    "web": ("tests/web",),
    "people": ("tests/agent", "tests/items", "tests/programs", "tests/mcp"),
    "transfer": ("tests/export", "tests/upgrade", "tests/test_release.py"),
}
ALONE: Final = "alone"
# Faults, what an operator does and upgrades use the disk; for all others databases lie in memory where there is room.
ON_DISK: Final = {"faults", "operating", "transfer"}
# Modules beside tests that have more to do in `make soak`: the tests that import them do, too.
LONG_HELPERS: Final = ("matrix", "request_times", "combined_scenarios", "examples")
_NAMES: Final = "|".join(LONG_HELPERS)
_IS_LONG: Final = re.compile(rf"tests\.kit\.samples|mark\.soak|from tests\.\w+(?:\.| import (?:.*, )?)(?:{_NAMES})\b")
TIME_LIMIT: Final = 5_400  # seconds for a test
LOGS: Final = Path(sys.prefix) / "soak-logs"
LANES: Final = 2
MUTATION_REASONS: Final = ("tests.mutation", "--reasons")
# Which lines each test runs, as three processes can measure it beside another part.
MEASURED: Final = (
    *("tests.coverage", "--numprocesses", "3", "--dist", "worksteal"),
    *("-m", "not alone and not soak", "-k", "not typescript and not chromium"),
)
MUTANTS: Final = os.environ.get("MUTANTS", "10")  # of each folder of the sources
MUTATION: Final = ("tests.mutation", "--guards", "--count", MUTANTS, "--seed", "1", "--at-least", "50")
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
_ROOM: Final = 4 << 30


class End(NamedTuple):
    """How a part ended."""

    part: str
    code: int
    minutes: float
    line: str  # the last one of pytest


def files_of(part: str) -> list[str]:
    """The test files of a part that have more to do here."""
    if part == ALONE:
        files = {file for other in PARTS for file in files_of(other)}
        return sorted(file for file in files if "mark.alone" in Path(file).read_text("utf-8"))
    places = [Path(place) for place in PARTS[part]]
    paths = [path for place in places for path in ([place] if place.is_file() else place.rglob("test_*.py"))]
    return sorted(str(path) for path in paths if _IS_LONG.search(path.read_text("utf-8")))


def commands(part: str, chosen: str = "") -> list[list[str]]:
    """What a part runs, one after the other: all of its tests, or those with a mark."""
    if part == "mutation":
        return [[sys.executable, "-m", *words] for words in (MUTATION_REASONS, (*MEASURED, *PARTS[part]), MUTATION)]
    words = ["-m", chosen, "--capture=no", "--verbose", "--durations", "10", "--timeout", str(TIME_LIMIT)]
    return [[sys.executable, "-m", "pytest", *words, *files_of(part)]]


def environment(part: str) -> dict[str, str]:
    """Its variables: it plays everything whole, and has its databases in memory where that proves as much."""
    variables = dict(os.environ) if part == "mutation" else {**os.environ, "SOAK": "1"}
    if part not in ON_DISK and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM:
        variables["TMPDIR"] = str(_MEMORY)
    return variables


def run_all(part: str, chosen: str = "", output: IO[bytes] | None = None) -> int:
    """Run the commands of a part; the exit code of the first that failed.

    A test may fail while it is measured for mutation, by its time or memory: then it is not chosen for a mutant.
    """
    code = 0
    for words in commands(part, chosen):
        ended = subprocess.run(words, env=environment(part), stdout=output, stderr=output, check=False).returncode
        is_fine = MEASURED[0] in words or (chosen and ended == NONE_CHOSEN)
        code = code or (0 if is_fine else ended)
    return code


def run(part: str) -> End:
    """Run a part, its output in a file."""
    began, path = time.monotonic(), LOGS / f"{part}.log"
    print(f"{part} has begun: {path}", flush=True)  # noqa: T201
    with path.open("wb") as log:
        code = run_all(part, ALONE if part == ALONE else f"not {ALONE}", log)
    lines = path.read_text("utf-8", "replace").splitlines() or ["nothing"]
    end = End(part, code, (time.monotonic() - began) / 60, lines[-1])
    print(f"{part}: {end.minutes:.0f} minutes, {end.line}", flush=True)  # noqa: T201
    return end


def main(parts: list[str]) -> int:
    """Run the parts; 1 where one has failed."""
    if unknown := set(parts) - {*PARTS, ALONE}:
        print(f"There is no part {', '.join(sorted(unknown))}; the parts are {', '.join((*PARTS, ALONE))}.")  # noqa: T201
        return 2
    if len(parts) == 1:
        return run_all(parts[0], ALONE if parts[0] == ALONE else "")
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with ThreadPoolExecutor(LANES) as lanes:
        ends = list(lanes.map(run, [part for part in parts or PARTS if part != ALONE]))
    if not parts or ALONE in parts:
        ends.append(run(ALONE))
    failed = [end.part for end in ends if end.code]
    minutes = (time.monotonic() - began) / 60
    print(*(f"{end.part:10} {end.minutes:4.0f} minutes  {end.line}" for end in ends), sep="\n")  # noqa: T201
    print(f"soak: {len(ends)} parts in {minutes:.0f} minutes, {len(failed)} failed {' '.join(failed)}".rstrip())  # noqa: T201
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
