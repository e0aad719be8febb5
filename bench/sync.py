"""`python -m bench.sync`: what sync costs, against the figures that were set for it.

Strongroom alone, on SQLite and on PostgreSQL. Does `since` cost more in a large vault? How soon does an event come?
What does a batch save? How much memory do idle streams take? How long does a purge hold up those who write? How quickly
does an account move to another database?
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import uvloop

from bench import proc, result_files
from bench.dataset import COLLECTION, HMAC, payload
from bench.direct_inserts import COLUMNS, VERSION_COLUMNS, owner, put_in, rows, run_sql
from bench.figures import text
from bench.move import move
from bench.progress import show_progress
from bench.streams import WRITERS, Person, Place, Wire, asked, furnished, idle, latency, settle, wire

NEW = 10  # documents that `since` shows
DAY = 86_400_000


async def since(place: Place, large: int, rounds: int, seconds: float) -> dict[str, float]:
    """PeerRequest for ten new documents in a small vault and in a large one, in turn; CPU and latency of each."""
    people = await settle(place.where, 2)
    with place.serving() as (_, port):
        await furnished(port, people)
    paths = {}
    for person, count in zip(people, (1_000, large), strict=True):
        show_progress(f"{place.engine}: fill a vault of {count:,}")
        first = time.time_ns() // 1_000_000 - count - 60_000
        await put_in(place.where, "documents", COLUMNS, rows(owner(person), person.vault, count, first, 1_024, None))
        sums = f"documents = {count}, bytes = {count * (1_024 + len(HMAC))}"
        await run_sql(place.where, f"UPDATE vaults SET {sums} WHERE uid = '{person.vault}'")
        await run_sql(place.where, f"UPDATE ledgers SET {sums} WHERE user_id = '{owner(person)}'")
    spent: dict[int, list[float]] = {0: [], 1: []}
    waited: dict[int, list[float]] = {0: [], 1: []}
    with place.serving() as (pid, port):
        connection = await wire(port)
        for number, person in enumerate(people):
            made = [
                await asked(connection, "POST", f"/vaults/{person.vault}/documents", person.token, document(n))
                for n in range(NEW + 1)
            ]
            paths[number] = f"/vaults/{person.vault}/documents?since={made[0]['updatedAt']}"
        for round_ in range(rounds + 1):
            show_progress(f"{place.engine}: since, round {round_} of {rounds}")
            for number in (0, 1) if round_ % 2 else (1, 0):
                began, times = proc.cpu_seconds(place.pids(pid)), []
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    asked_at = time.perf_counter()
                    page = await asked(connection, "GET", paths[number], people[number].token)
                    times.append(time.perf_counter() - asked_at)
                assert len(page["documents"]) == NEW, page
                if round_:  # the first is for warming up
                    spent[number].append((proc.cpu_seconds(place.pids(pid)) - began) / len(times))
                    waited[number].append(statistics.median(times))
        connection.close()
    small, large_ = statistics.median(spent[0]), statistics.median(spent[1])
    return {
        "since_cpu_ratio": large_ / small,
        "since_cpu_us": large_ * 1e6,
        "since_p50_ratio": statistics.median(waited[1]) / statistics.median(waited[0]),
    }


def document(number: int) -> dict[str, str]:
    """A new one of 1 KB."""
    return {"collection": COLLECTION, "data": payload(number), "hmac": HMAC}


async def batch(place: Place, rounds: int) -> dict[str, float]:
    """A batch of 1,000 creates against 1,000 creates by 16 clients, in turn."""
    [person] = await settle(place.where, 1)
    with place.serving() as (_, port):
        await furnished(port, [person])
        clients = [await wire(port) for _ in range(WRITERS)]
        bodies = [json.dumps(document(n)).encode() for n in range(1_000)]
        operations = [{"op": "create", **document(n)} for n in range(1_000)]
        whole, path = json.dumps({"operations": operations}).encode(), f"/vaults/{person.vault}/batch"
        alone, together = [], []
        for number in range(rounds + 1):
            show_progress(f"{place.engine}: batch, round {number} of {rounds}")
            await asyncio.sleep(0.2)
            began = time.perf_counter()
            await asyncio.gather(*(creates(one, person, bodies[n::WRITERS]) for n, one in enumerate(clients)))
            alone.append(time.perf_counter() - began)
            await asyncio.sleep(0.2)
            began = time.perf_counter()
            done = await clients[0].ask("POST", path, person.token, whole)
            together.append(time.perf_counter() - began)
            assert done.startswith(b"HTTP/1.1 200"), done[:1_000]
            assert done.count(b'"createdAt"') == 1_000
        for one in clients:
            one.close()
    return {
        "batch_ratio": statistics.median(alone[1:]) / statistics.median(together[1:]),
        "batch_ms": statistics.median(together[1:]) * 1000,
    }


async def creates(connection: Wire, person: Person, bodies: list[bytes]) -> None:
    """One client's part of the creates."""
    path = f"/vaults/{person.vault}/documents"
    for body in bodies:
        done = await connection.ask("POST", path, person.token, body)
        assert done.startswith(b"HTTP/1.1 201"), done


async def silence(port: int, person: Person, done: asyncio.Event) -> float:
    """The longest time in which none of the writers had an answer."""
    path = f"/vaults/{person.vault}/documents"
    longest, last = 0.0, time.perf_counter()

    async def write() -> None:
        nonlocal longest, last
        connection = await wire(port)
        while not done.is_set():
            await asked(connection, "POST", path, person.token, document(1))
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        connection.close()

    await asyncio.gather(*(write() for _ in range(WRITERS)))
    return longest


async def left(where: str) -> int:
    """Tombstones that still have their ciphertext, and what was replaced."""
    statement = (
        "SELECT (SELECT count(*) FROM documents WHERE deleted_at IS NOT NULL AND purged_at IS NULL)"
        " + (SELECT count(*) FROM versions)"
    )
    if "://" not in where:

        def count() -> Any:
            connection = apsw.Connection(where, flags=apsw.SQLITE_OPEN_READONLY)
            connection.set_busy_timeout(10_000)
            found = next(connection.execute(statement))[0]
            connection.close()
            return found

        found = await asyncio.to_thread(count)  # here the writers would be silent meanwhile
    else:
        database = await asyncpg.connect(where)
        found = await database.fetchval(statement)
        await database.close()
    return int(found)


async def purge(place: Place, count: int) -> dict[str, float]:
    """Writers beside a purge of so many tombstones, each with a version before it; a few of them are large."""
    [person] = await settle(place.where, 1)
    with place.serving() as (_, port):
        await furnished(port, [person])
        usual = await while_(port, person, asyncio.sleep(8))
    old = time.time_ns() // 1_000_000 - 400 * DAY
    for number, size in ((count, 1_024), (5, 4_000_000)):
        show_progress(f"{place.engine}: fill the trash with {number:,}")
        old += DAY
        gone = list(rows(owner(person), person.vault, number, old, size, old + DAY))
        await put_in(place.where, "documents", COLUMNS, iter(gone))
        before = ((*row[:6], 0, *row[7:9], None, old) for row in gone)
        await put_in(place.where, "versions", VERSION_COLUMNS, before)
    os.sync()  # what was filled in is on disk before the writers wait for it
    due = await left(place.where)
    show_progress(f"{place.engine}: purge {due:,} rows")
    began = time.perf_counter()
    with place.serving() as (_, port):

        async def emptied() -> None:
            while await left(place.where):  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(1)

        stall = await while_(port, person, asyncio.wait_for(emptied(), 600))
        took = time.perf_counter() - began
    return {
        "purge_stall_ms": stall * 1000,
        "purge_usual_ms": usual * 1000,
        "purge_rows_s": due / took,
    }


async def while_(port: int, person: Person, work: Any) -> float:
    """The longest silence of the writers while something is done."""
    done = asyncio.Event()
    writing = asyncio.create_task(silence(port, person, done))
    try:
        await work
    finally:
        done.set()
    return await writing


async def measured(engine: str, options: argparse.Namespace) -> dict[str, float]:
    """Everything on one engine; each part has a database of its own."""
    found: dict[str, float] = {}
    parts = set(options.parts.split(","))
    if "since" in parts:
        with Place.new(engine) as place:
            found |= await since(place, options.documents, options.rounds, options.seconds)
    if "events" in parts:
        with Place.new(engine) as place:
            for key, apart in (("event_ms", False), ("event_apart_ms", True)):
                show_progress(f"{engine}: 100 streams{' apart' if apart else ''}")
                found[key] = (await latency(place, 100, options.writes, apart=apart))["median ms"]
    if "batch" in parts:
        with Place.new(engine) as place:
            found |= await batch(place, options.rounds)
    if "idle" in parts:
        with Place.new(engine) as place:
            figures = await idle(place, options.streams, 2, options.seconds * 3)
            found["idle_mib"] = figures["MiB more with the streams, first time"]
            found["idle_writes_ratio"] = figures["writes/s beside the streams"] / figures["writes/s alone"]
    if "purge" in parts:
        with Place.new(engine) as place:
            found |= await purge(place, options.trash)
    if "move" in parts:
        with Place.new(engine) as place, Place.new(engine) as other:
            found |= await move(place, other, options.moved)
    return found


async def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.sync", description=__doc__)
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--parts", default="since,events,batch,idle,purge,move")
    parser.add_argument("--documents", type=int, default=1_000_000, help="in the large vault")
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--trash", type=int, default=20_000)
    parser.add_argument("--moved", type=int, default=50_000, help="documents of the account that moves")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round")
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    gc.disable()
    result: dict[str, Any] = {
        **result_files.circumstances(),
        "documents": options.documents,
        "engines": {},
    }
    for engine in options.engines.split(","):
        result["engines"][engine] = await measured(engine, options)
        if options.json:
            options.json.write_text(result_files.text(result))
    show_progress("")
    print(text(result))
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
