"""The figures that were set, and what each machine found: one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.result_files import Machine

_TIMES = "\N{MULTIPLICATION SIGN}"
_ENGINES = {"strongroom": "SQLite", "strongroom-pg": "PostgreSQL"}
_SYNC = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


@dataclass(frozen=True)
class Goal:
    """One figure that was set. `find` says what a machine has found, or None where it was not measured."""

    title: str
    wanted: float
    find: Callable[[Machine], float | None]
    at_least: bool = True
    unit: str = ""

    def shown(self, machine: Machine) -> str:
        """What was found, with a word where it is not what was wanted."""
        found = self.find(machine)
        if found is None:
            return "not measured"
        reached = found >= self.wanted if self.at_least else found <= self.wanted
        return f"{_number(found, self.unit)}{'' if reached else ' (**missed**)'}"

    @property
    def wanted_text(self) -> str:
        """What was wanted."""
        digits = f"{self.wanted:.0%}".replace("%", " %") if self.unit == "%" else f"{self.wanted:g} {self.unit}".strip()
        return f"{'≥' if self.at_least else '≤'} {digits}"


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:.0%}".replace("%", " %")
    digits = 0 if value >= 100 else 1 if value >= 20 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def _ratio(
    figure: str, scenario: str, clients: int, over: str, under: str = "strongroom"
) -> Callable[[Machine], float | None]:
    def find(machine: Machine) -> float | None:
        above, below = machine.cells.get((scenario, clients, under)), machine.cells.get((scenario, clients, over))
        return None if above is None or below is None else float(above[figure] / below[figure])

    return find


def _tail(scenario: str, target: str) -> Callable[[Machine], float | None]:
    def find(machine: Machine) -> float | None:
        cell = machine.cells.get((scenario, 64, target))
        return None if cell is None else float(cell["p99_ms"] / cell["p50_ms"])

    return find


def _sync(engine: str, key: str) -> Callable[[Machine], float | None]:
    def find(machine: Machine) -> float | None:
        found = None if machine.sync is None else machine.sync["engines"].get(engine, {}).get(key)
        return None if found is None else float(found)

    return find


def _memory(machine: Machine, *, at_rest: bool) -> float | None:
    if machine.growth is None:
        return None
    found = machine.growth["memory_mib"]
    return float(found["idle"]) if at_rest else max(float(value) for value in found.values())


def _growth(machine: Machine) -> float | None:
    """The most by which CPU time or median latency differ between the small and the large vault."""
    if machine.growth is None:
        return None
    small, large = machine.growth["counts"][0], machine.growth["counts"][-1]
    cells = {(cell["scenario"], cell["clients"], cell["target"]): cell for cell in machine.growth["cells"]}
    return max(
        float(cell[figure] / cells[scenario, clients, f"strongroom-{small}"][figure])
        for (scenario, clients, target), cell in cells.items()
        if target == f"strongroom-{large}"
        for figure in ("cpu_us", "p50_ms")
    )


def _marks() -> Iterable[Goal]:
    twin = {"get": 2.5, "create": 2.5, "update": 1.8, "mixed": 2.5, "list": 2.0, "since": 2.0}
    names = {"mixed": "90 % `since`, 10 % writes"}
    for name, wanted in twin.items():
        title = names.get(name, f"`{name}`" if name == "since" else name)
        yield Goal(f"{title}, 64 clients: {_TIMES} the twin's requests/s", wanted, _ratio("rate", name, 64, "hono"))
    for name, wanted in {"create": 1.3, "update": 1.0}.items():
        yield Goal(f"{name}, one client: {_TIMES} the twin's requests/s", wanted, _ratio("rate", name, 1, "hono"))
    for name, wanted in {"get": 1.5, "create": 1.4, "list": 1.2, "since": 1.5}.items():
        find = _ratio("cpu_us", name, 64, "floor")
        yield Goal(f"{name}, 64 clients: {_TIMES} the floor's CPU", wanted, find, at_least=False)
    for name, wanted in {"get": 0.75, "list": 0.75, "since": 0.75, "create": 0.6, "update": 0.55}.items():
        find = _ratio("rate", name, 64, "strongroom", "strongroom-pg")
        yield Goal(f"{name}, 64 clients: PostgreSQL's part of SQLite's requests/s", wanted, find, unit="%")
    for target, engine in _ENGINES.items():
        for name in ("get", "create", "since"):
            find = _tail(name, target)
            yield Goal(f"{name}, 64 clients, {engine}: p99 over p50", 3, find, at_least=False)
    for engine, title in _SYNC.items():
        find = _sync(engine, "batch_ratio")
        yield Goal(f"1,000 creates by 16 clients over one batch of 1,000, {title}: time", 8, find)
    for engine, title in _SYNC.items():
        find = _sync(engine, "purge_stall_ms")
        yield Goal(f"longest silence of 16 writers during a purge, {title}", 50, find, at_least=False, unit="ms")
    yield Goal("memory at rest, SQLite", 50, lambda one: _memory(one, at_rest=True), at_least=False, unit="MiB")
    yield Goal(
        "memory peak over all scenarios, SQLite",
        110,
        lambda one: _memory(one, at_rest=False),
        at_least=False,
        unit="MiB",
    )
    yield Goal("cost at 1,000,000 documents over that at 1,000, the worst", 1.1, _growth, at_least=False)


GOALS = tuple(_marks())


def table(machines: list[Machine]) -> str:
    """All goals beside what each machine found."""
    lines = [
        "| | wanted | " + " | ".join(machine.title for machine in machines) + " |",
        "|---|---:|" + "---:|" * len(machines),
    ]
    lines += [
        f"| {goal.title} | {goal.wanted_text} | " + " | ".join(goal.shown(machine) for machine in machines) + " |"
        for goal in GOALS
    ]
    return "\n".join(lines)
