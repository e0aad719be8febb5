"""What was measured of growth, sync and the client, as tables; for some of it a figure was set."""

from __future__ import annotations

import statistics
from typing import Any

from bench import result_table

# What is measured, by its key: a title, what it is counted in, and the figure that was set.
WANTED = {
    "since_cpu_ratio": ("`since` with 10 new: CPU in the large vault over that in the small one", "times", "≤ 1.2"),
    "since_cpu_us": ("… CPU in the large vault", "µs", ""),
    "since_p50_ratio": ("… median latency, large over small", "times", "≤ 1.2"),
    "event_ms": ("event on 100 streams after the write's answer, median", "ms", "≤ 50"),
    "event_apart_ms": ("… the streams on another process", "ms", "≤ 50"),
    "batch_ratio": ("1,000 creates by 16 clients over one batch of 1,000, time", "times", "≥ 8"),
    "batch_ms": ("… the batch", "ms", ""),
    "idle_mib": ("memory of 2,000 idle streams", "MiB", "< 64"),
    "idle_writes_ratio": ("… writes/s beside them over writes/s alone", "times", "about 1"),
    "purge_stall_ms": ("longest silence of 16 writers during a purge", "ms", "≤ 50"),
    "purge_usual_ms": ("… the same without a purge", "ms", ""),
    "purge_rows_s": ("… rows purged a second meanwhile", "", ""),
    "export_per_s": ("documents of 1 KB a second, in the export of an account", "", ""),
    "import_per_s": ("… in its import into another database of the same engine", "", ""),
}


def text(result: dict[str, Any]) -> str:
    """The findings as a table, beside what was wanted."""
    engines = list(result["engines"])
    titles = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
    vaults = f"the large vault holds {result['documents']:,} documents, the small one 1,000"
    head = f"{result['date']}; {result['machine']}; {vaults}."
    lines = [head, "", "| | " + " | ".join(titles[one] for one in engines) + " | wanted |"]
    lines.append("|---|" + "---:|" * (len(engines) + 1))
    for key, (title, unit, wanted) in WANTED.items():
        found = [result["engines"][engine].get(key) for engine in engines]
        if any(value is not None for value in found):
            cells = [
                "" if value is None else f"{value:,.{0 if value >= 100 else 2}f} {unit}".strip() for value in found
            ]
            lines.append(f"| {title} | {' | '.join(cells)} | {wanted} |")
    return "\n".join(lines)


CLIENT = {
    "seal_us": ("seal 1 KB", "µs", ""),
    "seal_beyond_us": ("… beyond the cipher's own time", "µs", "< 40"),
    "open_us": ("open 1 KB", "µs", ""),
    "open_beyond_us": ("… beyond the cipher's own time", "µs", "< 40"),
    "list_per_s": ("documents that the server lists in a second", "", ""),
    "sync_per_s": ("documents that a first sync brings in, verifies and keeps in a second", "", ""),
    "sync_ratio": ("… the second over the first", "times", "≥ 0.5"),
    "sync_cpu_us": ("… CPU of the sync, a document", "µs", ""),
    "sync_mib": ("memory that the sync adds to its process, at most", "MiB", ""),
    "creates_per_s": ("creates in a replica in a second, one by one, each on disk when it returns", "", ""),
    "create_cpu_us": ("… CPU, a create", "µs", ""),
    "create_many_per_s": ("creates in a replica in a second, all in one call", "", "≥ 3,334"),
    "create_many_cpu_us": ("… CPU, a create", "µs", ""),
    "import_s": ("`import strongroom.client`", "s", "< 0.25"),
}


def client_text(result: dict[str, Any]) -> str:
    """What the client costs as a table, beside what was wanted."""
    lines = [f"{result['date']}; {result['machine']}; a first sync of {result['documents']:,} documents of 1 KB."]
    lines[0] += f" {result['note']}" if result.get("note") else ""
    lines += ["", "| | found | wanted |", "|---|---:|---:|"]
    for key, (title, unit, wanted) in CLIENT.items():
        value = result["found"].get(key)
        if value is None:
            continue
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        lines.append(f"| {title} | {shown} {unit} | {wanted} |".replace("  |", " |"))
    return "\n".join(lines)


# What of growth is shown: the scenario, and its title.
GROWTH = {"get": "get one document (1 KB)", "since": "`since`, nothing new", "create": "create (1 KB)"}


def growth_text(result: dict[str, Any]) -> str:
    """Cost against size, memory and start as tables."""
    small, large = (result["counts"][at] for at in (0, -1))
    cells = {(cell["scenario"], cell["clients"], cell["target"]): cell for cell in result["cells"]}
    lines = [f"{result['date']}; {result['machine']}.", ""]
    lines += [f"| {small:,} → {large:,} documents | clients | CPU µs | grows | p50 ms | grows |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for name, title in GROWTH.items():
        for clients in result["clients"]:
            one, other = (cells[name, clients, f"strongroom-{count}"] for count in (small, large))
            found = [
                f"{one[figure]:.4g} → {other[figure]:.4g} | {result_table.ratio(other[figure], one[figure])}"
                for figure in ("cpu_us", "p50_ms")
            ]
            lines.append(f"| {title} | {clients} | {' | '.join(found)} |")
    starts = result["first_answer_s"]
    lines += ["", "| strongroom alone | |", "|---|---:|"]
    lines.append(f"| start to first answer, median | {statistics.median(starts):.2f} s |")
    lines += [
        f"| memory {'at rest' if name == 'idle' else f'peak up to and with `{name}`'} | {value:.0f} MiB |"
        for name, value in result["memory_mib"].items()
    ]
    return "\n".join(lines)
