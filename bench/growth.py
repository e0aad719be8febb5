"""`python -m bench.growth`: does the cost grow with the data? And memory at rest and in use, time to the first answer.

Two strongrooms run side by side, one with a small vault and one with a large one; the windows alternate between them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from bench import figures, proc, result_files
from bench.check import check
from bench.dataset import dataset, payload
from bench.load import Load, LoadFailed, Plan
from bench.measure import Cell, measure
from bench.peer_requests import PeerRequest, expect, request_template
from bench.peers import Peer
from bench.peers.strongroom import OnSqlite
from bench.progress import show_progress
from bench.scenarios import SCENARIOS, Scenario

LIMIT = 1.2  # the most by which the cost at the larger size may differ from that at the smaller
STARTS = 5


def _create_in_large(peer: Peer) -> Plan:
    asks = [peer.create(peer.data.large.vault, payload(number)) for number in range(128)]
    return Plan(peer.host, [[request_template(ask, peer.host, least=1024) for ask in asks]])


# `create` comes last: it moves the vault's clock, and `since` asks for what is new at its end.
MEASURED = (
    SCENARIOS["get"],
    Scenario("since", figures.GROWTH["since"], SCENARIOS["since"].plan),
    Scenario("create", figures.GROWTH["create"], _create_in_large),
)


def sized(count: int) -> OnSqlite:
    """A strongroom of its own for a vault of this size."""

    class Sized(OnSqlite):
        name = f"strongroom-{count}"
        title = f"a vault of {count:,}"

    return Sized()


def grow(counts: list[int], clients: list[int], rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Get, since and create at each size."""
    peers = [sized(count) for count in counts]
    load = Load(None)
    cells: list[Cell] = []
    try:
        for peer, count in zip(peers, counts, strict=True):
            show_progress(f"fill {peer.title}")
            peer.start(dataset(count))
        for scenario in MEASURED:
            for peer in peers:
                check(peer, scenario.name)
            plans: dict[tuple[str, str], Plan] = {}
            for number in clients:
                found, failed = measure(
                    load, scenario, list(peers), number, rounds, seconds, None, plans, show_progress
                )
                if failed:
                    raise LoadFailed(str(failed))
                cells += found
    finally:
        load.stop()
        for peer in peers:
            peer.stop()
    return [cell.as_json() for cell in cells]


def first_answer() -> list[float]:
    """Seconds from the start of the process, on an empty folder, to the first answer."""
    took = []
    for _ in range(STARTS):
        peer = sized(0)
        shutil.rmtree(peer.folder, ignore_errors=True)
        peer.folder.mkdir(parents=True)
        try:
            begun = time.perf_counter()
            peer.launch()
            expect(peer.host, PeerRequest("GET", "/health"))
            took.append(time.perf_counter() - begun)
        finally:
            peer.stop()
    return took


def memory(seconds: float) -> dict[str, float]:
    """MiB at rest, and the peak under each load of 64 clients."""
    peer = sized(100_000)
    load = Load(None)
    found = {}
    try:
        peer.start(dataset(100_000))
        expect(peer.host, PeerRequest("GET", "/health"))
        found["idle"] = proc.memory_bytes(peer.pids()) / 2**20
        for name, scenario in SCENARIOS.items():
            show_progress(f"memory: {name}")
            load.run(scenario.plan(peer), max(scenario.clients, default=64), seconds)
            found[name] = proc.peak_bytes(peer.pids()) / 2**20
    finally:
        load.stop()
        peer.stop()
    return {name: round(value, 1) for name, value in found.items()}


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--documents", default="1000,1000000", help="sizes of the vault, from small to large")
    parser.add_argument("--clients", default="1,64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    counts = sorted(int(part) for part in options.documents.split(","))
    clients = [int(part) for part in options.clients.split(",")]
    show_progress("start to first answer")
    result: dict[str, Any] = {
        **result_files.circumstances(),
        "counts": counts,
        "clients": clients,
        "first_answer_s": first_answer(),
    }
    result["memory_mib"] = memory(options.seconds * 2)
    result["cells"] = grow(counts, clients, options.rounds, options.seconds)
    if options.json:
        options.json.write_text(result_files.text(result))
    show_progress("")
    print(figures.growth_text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
