"""One interleaved run: short windows that go round over the targets, so that the machine's noise hits all alike."""

from __future__ import annotations

import statistics
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import proc
from bench.load import Load, LoadFailed, Plan
from bench.peers import Peer
from bench.scenarios import Scenario


@dataclass
class Cell:
    """What one target did in one scenario with so many clients, over all rounds."""

    scenario: str
    clients: int
    target: str
    seconds: float = 0.0
    cpu: float = 0.0
    client_cpu: float = 0.0
    memory: int = 0
    latencies: array[int] = field(default_factory=lambda: array("q"))
    rates: list[float] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many requests were answered."""
        return len(self.latencies)

    @property
    def rate(self) -> float:
        """Requests a second: the median over the rounds."""
        return statistics.median(self.rates)

    @property
    def cpu_us(self) -> float:
        """CPU microseconds of the server's processes for one request."""
        return self.cpu / self.requests * 1e6

    def percentile(self, part: float) -> float:
        """Latency in milliseconds below which this part of the requests lies."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] / 1e6

    def as_json(self) -> dict[str, Any]:
        """The cell's figures."""
        return {
            "scenario": self.scenario,
            "clients": self.clients,
            "target": self.target,
            "requests": self.requests,
            "rate": round(self.rate, 3),
            "rates": [round(rate, 3) for rate in self.rates],
            "cpu_us": round(self.cpu_us, 1),
            "client_cpu_us": round(self.client_cpu / self.requests * 1e6, 1),
            "p50_ms": round(self.percentile(0.5), 3),
            "p99_ms": round(self.percentile(0.99), 3),
            "memory_mib": round(self.memory / 2**20, 1),
        }


def measure(
    load: Load,
    scenario: Scenario,
    peers: list[Peer],
    clients: int,
    rounds: int,
    seconds: float,
    cpus: set[int] | None,
    plans: dict[tuple[str, str], Plan],
    show_progress: Callable[[str], None],
) -> tuple[list[Cell], dict[str, str]]:
    """All targets of one scenario with so many clients, and for those that failed under the load: how."""
    cells = {peer.name: Cell(scenario.name, clients, peer.name) for peer in peers}
    failed: dict[str, str] = {}
    begin = 0 if scenario.rounds is None else 1  # what is measured in few rounds is long enough to be warm
    for number in range(begin, rounds + 1 if peers else 0):
        order = peers[number % len(peers) :] + peers[: number % len(peers)]
        for peer in order:
            if peer.name in failed:
                continue
            key = peer.name, scenario.name
            if key not in plans:
                plans[key] = scenario.plan(peer)
            show_progress(f"{scenario.name}, {clients} clients, round {number} of {rounds}: {peer.title}")
            pids = peer.pids()
            if cpus:
                proc.pin(pids, cpus)
            cell = cells[peer.name]
            before = proc.cpu_seconds(pids)
            try:
                # in round 0, caches and just-in-time compilers get their turn
                window = load.run(plans[key], clients, seconds if number else min(seconds, 0.4))
            except LoadFailed as error:
                failed[peer.name] = f"failed with {clients} clients: {error}"
                continue
            if number == 0:
                continue
            cell.cpu += proc.cpu_seconds(pids) - before
            cell.memory = max(cell.memory, proc.memory_bytes(pids))
            cell.seconds += window.seconds
            cell.client_cpu += window.client_cpu
            cell.latencies.extend(window.latencies)
            cell.rates.append(len(window.latencies) / window.seconds)
            time.sleep(0.02)
    return [cell for cell in cells.values() if cell.target not in failed], failed
