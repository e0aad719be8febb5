"""`python -m bench`: start the targets, check their answers, time them in one interleaved run, print one table."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench import result_files, result_table
from bench.check import check
from bench.dataset import MOST_CLIENTS, dataset
from bench.load import Load, Plan
from bench.measure import Cell, measure
from bench.peer_requests import WrongAnswer
from bench.peers import PEERS, NotHere, Peer
from bench.progress import show_progress
from bench.scenarios import SCENARIOS

QUICK = {"targets": "strongroom,floor,hono", "scenarios": "get,create,list,since", "clients": "1,64"}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer targets, scenarios and rounds: about two minutes")
    parser.add_argument("--targets", help=f"some of {','.join(PEERS)}")
    parser.add_argument("--scenarios", help=f"some of {','.join(SCENARIOS)}")
    parser.add_argument("--clients", help="numbers of clients (default 1,16,64)")
    parser.add_argument("--seconds", type=float, default=0.9, help="length of one window")
    parser.add_argument("--rounds", type=int, help="windows of each target (default 4, quick 3)")
    parser.add_argument("--large", type=int, default=100_000, help="documents in the large vault")
    parser.add_argument("--note", default="", help="what a reader must know of the machine during this run")
    parser.add_argument("--pin", action="store_true", help="the load on the first core, the servers on the others")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    quick = QUICK if options.quick else {}
    options.targets = _some(options.targets or quick.get("targets"), list(PEERS), parser)
    options.scenarios = _some(options.scenarios or quick.get("scenarios"), list(SCENARIOS), parser)
    options.clients = [int(text) for text in (options.clients or quick.get("clients") or "1,16,64").split(",")]
    options.rounds = options.rounds or (3 if options.quick else 4)
    if not all(1 <= number <= MOST_CLIENTS for number in options.clients):
        parser.error(f"--clients: from 1 to {MOST_CLIENTS}")
    return options


def _some(given: str | None, known: list[str], parser: argparse.ArgumentParser) -> list[str]:
    chosen = given.split(",") if given else known
    if unknown := set(chosen) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [name for name in known if name in chosen]


def clients_of(name: str, wanted: list[int]) -> list[int]:
    """The numbers of clients of a scenario: its own, or those that the run is asked for."""
    return list(SCENARIOS[name].clients) or wanted


def start(names: list[str], large: int) -> tuple[list[Peer], dict[str, str]]:
    """Start and fill the targets; those that cannot run here are left out, with the reason."""
    peers: list[Peer] = []
    absent: dict[str, str] = {}
    for name in names:
        peer = PEERS[name]()
        show_progress(f"start {peer.title}")
        try:
            peer.start(dataset(large))
        except (NotHere, WrongAnswer, OSError) as error:
            peer.stop()
            absent[name] = str(error)
            sys.stderr.write(f"Left out: {peer.title}. {error}\n")
        except BaseException:
            for started in [*peers, peer]:
                started.stop()
            raise
        else:
            peers.append(peer)
    return peers, absent


def main() -> int:
    """Run the benchmark."""
    options = _options()
    begun = time.monotonic()
    cores = sorted(os.sched_getaffinity(0))
    pinned = len(cores) > 1 and options.pin
    peers, absent = start(options.targets, options.large)
    load = Load({cores[0]} if pinned else None)
    cells: list[Cell] = []
    cannot: dict[str, str] = {}
    plans: dict[tuple[str, str], Plan] = {}
    try:
        for name in options.scenarios:
            able = []
            for peer in peers:
                if name in peer.cannot:
                    cannot[f"{peer.name} {name}"] = peer.cannot[name]
                    continue
                try:
                    check(peer, name)
                except (WrongAnswer, OSError, KeyError, ValueError) as error:
                    cannot[f"{peer.name} {name}"] = f"wrong answer: {error}"
                    sys.stderr.write(f"Not timed: {peer.title}, {name}. {error!r}\n")
                    continue
                able.append(peer)
            for clients in clients_of(name, options.clients):
                found, failed = measure(
                    load,
                    SCENARIOS[name],
                    able,
                    clients,
                    min(SCENARIOS[name].rounds or options.rounds, options.rounds),
                    options.seconds,
                    set(cores[1:]) if pinned else None,
                    plans,
                    show_progress,
                )
                cells += found
                for target, reason in failed.items():
                    cannot[f"{target} {name}"] = reason
                    sys.stderr.write(f"Failed: {target}, {name}, {clients} clients. {reason}\n")
    finally:
        load.stop()
        for peer in peers:
            peer.stop()
    result = _result(options, peers, absent, cells, cannot, time.monotonic() - begun, pinned=pinned)
    if options.json:
        options.json.write_text(result_files.text(result))
    show_progress("")
    print(result_table.text(result))
    print(f"\n{result['date']}, {result['machine']}, {result['took_s']:.0f} s. we serve, our CPU: strongroom ÷ target.")
    return 0


def _result(
    options: argparse.Namespace,
    peers: list[Peer],
    absent: dict[str, str],
    cells: list[Cell],
    cannot: dict[str, str],
    took: float,
    *,
    pinned: bool,
) -> dict[str, Any]:
    return {
        **result_files.circumstances(),
        "note": options.note,
        "pinned": pinned,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "large": options.large,
        "took_s": round(took, 1),
        "targets": [{"name": peer.name, "title": peer.title, "version": peer.version} for peer in peers],
        "absent": absent,
        "scenarios": [
            {"name": name, "title": SCENARIOS[name].title, "clients": clients_of(name, options.clients)}
            for name in options.scenarios
        ],
        "cannot": cannot,
        "cells": [cell.as_json() for cell in cells],
    }


if __name__ == "__main__":
    sys.exit(main())
