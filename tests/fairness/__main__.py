"""Prints the table of all routes: `python -m tests.fairness [--short] [sqlite|postgres] [part of a name]...`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.fairness.attacks import ATTACKS
from tests.fairness.bounds import EXCEPTIONS, faults
from tests.fairness.harness import Measured, opened
from tests.fairness.stage import SHORT, WHOLE
from tests.kit.servers.process import ENGINES

HEAD: Final = (
    "| route | alone p50 | p99 | beside p50 | p99 | longest silence | processor before a response | requests |"
    " sent, KiB | stored/sent | processor a request | longest callback | statuses |\n" + "|---" * 13 + "|"
)


def row(measured: Measured) -> str:
    """A row of the table; times are milliseconds."""
    alone, beside = measured.alone, measured.beside
    times = (alone.p50, alone.p99, beside.p50, beside.p99, beside.silence, beside.loop_longest)
    stored = f"{max(0, measured.stored) / max(1, measured.sent):.2f}"
    cells = [f"`{measured.attack.name}`", *(f"{one:.1f}" for one in times), f"{measured.requests}"]
    cells += [f"{measured.sent / 1024:.0f}", stored, f"{measured.processor:.2f}", f"{measured.stretch:.0f}"]
    cells.append(", ".join(f"{count} x {status}" for status, count in measured.statuses.items()))
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    """Play the attacks that are named, or all; 1 where a bound is broken."""
    scale = SHORT if "--short" in words else WHOLE
    engines = [word for word in words if word in ENGINES] or list(ENGINES)
    parts = [word for word in words if word not in {*ENGINES, "--short"}]
    chosen = [attack for attack in ATTACKS if not parts or any(part in attack.name for part in parts)]
    found: list[str] = []
    for engine in engines:
        print(f"\n{engine}\n\n{HEAD}", flush=True)  # noqa: T201
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder), engine, scale) as harness:
            for attack in chosen:
                measured = harness.play(attack)
                print(row(measured), flush=True)  # noqa: T201
                found += [f"{engine}: {fault}" for fault in faults(measured, by_the_clock=scale is WHOLE)]
    print("", *found, *(f"{name}, {bound}: {reason}" for (name, bound), reason in EXCEPTIONS.items()), sep="\n")  # noqa: T201
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
