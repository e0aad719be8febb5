"""`python -m bench.report`: turn the figures of a run into docs/benchmarks.md and a plot."""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path
from typing import Any

from bench import growth, show
from bench.figures import client_text
from bench.figures import text as sync_text

# To be reached with 64 clients: our requests a second over the twin's, at least; our CPU over the floor's, at most.
FIGURES = {"get": (2.0, 1.5), "create": (3.0, 1.4), "list": (2.0, 1.2), "since": (2.0, 1.5)}
READS = ("get", "list", "since")
COLOURS = ("#1f6f8b", "#7fb3c4", "#9a9a9a", "#c8553d", "#d9a441", "#6b5b95")

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 }
.h { font-size: 15px; font-weight: 600 }
.s { fill: #777 }
.g { stroke: #999; stroke-width: .5; stroke-dasharray: 2 3 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .s { fill: #aaa } }
"""
INTRODUCTION = """\
# Benchmarks

Written by `python -m bench.report` from one run of `make bench`. What is compared, what is not, and how to read it:
`bench/README.md`. Ratios travel between machines; absolute rates do not.
"""
LEGEND = """\
*we serve* is strongroom's requests a second over the target's: more is better. *our p50* and *our CPU* are strongroom's
median latency and CPU time a request over the target's: less is better.
"""


def figures(result: dict[str, Any]) -> str:
    """The figures that were set, and what this run found."""
    cells = {(cell["scenario"], cell["clients"], cell["target"]): cell for cell in result["cells"]}
    names = {scenario["name"]: scenario["title"] for scenario in result["scenarios"]}
    lines = ["| scenario, 64 clients | times the twin's requests/s | times the floor's CPU |", "|---|---:|---:|"]
    for name, (least, most) in FIGURES.items():
        ours, twin, floor = (cells.get((name, 64, target)) for target in ("strongroom", "hono", "floor"))
        if ours is None:
            continue
        served = "-" if twin is None else _verdict(ours["rate"] / twin["rate"], least, at_least=True)
        spent = "-" if floor is None else _verdict(ours["cpu_us"] / floor["cpu_us"], most, at_least=False)
        lines.append(f"| {names[name]} | {served} | {spent} |")
    lines += ["", "| | found | wanted |", "|---|---|---|"]
    lines.append(_one_client(cells, names))
    for name in READS:
        ours, theirs = cells.get((name, 64, "strongroom")), cells.get((name, 64, "strongroom-pg"))
        if ours is not None and theirs is not None:
            part = theirs["rate"] / ours["rate"]
            lines.append(f"| {names[name]}: PostgreSQL's part of SQLite's requests/s | {part:.0%} | at least 60 % |")
    return "\n".join(lines)


def _verdict(found: float, wanted: float, *, at_least: bool) -> str:
    reached = found >= wanted if at_least else found <= wanted
    sign = "≥" if at_least else "≤"
    return f"{found:.2f} (wanted {sign} {wanted:g}{'' if reached else ', **missed**'})"


def _one_client(cells: dict[Any, Any], names: dict[str, str]) -> str:
    slower = []
    for name, title in names.items():
        ours, twin = cells.get((name, 1, "strongroom")), cells.get((name, 1, "hono"))
        if ours is not None and twin is not None and ours["p50_ms"] > twin["p50_ms"]:
            slower.append(f"{title} ({ours['p50_ms']:.2f} ms against {twin['p50_ms']:.2f})")
    found = "slower: " + "; ".join(slower) if slower else "none slower"
    return f"| one client, median latency against the twin's | {found} | none slower |"


def plot(result: dict[str, Any], clients: int) -> str:
    """Requests a second of every target, strongroom's being 1, as an SVG of bars on a logarithmic scale."""
    from math import log10

    cells = {(cell["scenario"], cell["target"]): cell for cell in result["cells"] if cell["clients"] == clients}
    targets, base = result["targets"], result["targets"][0]["name"]
    names = [scenario for scenario in result["scenarios"] if (scenario["name"], base) in cells]
    low, high, left, width, bar = 0.01, 4.0, 250, 620, 14
    group = bar * len(targets) + 22
    height = 92 + group * len(names) + 34

    def x(ratio: float) -> float:
        return left + width * log10(max(min(ratio, high), low) / low) / log10(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 130} {height}" role="img">',
        f"<title>Requests a second with {clients} clients, relative to strongroom on SQLite</title>",
        f"<style>{STYLE}</style>",
        f'<text class="h" x="16" y="26">Requests a second, {clients} clients: strongroom on SQLite is 1</text>',
    ]
    for number, target in enumerate(targets):
        at = 16 + number * 145
        parts.append(f'<rect x="{at}" y="42" width="12" height="12" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(f'<text x="{at + 17}" y="53">{escape(target["title"])}</text>')
    for mark in (0.01, 0.1, 0.5, 1, 2, 4):
        parts.append(f'<line class="g" x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="74" y2="{height - 26}"/>')
        parts.append(f'<text class="s" text-anchor="middle" x="{x(mark):.1f}" y="{height - 10}">{mark:g}</text>')
    y = 84
    for scenario in names:
        title = escape(scenario["title"].replace("`", ""))
        parts.append(f'<text text-anchor="end" x="{left - 10}" y="{y + bar * len(targets) / 2 + 4:.0f}">{title}</text>')
        ours = cells[scenario["name"], base]["rate"]
        for number, target in enumerate(targets):
            cell = cells.get((scenario["name"], target["name"]))
            row = y + number * bar
            if cell is None:
                parts.append(f'<text class="s" x="{left + 4}" y="{row + 11}">no such scenario</text>')
                continue
            ratio, colour = cell["rate"] / ours, COLOURS[number % len(COLOURS)]
            length = max(x(ratio) - left, 1)
            parts.append(f'<rect x="{left}" y="{row}" width="{length:.1f}" height="{bar - 3}" fill="{colour}"/>')
            said = f"{cell['rate']:,.0f}/s" if target["name"] == base else f"{ratio:.2f}"
            parts.append(f'<text class="s" x="{left + length + 5:.1f}" y="{row + 10}">{said}</text>')
        y += group
    return "\n".join([*parts, "</svg>", ""])


def document(
    result: dict[str, Any],
    grown: dict[str, Any] | None,
    synced: dict[str, Any] | None,
    client: dict[str, Any] | None,
    plot_name: str,
) -> str:
    """docs/benchmarks.md."""
    pinned = "the load on one core, the servers on the other" if result["pinned"] else "load and servers on all cores"
    windows = f"{result['rounds']} rounds of {result['seconds']:g} s a cell"
    versions = "; ".join(f"{target['title']} {target['version']}" for target in result["targets"] if target["version"])
    absent = [f"- {name}: {reason}" for name, reason in result["absent"].items()]
    parts = [
        INTRODUCTION,
        f"{result['date']}; {result['machine']}; {pinned}; {windows}, interleaved over the targets. {versions}.",
        "",
        f"![Requests a second with {max(result['clients'])} clients, relative to strongroom]({plot_name})",
        "",
        "## The figures that were set",
        "",
        figures(result),
        "",
        "## The whole run",
        "",
        LEGEND,
        show.markdown(result),
        "",
    ]
    if absent:
        parts += ["Not run here:", "", *absent, ""]
    if grown is not None:
        parts += ["## Cost against size, memory, start", "", growth.text(grown), ""]
    if synced is not None:
        parts += ["## Sync", "", sync_text(synced), ""]
    if client is not None:
        parts += ["## The client", "", client_text(client), ""]
    return "\n".join(parts)


def main() -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("run", type=Path, help="what `python -m bench --json` wrote")
    parser.add_argument("--growth", type=Path, help="what `python -m bench.growth --json` wrote")
    parser.add_argument("--sync", type=Path, help="what `python -m bench.sync --json` wrote")
    parser.add_argument("--client", type=Path, help="what `python -m bench.client --json` wrote")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    options = parser.parse_args()
    result = json.loads(options.run.read_text())
    grown = json.loads(options.growth.read_text()) if options.growth else None
    synced = json.loads(options.sync.read_text()) if options.sync and options.sync.exists() else None
    client = json.loads(options.client.read_text()) if options.client and options.client.exists() else None
    picture = options.output.with_suffix(".svg")
    picture.write_text(plot(result, max(result["clients"])))
    options.output.write_text(document(result, grown, synced, client, picture.name))
    print(f"Wrote {options.output} and {picture}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
