"""Where the time goes: `python -m bench.profile` samples strongroom (or the floor) under load, function by function.

A function's microseconds are its share of the samples times the CPU time of a request that was measured without the
profiler, so they add up to that. `self` is time in the function itself (C calls it makes included), `all` with callees.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench import proc
from bench.dataset import dataset
from bench.load import Load, Plan
from bench.peers import PEERS, Peer
from bench.peers.base import BENCH_BIN, WORK
from bench.scenarios import SCENARIOS

_RATE = 250
_IDLE = ("Writer._work ", "_worker ", "Writer._commit ", "wait ", "Thread.")  # threads that wait for work


def main() -> int:
    """Print the hottest functions of each scenario."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--target", default="strongroom", choices=list(PEERS))
    parser.add_argument("--scenarios", default="get,create,list,since")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--top", type=int, default=30)
    parser.add_argument("--large", type=int, default=100_000)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    peer = PEERS[options.target]()
    load = Load({cores[0]})
    try:
        peer.start(dataset(options.large))
        for name in options.scenarios.split(","):
            plan = SCENARIOS[name].plan(peer)
            load.run(plan, options.clients, 0.5)
            proc.pin(peer.pids(), set(cores[1:]) or set(cores))
            cost = _cost(peer, load, plan, options.clients)
            stacks = _sample(peer, load, plan, options.clients, options.seconds)
            _print(name, cost, stacks, options.top)
    finally:
        load.stop()
        peer.stop()
    return 0


def _cost(peer: Peer, load: Load, plan: Plan, clients: int) -> float:
    pids = peer.pids()
    before = proc.cpu_seconds(pids)
    window = load.run(plan, clients, 3)
    return (proc.cpu_seconds(pids) - before) / len(window.latencies) * 1e6


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
    return " (" + "/".join(frame.partition(" (")[2].rstrip(")").split("/")[-2:]) + ")"


def _print(name: str, cost: float, stacks: Counter[tuple[str, ...]], top: int) -> None:
    total = sum(stacks.values())
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for frames, count in stacks.items():
        own[frames[-1]] += count
        for frame in set(frames):
            whole[frame] += count
    print(f"\n## {name}: {cost:.0f} CPU µs a request, {total} samples\n")
    print("   self     all  function")
    shown = {frame for frame, _ in own.most_common(top)} | {frame for frame, _ in whole.most_common(top)}
    for frame in sorted(shown, key=lambda frame: -whole[frame]):
        print(f"{own[frame] / total * cost:7.1f} {whole[frame] / total * cost:7.1f}  {frame}")


if __name__ == "__main__":
    sys.exit(main())
