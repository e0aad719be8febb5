"""The lock of a process that serves PostgreSQL: one session has it, and the connections of the process live with it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from strongroom.actions import epochs
from strongroom.errors import Unavailable
from strongroom.store import Tx, locks, open_database
from strongroom.store.postgres import pool, serving_lock
from strongroom.store.postgres.connection import connect
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres

HOLDERS = """
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock'
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def _pid(tx: Tx) -> Any:
    return await tx.value(Sql("SELECT pg_backend_pid()"))


async def _until_refused(db: Any) -> None:
    async with asyncio.timeout(20):  # it hears of the end within moments
        while True:
            await db.read(_pid)


@asynccontextmanager
async def serving(where: str, clock: Clock) -> AsyncIterator[tuple[Any, Any]]:
    """A database that is served, and a look at it from outside."""
    db, look = open_database(where, clock), await asyncpg.connect(where)
    try:
        await db.begin_serving(db.at_start(epochs.epoch))
        yield db, look
    finally:
        await db.close()
        await look.close()


@async_test
async def test_one_session_has_the_lock_however_many_connections_serve(clock: Clock) -> None:
    """None of those that serve requests: a pooler would give it to others."""
    async with serving(postgres().fresh(), clock) as (db, look):
        async with db.snapshot() as one, db.snapshot() as two, db.snapshot() as three:
            pids = {await _pid(tx) for tx in (one, two, three)}
            [holder] = await look.fetch(HOLDERS)
        assert len(pids) == 3
        assert holder["pid"] not in pids


@async_test
async def test_when_the_lock_is_lost_nothing_is_served_until_it_is_held_again(clock: Clock) -> None:
    """A restore that begins in that moment has the database for itself; the connections of before are closed."""
    async with serving(postgres().fresh(), clock) as (db, look):
        before = await db.read(_pid)
        holder = await look.fetchval(HOLDERS)
        await look.fetchval("SELECT pg_terminate_backend($1)", holder)
        while not await look.fetchval(locks.TRY_EXCLUSIVE, locks.SERVING):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)
        with pytest.raises(Unavailable, match="is being restored"):
            await _until_refused(db)
        await look.fetchval("SELECT pg_advisory_unlock($1)", locks.SERVING)
        assert await db.read(_pid) != before
        assert await look.fetchval(HOLDERS) not in {None, holder}


@async_test
async def test_a_server_that_hangs_is_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connections stay open, and would answer when it goes on: long after another one has taken its place."""
    monkeypatch.setattr(serving_lock, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(serving_lock, "ANSWER_SECONDS", 0.5)
    async with serving(postgres().fresh(), clock) as (db, look):
        before = await db.read(_pid)
        holder = await look.fetchval(HOLDERS)
        os.kill(holder, signal.SIGSTOP)
        try:
            alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
            async with asyncio.timeout(20):
                while await look.fetchval(alive, before):  # noqa: ASYNC110 - another process ends
                    await asyncio.sleep(0.01)
            assert await db.read(_pid) not in {before, holder}
        finally:
            os.kill(holder, signal.SIGCONT)


@async_test
async def test_a_connection_to_another_server_is_not_used(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may lead to two primaries for a moment: only the one where the lock is held is used."""
    where = postgres().migrated()
    other = postgres().url(postgres().copy_of(where))
    ways = [other]

    async def led_astray(url: str, **options: Any) -> Any:
        return await connect(ways.pop() if ways else url, **options)

    async with serving(where, clock) as (db, _):
        async with db.snapshot():  # the one that is there is in use
            monkeypatch.setattr(pool, "connect", led_astray)
            name = await db.read(_database)
        assert ways == []
        assert where.partition("?")[0].endswith(f"/{name}")
        look = await asyncpg.connect(other)
        ours = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1"
        async with asyncio.timeout(20):
            while await look.fetchval(ours, "strongroom"):  # noqa: ASYNC110 - another process ends
                await asyncio.sleep(0.01)
        await look.close()


async def _database(tx: Tx) -> Any:
    return await tx.value(Sql("SELECT current_database()"))


@async_test
async def test_those_who_wait_for_the_lock_share_one_attempt() -> None:
    """Ten requests to a host that does not respond wait as long as one does."""
    asked = 0

    async def silent() -> Any:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.05)
        raise TimeoutError

    lock = serving_lock.ServingLock(silent, lambda: None)
    outcomes = await asyncio.gather(*(lock.hold() for _ in range(10)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 10
    assert asked == 1
    await lock.close()


@pytest.mark.parametrize("kind", ["read", "write", "new connection", "snapshot"])
@async_test
async def test_a_connection_that_is_closed_while_it_prepares_a_statement_is_replaced(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The lock is lost at that moment: the request goes on with another connection, a snapshot says to try again."""
    prepare, closing = asyncpg.Connection._get_statement, [0]

    async def closed_after(connection: Any, query: str, *args: Any, **keywords: Any) -> Any:
        statement = await prepare(connection, query, *args, **keywords)
        if closing[0] and ("pg_locks" in query) == (kind == "new connection"):
            closing[0] -= 1
            connection.terminate()
        return statement

    monkeypatch.setattr(asyncpg.Connection, "_get_statement", closed_after)
    async with serving(postgres().fresh(), clock) as (db, _):
        before = await db.read(_pid)
        if kind == "new connection":
            db._connections()._drop()
        closing[0] = 1
        if kind == "snapshot":
            with pytest.raises(Unavailable):
                async with db.snapshot() as tx:
                    await _pid(tx)
        else:
            assert await (db.write(_pid) if kind == "write" else db.read(_pid)) != before
        assert closing[0] == 0
        assert await db.read(_pid) != before


@async_test
async def test_a_fault_of_our_own_is_not_taken_for_a_lost_connection(clock: Clock) -> None:
    """An AttributeError while the connection is open is raised, and not tried again."""
    tries = []

    async def broken(tx: Tx) -> None:
        tries.append(await _pid(tx))
        raise AttributeError

    async with serving(postgres().fresh(), clock) as (db, _):
        for run in (db.read, db.write):
            with pytest.raises(AttributeError):
                await run(broken)
    assert len(tries) == 2
