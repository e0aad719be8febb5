"""Mutation: small faults are planted in the sources, one at a time, and the tests must notice each.

    python -m tests.mutation [options]          --help names them

The tests that run for a mutant are those that ran its lines when `make coverage` measured last.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.coverage.__main__ import FOLDER, ROOT
from tests.coverage.plugin import RESULTS
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.runner import Outcome, Overlay
from tests.mutation.selection import Choice

SOURCE = ROOT / "src"
FOLDERS = ("actions", "store", "server", "client", "agent", "items", "mcp", "programs")
REASONS = Path(__file__).with_name("reasons.txt")  # mutants that no test can or need notice, and why


def main() -> int:
    """Run a sample and print what became of it."""
    options = _options()
    if options.reasons:
        stale = stale_reasons(REASONS)
        _say("\n".join(stale) or "Every reason names a mutant.")
        return int(bool(stale))
    mutants = sample(options)
    if options.list:
        _say("\n".join(map(str, mutants)))
        return 0
    choice = Choice(FOLDER, SOURCE)
    if changed := [path for path in SOURCE.rglob("*.py") if path.stat().st_mtime > (FOLDER / RESULTS).stat().st_mtime]:
        _say(f"{len(changed)} source files have changed since tests were measured; `make coverage` measures them anew.")
    outcomes: dict[Mutant, Outcome] = {}
    began = time.monotonic()
    with Overlay(SOURCE, ROOT) as overlay:
        for mutant in mutants:
            if time.monotonic() - began > options.minutes * 60:
                _say(f"time is up after {len(outcomes)} of {len(mutants)} mutants")
                break
            tests = options.run or choice.tests_for(mutant, options.tests, options.seconds)
            timeout = 30 + 3 * (options.seconds if options.run else choice.time_of(tests))
            outcomes[mutant] = overlay.run(mutant, tests, timeout) if tests else Outcome("not covered")
            _say(f"{outcomes[mutant].what}: {mutant}  ({len(tests)} tests) {outcomes[mutant].by}")
        killers = sorted({outcome.by for outcome in outcomes.values() if outcome.by and " " not in outcome.by})
        check = overlay.tests(killers, 60 + 5 * len(killers), "--maxfail=1000") if killers else Outcome("survived")
    if check.what != "survived":
        _say(f"\nNot to be believed: these fail without a mutant too: {check.what} {check.by}")
    _say("\n" + table(outcomes))
    for mutant, outcome in outcomes.items():
        if outcome.what in ("survived", "not covered"):
            _say(f"{outcome.what}: {mutant}")
    return int(score(outcomes.values()) < options.at_least)


def sample(options: argparse.Namespace) -> list[Mutant]:
    """The mutants of this run: so many of each folder, drawn by the seed, without those that have a written reason."""
    excused = {line.split()[0] for line in _lines(REASONS)}
    drawn: list[Mutant] = []
    for folder in options.folder or FOLDERS:
        found = [
            mutant
            for path in sorted((SOURCE / "strongroom" / folder).rglob("*.py"))
            for mutant in mutants_of(path, SOURCE)
            if (mutant.guard or not options.guards)
            and (not options.id or mutant.id in options.id)
            and (not options.only or options.only in mutant.path)
            and (not options.kind or options.kind in mutant.kind)
            and (mutant.id not in excused or options.id)
        ]
        drawn += random.Random(options.seed).sample(found, min(options.count, len(found)))  # noqa: S311 (no secret)
    return drawn


def stale_reasons(reasons: Path) -> list[str]:
    """The lines with an id that no mutant of today's sources has: a renamed file or another text gives another id."""
    sources = [path for folder in FOLDERS for path in (SOURCE / "strongroom" / folder).rglob("*.py")]
    ids = {mutant.id for path in sources for mutant in mutants_of(path, SOURCE)}
    return [line for line in _lines(reasons) if line.split()[0] not in ids]


def _lines(reasons: Path) -> list[str]:
    return [line for line in reasons.read_text().splitlines() if line and not line.startswith("#")]


def score(outcomes: Iterable[Outcome]) -> float:
    """How many of those that tests ran for were noticed, of a hundred."""
    counted = Counter(outcome.what for outcome in outcomes)
    noticed = counted["killed"] + counted["timeout"]
    return 100 * noticed / max(1, noticed + counted["survived"] + counted["not covered"])


def table(outcomes: dict[Mutant, Outcome]) -> str:
    """The outcomes by folder."""
    by_folder: dict[str, list[Outcome]] = defaultdict(list)
    for mutant, outcome in outcomes.items():
        for row in (mutant.path.split("/")[1], "all"):
            by_folder[row].append(outcome)
    rows = ["| folder | mutants | killed | survived | not covered | score |", "|---|---|---|---|---|---|"]
    for folder in (*FOLDERS, "all"):
        counted = Counter(outcome.what for outcome in by_folder[folder] if outcome.what != "unusable")
        killed = counted["killed"] + counted["timeout"]
        rows.append(
            f"| {folder} | {counted.total()} | {killed} | {counted['survived']} | {counted['not covered']}"
            f" | {score(by_folder[folder]):.0f} % |"
        )
    return "\n".join(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Plant faults, and see tests notice.")
    parser.add_argument("--count", type=int, default=25, help="mutants of each folder (25)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--guards", action="store_true", help="only guards: owners, versions, scopes, bounds, modes")
    parser.add_argument("--folder", choices=FOLDERS, action="append", help="only this folder; may be repeated")
    parser.add_argument("--only", help="only files whose path has this in it")
    parser.add_argument("--kind", help="only kinds that have this in their name: sql, mode, raise, number …")
    parser.add_argument("--id", action="append", help="this mutant, written reason or not; may be repeated")
    parser.add_argument("--tests", type=int, default=60, help="the most tests for a mutant (60)")
    parser.add_argument("--seconds", type=float, default=40, help="the most that they took together (40)")
    parser.add_argument("--run", action="append", help="this test and none by choice, file or id; may be repeated")
    parser.add_argument("--minutes", type=float, default=600, help="begin no mutant after so long")
    parser.add_argument("--at-least", type=float, default=0, help="fail below this score, of a hundred")
    parser.add_argument("--reasons", action="store_true", help="print written reasons that name no mutant; run nothing")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
