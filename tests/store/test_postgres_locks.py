"""Requests that wait for a lock of PostgreSQL: they wait, and one that PostgreSQL cancels is told to retry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.export.files import Upload, exported, furnish
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.postgres import postgres

WAITING = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid != $1
"""


@pytest.fixture
def where() -> Any:
    """A database in PostgreSQL."""
    made = postgres().migrated()
    yield made
    postgres().discard(made)


@asynccontextmanager
async def locked(where: str, account: Person) -> AsyncIterator[asyncpg.Connection]:
    """Another transaction that has the account's lock."""
    other = await asyncpg.connect(where)
    try:
        async with other.transaction():
            assert await other.fetchval("SELECT 1 FROM ledgers WHERE user_id = $1 FOR UPDATE", account.id)
            yield other
    finally:
        await other.close()


async def until_one_waits(where: str, asking: asyncio.Task[Any], other_than: int = 0) -> int:
    """The process of PostgreSQL that waits for a lock; 0 if the request was answered instead."""
    look = await asyncpg.connect(where)
    try:
        async with asyncio.timeout(20):
            while not asking.done():
                if waiting := await look.fetchval(WAITING, other_than):
                    return int(waiting)
                await asyncio.sleep(0.01)
    finally:
        await look.close()
    return 0


@async_test
async def test_what_postgresql_cancels_is_answered_with_retry_after(open_server: OpenServer, where: str) -> None:
    """An operator cancels a statement: the request ends with 503, is not tried again, and has done nothing."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        before = (await ann("GET", f"/vault/{vault['uid']}")).json()
        async with locked(where, ann) as other:
            asking = asyncio.create_task(
                ann("POST", f"/vaults/{vault['uid']}/documents", {"collection": "c", "data": "A"})
            )
            pid = await until_one_waits(where, asking)
            assert await other.fetchval("SELECT pg_cancel_backend($1)", pid)
            assert await until_one_waits(where, asking, other_than=pid) == 0
            answer = await asking
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert (await ann("GET", f"/vault/{vault['uid']}")).json() == before


@async_test
async def test_giving_up_an_import_waits_for_the_transaction_that_has_the_account(
    open_server: OpenServer, where: str
) -> None:
    """It could be the one that ends the import: what is given up must not be finished after that."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        await furnish(ann)
        file = await exported(ann)
        upload = Upload(server.app, bob)
        await upload.piece(file[:-10])
        await upload.vanish()
        async with locked(where, bob) as other:
            asking = asyncio.create_task(bob("DELETE", "/auth/import"))
            assert await until_one_waits(where, asking)
            assert await other.fetchval("SELECT state FROM imports WHERE user_id = $1", bob.id) == "open"
        assert (await asking).status_code == 200
