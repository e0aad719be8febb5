"""Connections to PostgreSQL: none leaks, whatever is cancelled or fails."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from strongroom.store import open_database
from strongroom.store.change_notifications import ChangeHint
from strongroom.store.postgres.connection import connect
from strongroom.store.postgres.engine import PostgresDatabase
from strongroom.store.postgres.notify import SEND
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres

OURS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'strongroom'"


async def until_none_is_open(where: str) -> None:
    """PostgreSQL itself says how many there are."""
    look = await asyncpg.connect(where)
    try:
        async with asyncio.timeout(10):
            while await look.fetchval(OURS):  # noqa: ASYNC110 - it is another process that counts
                await asyncio.sleep(0.01)
    finally:
        await look.close()


@async_test
async def test_a_connection_whose_caller_was_cancelled_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is cancelled when it is open and not yet set up."""
    where = postgres().fresh()
    opening = asyncpg.connect

    async def opened_and_given_up(*args: Any, **keywords: Any) -> Any:
        connection = await opening(*args, **keywords)
        asking.cancel()
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(asyncpg, "connect", opened_and_given_up)
        asking = asyncio.create_task(connect(where))
        with pytest.raises(asyncio.CancelledError):
            await asking
    await until_none_is_open(where)


@async_test
async def test_a_connection_that_is_given_up_before_it_serves_is_closed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is cancelled while the lock of a restore is checked."""
    where = postgres().fresh()
    db = open_database(where, clock)

    async def opened_and_given_up(*args: Any, **keywords: Any) -> Any:
        connection = await connect(*args, **keywords)
        asking.cancel()
        return connection

    async def nothing(_tx: Any) -> None:
        """Ask for nothing."""

    with monkeypatch.context() as patched:
        patched.setattr("strongroom.store.postgres.pool.connect", opened_and_given_up)
        asking = asyncio.create_task(db.read(nothing))
        with pytest.raises(asyncio.CancelledError):
            await asking
    await db.close()
    await until_none_is_open(where)


@async_test
async def test_what_is_out_when_the_database_closes_is_closed_when_it_comes_back(clock: Clock) -> None:
    where = postgres().fresh()
    db = open_database(where, clock)
    assert isinstance(db, PostgresDatabase)
    async with db.snapshot():
        await db.close()
    await until_none_is_open(where)


@async_test
async def test_notifications_disconnect_however_they_end(clock: Clock) -> None:
    """Ended by force, in the middle of its work."""
    where = postgres().fresh()
    db = open_database(where, clock)
    assert isinstance(db, PostgresDatabase)
    db.notifications.committed({ChangeHint("somebody", "a vault")})
    worker = db.notifications._worker
    assert worker is not None
    async with asyncio.timeout(10):
        while db.notifications._connection is None:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.001)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    await until_none_is_open(where)
    await db.close()


@async_test
async def test_a_notification_leaves_its_session_as_it_was() -> None:
    """A hint waits for no disk; but the session may serve others next, in a pooler, whose commits must."""
    connection = await connect(postgres().url())
    await connection.execute(SEND, "strongroom", "a hint")
    assert await connection.fetchval("SHOW synchronous_commit") == "on"
    await connection.close()
