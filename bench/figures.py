"""The figures that were set for sync and for the client, and tables of what was found beside them."""

from __future__ import annotations

from typing import Any

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
    lines = [f"{result['date']}; {result['machine']}; a first sync of {result['documents']:,} documents of 1 KB.", ""]
    lines += ["| | found | wanted |", "|---|---:|---:|"]
    for key, (title, unit, wanted) in CLIENT.items():
        value = result["found"][key]
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        lines.append(f"| {title} | {shown} {unit} | {wanted} |".replace("  |", " |"))
    return "\n".join(lines)
