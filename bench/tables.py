"""Tables that pages show: the machines side by side, worker processes, one account against many, sizing."""

from __future__ import annotations

from typing import Any

from bench.result_files import Machine
from bench.result_table import ratio, short

NONE = "Not measured yet."
_WRITES = ("create", "accounts")
_SIZED = {
    "get": "requests a second: get a document",
    "create": "create a document, durably",
    "update": "replace a document, durably, with its history",
    "since": "list changes with `since`, in a vault of 100,000",
    "list": "lists of 1,000 documents",
    "login": "logins (Argon2id, on all cores)",
}


def table(head: list[str], rows: list[list[str]], named: int = 1) -> str:
    """A table whose first columns are text and the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * named + "---:|" * (len(head) - named)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def side_by_side(machines: list[Machine]) -> str:
    """Each scenario with the most clients that it was measured with: every target on every machine."""
    scenarios: dict[str, dict[str, Any]] = {}
    targets: dict[str, str] = {}
    for machine in machines:
        scenarios |= {one["name"]: one for one in machine.run["scenarios"] if one["name"] not in scenarios}
        targets |= {one["name"]: one["title"] for one in machine.run["targets"] if one["name"] not in targets}
    head = ["scenario", "clients", "target"]
    head += [f"{machine.title}: {column}" for machine in machines for column in ("requests/s", "we serve", "p50 ms")]
    rows = []
    for name, scenario in scenarios.items():
        clients = max(scenario["clients"])
        for target, title in targets.items():
            found = [_beside(machine, name, clients, target) for machine in machines]
            if any(found):
                row = [scenario["title"], str(clients), title]
                rows.append(row + [text for three in found for text in three or ["", "", ""]])
    return table(head, rows, 3)


def _beside(machine: Machine, scenario: str, clients: int, target: str) -> list[str] | None:
    ours = machine.cells.get((scenario, clients, "strongroom"))
    cell = machine.cells.get((scenario, clients, target))
    if ours is None or cell is None:
        return None
    return [short(cell["rate"]), "" if cell is ours else ratio(ours["rate"], cell["rate"]), short(cell["p50_ms"])]


def workers(machines: list[Machine]) -> str:
    """What a second worker process adds, on each engine."""
    parts = []
    for machine in machines:
        rows = []
        for scenario in machine.run["scenarios"]:
            clients = max(scenario["clients"])
            row = [scenario["title"], str(clients)]
            for one in ("strongroom", "strongroom-pg"):
                single, double = (machine.cells.get((scenario["name"], clients, f"{one}{end}")) for end in ("", "-2"))
                if single is None or double is None:
                    row += ["", "", ""]
                else:
                    row += [short(single["rate"]), short(double["rate"]), ratio(double["rate"], single["rate"])]
            if any(row[2:]):
                rows.append(row)
        if rows:
            head = [
                "requests/s",
                "clients",
                "SQLite, 1 process",
                "2",
                "2 over 1",
                "PostgreSQL, 1 process",
                "2",
                "2 over 1",
            ]
            parts += [heading(machine), "", table(head, rows), ""]
    return "\n".join(parts).strip() or NONE


def accounts(machines: list[Machine]) -> str:
    """64 clients that create documents, in one account and in many."""
    parts = []
    for machine in machines:
        rows = []
        for target in machine.run["targets"]:
            one, many = (machine.cells.get((name, 64, target["name"])) for name in _WRITES)
            if one is not None and many is not None:
                times = ratio(many["rate"], one["rate"])
                shown = [short(cell[figure]) for figure in ("rate", "p50_ms", "p99_ms") for cell in (one, many)]
                rows.append([target["title"], *shown[:2], times, *shown[2:]])
        if rows:
            head = ["creates a second, 64 clients", "one account", "1,000 accounts", "many over one"]
            head += ["p50 ms, one", "p50 ms, many", "p99 ms, one", "p99 ms, many"]
            parts += [heading(machine), "", table(head, rows), ""]
    return "\n".join(parts).strip() or NONE


def moves(machines: list[Machine]) -> str:
    """How quickly an account leaves a database and enters another."""
    rows = []
    for machine in machines:
        for engine, title in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")):
            found = (machine.sync or {"engines": {}})["engines"].get(engine, {})
            if "export_per_s" in found:
                rates = [short(found[key]) for key in ("export_per_s", "import_per_s")]
                rows.append([f"{machine.title}, {title}", *rates])
    return table(["documents of 1 KB a second", "export", "import"], rows) if rows else NONE


def heading(machine: Machine) -> str:
    """When and where, and what else a reader must know."""
    run = machine.run
    if not run["cells"]:
        return f"**{machine.title}**: not measured yet."
    pinned = "the load on one core, the servers on the others" if run["pinned"] else "load and servers on all cores"
    windows = f"{run['rounds']} rounds of {run['seconds']:g} s a cell"
    return f"**{machine.title}**: {run['date']}; {run['machine']}; {pinned}; {windows}. {run['note']}".strip()


def sizing(machine: Machine) -> str:
    """What one process serves, rounded, for operators."""
    rows = []
    for name, title in _SIZED.items():
        pair = [machine.cells.get((name, 64, target)) for target in ("strongroom", "strongroom-pg")]
        rows.append([title, *("" if cell is None else _rounded(cell["rate"]) for cell in pair)])
    most = []
    for target in ("strongroom", "strongroom-pg"):
        found = [cell["memory_mib"] for cell in machine.run["cells"] if cell["target"] == target]
        most.append(f"{min(found):.0f} to {max(found):.0f} MiB" if found else "")
    rows.append(["memory", most[0], f"{most[1]}, PostgreSQL's own included"])
    return table([f"one process, on {machine.title}", "SQLite", "PostgreSQL on the same machine"], rows)


def _rounded(value: float) -> str:
    """Two digits that count, and three of four and more."""
    digits = len(str(int(value)))
    return f"{round(value, 2 - digits if digits < 4 else 3 - digits):,.0f}"
