"""The table: one row for each scenario, number of clients and target; ratios say how strongroom stands to it."""

from __future__ import annotations

from typing import Any

_FIGURES = ("requests/s", "CPU µs", "p50 ms", "p99 ms", "MiB")
_HEAD = ("scenario", "clients", "target", *_FIGURES, "we serve", "our p50", "our CPU")


def rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """The table's cells as text. `we serve` is our requests a second over theirs; `our p50`
    and `our CPU` are our time over theirs."""
    titles = {target["name"]: target["title"] for target in result["targets"]}
    by_key = {(cell["scenario"], cell["clients"], cell["target"]): cell for cell in result["cells"]}
    base = result["targets"][0]["name"]
    out = []
    for each in result["scenarios"]:
        scenario, title = each["name"], each["title"]
        for clients in each["clients"]:
            ours = by_key.get((scenario, clients, base))
            for target, said in titles.items():
                cell = by_key.get((scenario, clients, target))
                if cell is None:
                    reason = result["cannot"].get(f"{target} {scenario}", "not measured")
                    out.append((title, str(clients), said, reason, *[""] * 7))
                    continue
                against: tuple[str, ...] = ("", "", "")
                if ours is not None and target != base:
                    against = tuple(ratio(ours[figure], cell[figure]) for figure in ("rate", "p50_ms", "cpu_us"))
                figures = (cell["rate"], cell["cpu_us"], cell["p50_ms"], cell["p99_ms"], cell["memory_mib"])
                out.append((title, str(clients), said, *map(short, figures), *against))
    return out


def ratio(ours: float, theirs: float) -> str:
    """How many times one is the other."""
    return f"{ours / theirs:.2f} \N{MULTIPLICATION SIGN}" if theirs else "-"


def short(value: float) -> str:
    """A figure with three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def text(result: dict[str, Any]) -> str:
    """The table for a terminal."""
    body = rows(result)
    short = [row for row in (_HEAD, *body) if not (row[3] and not row[4])]
    widths = [max(len(row[column]) for row in short) for column in range(len(_HEAD))]
    lines = [_line(_HEAD, widths), "  ".join("-" * width for width in widths)]
    previous: tuple[str, ...] = ("", "")
    for row in body:
        if row[:2] != previous and previous != ("", ""):
            lines.append("")
        first = ("", "") if row[:2] == previous else row[:2]
        previous = row[:2]
        if row[3] and not row[4]:
            lines.append(_line((*first, row[2]), widths[:3]) + "  " + row[3])
        else:
            lines.append(_line((*first, *row[2:]), widths))
    return "\n".join(lines)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        text.ljust(width) if column in {0, 2} else text.rjust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def markdown(result: dict[str, Any]) -> str:
    """The table for a document."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|---|---:|---|" + "---:|" * (len(_HEAD) - 3)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(result)]
    return "\n".join(lines)
