"""Where the time goes: `python -m bench.profile` samples strongroom (or the floor) under load.

By default it prints the microseconds of each layer for create and update on both engines, with one client and with 64.
`--functions` prints the hottest functions instead. Microseconds are a share of the samples times the CPU time of a
request that was measured without the profiler, so they add up to that. `self` is time in the function itself (C calls
it makes included), `all` with callees.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench import layers, proc, result_files
from bench.dataset import dataset
from bench.load import Load, Plan
from bench.peers import PEERS, Peer
from bench.peers.base import BENCH_BIN, WORK
from bench.progress import show_progress
from bench.scenarios import SCENARIOS

_RATE = 250
_IDLE = ("Writer._work ", "_worker ", "_Writer._run ", "Condition.wait ", "wait ", "Thread.")  # threads without work


def main() -> int:
    """Print the layers, or the hottest functions of each scenario."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--targets", default="strongroom,strongroom-pg")
    parser.add_argument("--scenarios", default="create,update")
    parser.add_argument("--clients", default="1,64")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--functions", action="store_true", help="functions instead of layers")
    parser.add_argument("--top", type=int, default=30, help="so many functions")
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--json", type=Path, help="write the layers to this file")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    columns: list[dict[str, Any]] = []
    load = Load({cores[0]})
    try:
        for target in options.targets.split(","):
            peer = PEERS[target]()
            try:
                peer.start(dataset(options.large))
                proc.pin(peer.pids(), set(cores[1:]) or set(cores))
                for name in options.scenarios.split(","):
                    plan = SCENARIOS[name].plan(peer)
                    for clients in map(int, options.clients.split(",")):
                        show_progress(f"{target}: {name}, {clients} clients")
                        columns.append(_column(peer, load, name, plan, clients, options))
            finally:
                peer.stop()
    finally:
        load.stop()
    result = {**result_files.circumstances(), "columns": columns}
    if options.json:
        options.json.write_text(result_files.text(result))
    if not options.functions:
        print(layers.text(result))
    return 0


def _column(peer: Peer, load: Load, name: str, plan: Plan, clients: int, options: argparse.Namespace) -> dict[str, Any]:
    load.run(plan, clients, 0.5)
    own, others, median = _cost(peer, load, plan, clients)
    stacks = _sample(peer, load, plan, clients, options.seconds)
    if options.functions:
        _print(f"{peer.title}, {name}, {clients} clients", own, stacks, options.top)
    found = layers.by_layer(stacks, own)
    if others:
        found[layers.POSTGRES] = round(others, 1)
    cost = {"cpu_us": round(own + others, 1), "p50_us": round(median, 1)}
    return {"target": peer.name, "scenario": name, "clients": clients, **cost, "layers": found}


def _cost(peer: Peer, load: Load, plan: Plan, clients: int) -> tuple[float, float, float]:
    """Of a request: CPU microseconds of the server's process and of the others, and its median latency."""
    main = peer.processes[0].pid
    rest = [pid for pid in peer.pids() if pid != main]
    before = proc.cpu_seconds([main]), proc.cpu_seconds(rest)
    window = load.run(plan, clients, 3)
    number = len(window.latencies)
    own, others = proc.cpu_seconds([main]) - before[0], proc.cpu_seconds(rest) - before[1]
    return own / number * 1e6, others / number * 1e6, statistics.median(window.latencies) / 1e3


def _sample(peer: Peer, load: Load, plan: Plan, clients: int, seconds: float) -> Counter[tuple[str, ...]]:
    out = WORK / "stacks.txt"
    command = [BENCH_BIN / "py-spy", "record", "--pid", str(peer.processes[0].pid), "--format", "raw", "--nolineno"]
    command += ["--rate", str(_RATE), "--duration", str(int(seconds)), "--output", str(out), "--threads"]
    profiler = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    load.run(plan, clients, seconds + 1)
    profiler.wait(60)
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in Path(out).read_text().splitlines():
        frames, _, count = line.rpartition(" ")
        stack = tuple(frame.partition(" (")[0] + _file(frame) for frame in frames.split(";"))
        if not stack[-1].startswith(_IDLE):
            stacks[stack] += int(count)
    out.unlink()
    return stacks


def _file(frame: str) -> str:
    """The file of a frame, without the folders above its package."""
    return " (" + "/".join(frame.partition(" (")[2].rstrip(")").split("/")[-4:]) + ")"


def _print(title: str, cost: float, stacks: Counter[tuple[str, ...]], top: int) -> None:
    total = sum(stacks.values())
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for frames, count in stacks.items():
        own[frames[-1]] += count
        for frame in set(frames):
            whole[frame] += count
    print(f"\n## {title}: {cost:.0f} CPU µs of its process a request, {total} samples\n")
    print("   self     all  layer             function")
    shown = {frame for frame, _ in own.most_common(top)} | {frame for frame, _ in whole.most_common(top)}
    for frame in sorted(shown, key=lambda frame: -whole[frame]):
        name = layers.layer_of((frame,))
        print(f"{own[frame] / total * cost:7.1f} {whole[frame] / total * cost:7.1f}  {name:<16}  {frame}")


if __name__ == "__main__":
    sys.exit(main())
