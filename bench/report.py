"""`python -m bench.report`: write docs/benchmarks.md, its plots, and the figures of other pages.

It reads what lies in bench/results, one folder for each architecture. In other pages it replaces what stands between
`<!-- bench: NAME -->` and `<!-- bench: end -->`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from bench import figures, goals, layers, result_table, tables
from bench.plot import plot
from bench.result_files import FOLDER, Machine, machines

INTRODUCTION = """\
# Benchmarks

Written by `make bench-report` from the results in `bench/results/`, which `make bench-all` measures. What is compared,
what is not, and how to read it: `bench/README.md`.

Neither rates nor ratios travel between machines. One and the same commit, against the Hono twin with 64 clients, had
4.06 for get, 3.03 for create and 2.11 for update on aarch64, and 2.0, 1.6 and 0.94 on x86-64. So both architectures
stand side by side here, each with its date, and a ratio means something only within its column.
"""
LEGEND = """\
*we serve* is strongroom's requests a second over the target's: more is better. *our p50* and *our CPU* are strongroom's
median latency and CPU time a request over the target's: less is better.
"""
BLOCK = re.compile(r"(<!-- bench: ([a-z-]+) -->\n)(.*?)(\n<!-- bench: end -->)", re.DOTALL)
# What the README's table compares, by product and database.
TARGETS = {
    ("strongroom", "SQLite"): "strongroom",
    ("strongroom", "PostgreSQL"): "strongroom-pg",
    ("Hono twin", "SQLite"): "hono",
    ("PocketBase", "SQLite"): "pocketbase",
    ("Kinto", "PostgreSQL"): "kinto",
}


def compared(found: list[Machine], old: str) -> str:
    """The README's table with the figures of the machine that was measured last."""
    lines = []
    for line in old.splitlines():
        row = line.split("|")
        target = TARGETS.get((row[1].strip(" [").partition("]")[0], row[4].strip())) if len(row) > 4 else None
        if target is not None:
            for column, name in ((5, "get"), (6, "create")):
                cell = found[0].cells.get((name, 64, target))
                row[column] = " " if cell is None else f" {result_table.short(cell['rate'])} "
        lines.append("|".join(row))
    return "\n".join(lines)


def compared_on(found: list[Machine], _old: str) -> str:
    """Where the README's figures come from, and where the twin is faster."""
    [[cores, name]] = re.findall(r"(\d+) cores, (\w+)", found[0].run["machine"])
    said = "Requests a second for documents of 1 KB with 64 clients, as each product ships,"
    said += f" on {cores} cores of {name} that also carry the load; empty cells were not measured."
    slower = [name for name in ("create", "update") if _is_slower(found[0], name)]
    if slower:
        said += f" With a single client the Hono twin is faster at {' and '.join(f'{one}s' for one in slower)},"
        said += " because it does not wait for the disk."
    return textwrap.fill(said, 120)


def _is_slower(machine: Machine, scenario: str) -> bool:
    ours, twin = (machine.cells.get((scenario, 1, target)) for target in ("strongroom", "hono"))
    return ours is not None and twin is not None and bool(ours["p50_ms"] > twin["p50_ms"])


BLOCKS: dict[str, Callable[[list[Machine], str], str]] = {
    "compared": compared,
    "compared-on": compared_on,
    "sizing": lambda found, _: tables.sizing(found[0]),
    "workers": lambda found, _: tables.workers(found),
    "accounts": lambda found, _: tables.accounts(found),
    "moves": lambda found, _: tables.moves(found),
}


def document(found: list[Machine]) -> str:
    """docs/benchmarks.md."""
    parts = [INTRODUCTION]
    for machine in found:
        titles = machine.run["targets"]
        versions = "; ".join(f"{target['title']} {target['version']}" for target in titles if target["version"])
        parts += [f"{tables.heading(machine)} {versions}{'.' * bool(versions)}".strip(), ""]
    measured = [machine for machine in found if machine.cells]
    parts += [
        f"![Requests a second with 64 clients on {machine.title}](benchmarks-{machine.name}.svg)\n"
        for machine in measured
    ]
    parts += ["## The figures that were set", "", goals.table(found), ""]
    parts += ["## Side by side", "", "With the most clients that a scenario was measured with.", "", LEGEND]
    parts += [tables.side_by_side(found), ""]
    for title, made in (("Two worker processes", tables.workers), ("One account and many", tables.accounts)):
        if (text := made(found)) != tables.NONE:
            parts += [f"## {title}", "", text, ""]
    for machine in measured:
        parts += [f"## The whole run on {machine.title}", "", tables.heading(machine), "", LEGEND]
        parts += [result_table.markdown(machine.run), ""]
        if absent := [f"- {name}: {reason}" for name, reason in machine.run["absent"].items()]:
            parts += ["Not run here:", "", *absent, ""]
    for machine in found:
        if machine.profile is not None:
            parts += [f"## Where the time goes on {machine.title}", "", layers.text(machine.profile), ""]
    for machine in found:
        if machine.growth is not None:
            parts += [
                f"## Cost against size, memory, start on {machine.title}",
                "",
                figures.growth_text(machine.growth),
                "",
            ]
        if machine.sync is not None:
            parts += [f"## Sync on {machine.title}", "", figures.text(machine.sync), ""]
    for machine in found:
        if machine.client is not None:
            parts += [f"## The client on {machine.title}", "", figures.client_text(machine.client), ""]
    return "\n".join(parts)


def filled(text: str, found: list[Machine]) -> str:
    """A page with its figures."""
    return BLOCK.sub(lambda block: f"{block[1]}{BLOCKS[block[2]](found, block[3])}{block[4]}", text)


def written(root: Path, folder: Path) -> dict[Path, str]:
    """Every page that holds figures, as it has to be."""
    found = machines(folder)
    docs = root / "docs"
    pages = {docs / "benchmarks.md": document(found)}
    pages |= {docs / f"benchmarks-{machine.name}.svg": plot(machine) for machine in found if machine.cells}
    for page in (root / "README.md", docs / "operating.md", docs / "scaling.md"):
        pages[page] = filled(page.read_text(), found)
    return pages


def main() -> int:
    """Write them."""
    for page, text in written(FOLDER.parent.parent, FOLDER).items():
        page.write_text(text)
        print(f"Wrote {page.name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
