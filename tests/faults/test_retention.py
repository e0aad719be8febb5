"""Purging what was retained for long enough does not block writes."""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from strongroom import wire
from strongroom.actions import documents, retention
from strongroom.model import AccountLimits, Actor, Expected
from strongroom.rules import DAY
from strongroom.store import Tx
from tests.kit.asynchronous import async_test
from tests.kit.calibration import reference_time
from tests.kit.people.person import Person
from tests.kit.samples import rounds
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import context_of, database_of
from tests.kit.servers.populated_database import rows_of

PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}
LARGE = rounds(1_000_000, 5_000_000)  # characters of the largest documents that lie in the trash
ATTEMPTS = 6  # the machine has other things to do: what a step costs is the shortest time that it took


async def throw(tx: Tx, actor: Actor, vault: str, sizes: list[int]) -> None:
    """Documents that were replaced once and then deleted, of these sizes."""
    for size in sizes:
        uid = str(uuid.uuid4())
        created = wire.requests.CreateDocument(collection="c", data="A" * size, uid=uid)
        await documents.create(tx, actor, AccountLimits(), vault, created)
        await documents.put(
            tx, actor, AccountLimits(), vault, uid, wire.requests.PutDocument(data="B" * size), Expected((1,))
        )
        await documents.delete(tx, actor, AccountLimits(), vault, uid, None)


async def filled(server: InProcessServer, person: Person, vault: dict[str, Any], count: int, large: int = 3) -> None:
    """So many documents in the trash, and a few as large as they come."""
    sizes = [4_000] * count + [LARGE] * large
    for start in range(0, len(sizes), 100):
        await database_of(server.app).write_long(throw, Actor(person.id), vault["uid"], sizes[start : start + 100])


def clock_of(where: str) -> Callable[[], float]:
    """Processor time on a file, and time on the wall on a database that is another process."""
    return time.monotonic if "://" in where else time.process_time


def stall(clock: Callable[[], float]) -> float:
    """How long a writer may have to wait for it: 50 ms on an idle machine, and longer on a slower one.

    The shortest of several references, as that of a step: another process stretches some of them.
    """
    return min(reference_time(1024 * 1024, clock) for _ in range(ATTEMPTS))


async def steps(server: InProcessServer, where: str) -> list[float]:
    """Purge everything: the time of each transaction, in which no other writer can write.

    On a file it is processor time: how long the disk takes depends on what else the machine does.
    """
    clock = clock_of(where)
    took, more, sweep = [], True, retention.Sweep()
    while more:
        began = clock()
        more = await database_of(server.app).write_long(retention.purge_some, context_of(server.app).retention, sweep)
        took.append(clock() - began)
    return took


@pytest.mark.alone
@async_test
async def test_no_transaction_of_a_purge_takes_long(open_server: OpenServer, where: str) -> None:
    """Of thousands of documents, large ones among them: no longer than the largest takes by itself."""
    shortest: list[float] = []
    largest: list[float] = []
    async with open_server(trash_days=3, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault()
        for _ in range(ATTEMPTS):
            await filled(server, person, vault, 0, large=1)
            server.clock.pass_(4 * DAY)
            largest.append(max(await steps(server, where)))
            await filled(server, person, vault, rounds(500, 10_000))
            server.clock.pass_(4 * DAY)
            took = await steps(server, where)
            shortest = [min(pair) for pair in zip(shortest or took, took, strict=True)]
            longest, allowed = max(shortest), max(stall(clock_of(where)), 2 * min(largest))
            print(f"{len(took)} transactions, the longest {longest * 1000:.1f} of {allowed * 1000:.1f} ms")  # noqa: T201
            if longest <= allowed:
                break
        assert len(shortest) > 10
        assert longest <= allowed
        tables = await rows_of(where)
        assert not [row for row in tables["documents"] if row[9] is not None and row[4]]
        assert tables["versions"] == []


async def time_of_a_write(person: Person, vault: dict[str, Any]) -> float:
    began = time.monotonic()
    await person.document(vault)
    return time.monotonic() - began


@async_test
async def test_writers_go_on_beside_a_purge(open_server: OpenServer) -> None:
    """In the very vault in which it throws away: most of the time is theirs."""
    async with open_server(trash_days=3, **PATIENT) as server:
        person = await server.person()
        vault = await person.vault()
        await filled(server, person, vault, rounds(500, 10_000))
        server.clock.pass_(4 * DAY)
        purge = asyncio.create_task(server.purge_expired())
        waits = []
        while not purge.done():
            waits.append(await time_of_a_write(person, vault))
        await purge
        median, slowest = statistics.median(waits), max(waits)
        alone = statistics.median([await time_of_a_write(person, vault) for _ in range(30)])
        print(f"{len(waits)} writes: median {median * 1000:.1f} ms, longest {slowest * 1000:.1f} ms")  # noqa: T201
        assert len(waits) > rounds(20, 200)
        assert median <= max(stall(time.monotonic), 8 * alone)
