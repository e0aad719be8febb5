"""Throwing away what was kept for long enough holds up nobody who writes."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from strongroom import wire
from strongroom.actions import documents
from strongroom.model import Actor, Expected, Terms
from strongroom.rules import DAY
from strongroom.store import Tx
from tests.conftest import House, Open, Person, runs
from tests.faults.crowd import rounds
from tests.moving import rows_of

STALL = 0.05  # seconds that a writer may lose by it
PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}
LARGE = 5_000_000  # characters of the largest documents that lie in the trash
ATTEMPTS = 3  # the machine has other things to do: what the purge costs shows in the best of these
SECONDS = 1.0  # of writing without a purge, to know what is usual


async def throw(tx: Tx, actor: Actor, vault: str, sizes: list[int]) -> None:
    """Documents that were replaced once and then deleted, of these sizes."""
    for size in sizes:
        uid = str(uuid.uuid4())
        created = wire.CreateDocument(collection="c", data="A" * size, uid=uid)
        await documents.create(tx, actor, Terms(), vault, created)
        await documents.put(tx, actor, Terms(), vault, uid, wire.PutDocument(data="B" * size), Expected((1,)))
        await documents.delete(tx, actor, Terms(), vault, uid, None)


async def filled(home: House, person: Person, vault: dict[str, Any], count: int) -> None:
    """So many documents in the trash, and a few as large as they come."""
    sizes = [4_000] * count + [LARGE] * 3
    for start in range(0, len(sizes), 100):
        await home.server._room.db.write_long(throw, Actor(person.id), vault["uid"], sizes[start : start + 100])


async def longest(person: Person, vault: dict[str, Any], done: asyncio.Event) -> tuple[float, int]:
    """Write until that is done: the longest time that a write took, and how many there were."""
    slowest, count = 0.0, 0
    while not done.is_set():
        began = time.monotonic()
        await person.document(vault)
        slowest, count = max(slowest, time.monotonic() - began), count + 1
    return slowest, count


async def beside(person: Person, vault: dict[str, Any], work: Any) -> tuple[float, int]:
    """The longest write while something else is done, of those who write in the same account."""
    done = asyncio.Event()
    writing = [asyncio.create_task(longest(person, vault, done)) for _ in range(4)]
    try:
        await work
    finally:
        done.set()
        found = await asyncio.gather(*writing)
    return max(slowest for slowest, _ in found), sum(count for _, count in found)


@runs
async def test_a_purge_holds_up_no_writer(house: Open, where: str) -> None:
    """Of thousands of documents, large ones among them, in the very vault in which they write."""
    lost = []
    async with house(trash_days=3, **PATIENT) as home:
        person = await home.person()
        vault = await person.vault()
        for _ in range(ATTEMPTS):
            await filled(home, person, vault, rounds(500, 10_000))
            home.clock.pass_(4 * DAY)
            usual, _ = await beside(person, vault, asyncio.sleep(SECONDS))
            slowest, count = await beside(person, vault, home.chores())
            assert count > rounds(20, 200)  # they went on all the time
            lost.append(slowest - usual)
            print(f"longest write {usual * 1000:.1f} ms, while purging {slowest * 1000:.1f} ms, of {count}")  # noqa: T201
            if lost[-1] <= STALL:
                break
        assert min(lost) <= STALL, [f"{seconds * 1000:.0f} ms" for seconds in lost]
        tables = await rows_of(where)
        assert not [row for row in tables["documents"] if row[9] is not None and row[4]]
        assert tables["versions"] == []
