"""A plot of one run: requests a second of every target, as bars."""

from __future__ import annotations

from html import escape
from math import log10

from bench.result_files import Machine

COLOURS = ("#1f6f8b", "#7fb3c4", "#9a9a9a", "#c8553d", "#d9a441", "#6b5b95")
CLIENTS = 64
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 }
.h { font-size: 15px; font-weight: 600 }
.s { fill: #777 }
.g { stroke: #999; stroke-width: .5; stroke-dasharray: 2 3 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .s { fill: #aaa } }
"""


def plot(machine: Machine) -> str:
    """Requests a second of every target, strongroom's being 1, as an SVG of bars on a logarithmic scale."""
    cells, result = machine.cells, machine.run
    targets = [target for target in result["targets"] if not target["name"].endswith("-2")]
    base = targets[0]["name"]
    names = [scenario for scenario in result["scenarios"] if (scenario["name"], CLIENTS, base) in cells]
    low, high, left, width, bar = 0.01, 4.0, 250, 620, 14
    group = bar * len(targets) + 22
    height = 92 + group * len(names) + 34
    title = f"Requests a second with {CLIENTS} clients on {machine.title}: strongroom on SQLite is 1"

    def x(ratio: float) -> float:
        return left + width * log10(max(min(ratio, high), low) / low) / log10(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 130} {height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="h" x="16" y="26">{title}</text>',
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
        said = escape(scenario["title"].replace("`", ""))
        parts.append(f'<text text-anchor="end" x="{left - 10}" y="{y + bar * len(targets) / 2 + 4:.0f}">{said}</text>')
        ours = cells[scenario["name"], CLIENTS, base]["rate"]
        for number, target in enumerate(targets):
            cell = cells.get((scenario["name"], CLIENTS, target["name"]))
            row = y + number * bar
            if cell is None:
                parts.append(f'<text class="s" x="{left + 4}" y="{row + 11}">no such scenario</text>')
                continue
            ratio, colour = cell["rate"] / ours, COLOURS[number % len(COLOURS)]
            length = max(x(ratio) - left, 1)
            parts.append(f'<rect x="{left}" y="{row}" width="{length:.1f}" height="{bar - 3}" fill="{colour}"/>')
            shown = f"{cell['rate']:,.0f}/s" if target["name"] == base else f"{ratio:.2f}"
            parts.append(f'<text class="s" x="{left + length + 5:.1f}" y="{row + 10}">{shown}</text>')
        y += group
    return "\n".join([*parts, "</svg>", ""])
