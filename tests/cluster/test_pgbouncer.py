"""Behind PgBouncer in transaction mode, as docs/operating.md sets it up, everything works; else it is refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from strongroom.store import CannotOpen, open_database
from strongroom.store.maintenance.copy_endpoints import endpoint
from strongroom.store.maintenance.endpoint_protocol import CannotCopy
from tests.cluster.pgbouncer import KEEPS_STATEMENTS, pgbouncer, shown, version
from tests.faults.concurrent_clients import Writer, client, lost, stored
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.event_stream import Parser
from tests.kit.people.settled import settle_in
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.kit.waiting import until_async

NAME = "strongroom"
IGNORED = "ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout, jit"


@pytest.fixture
def where() -> Iterator[str]:
    """A database in PostgreSQL."""
    made = postgres().fresh()
    yield made
    postgres().discard(made)


def role_settings(where: str) -> None:
    """What the page sets for the role, set for the database of this test."""
    name = where.rpartition("?")[0].rpartition("/")[2]
    for line in shown("ALTER ROLE").strip().splitlines():
        postgres().sql(re.sub(r"ROLE strongroom", f"DATABASE {name}", line))


@async_test
async def test_two_nodes_serve_through_it_and_leave_nothing_in_its_sessions(where: str, tmp_path: Path) -> None:
    """Twelve writers, three sessions: nothing is refused or lost, and a node hears at once of the other's commits."""
    role_settings(where)
    with pgbouncer({NAME: where}) as pooler:
        both = {"DATABASE_URL": where, "DATABASE_POOLER_URL": f"{pooler}/{NAME}", "JWT_ACCESS_EXPIRY": "1d"}
        nodes = [Server(tmp_path / name, **both) for name in ("a", "b")]
        try:
            for node in nodes:
                await asyncio.to_thread(node.start)
            said = nodes[0].log()
            assert ("keeps no prepared statements" in said) == (version() < KEEPS_STATEMENTS), said
            assert "no time limit" not in said
            url, token, vault = settle_in(nodes[0])
            urls = [url, f"http://127.0.0.1:{nodes[1].port}"]
            async with following(urls[1], token, vault) as heard:
                writers = [Writer(urls[number % 2], token, vault) for number in range(12)]
                alive = True
                work = asyncio.gather(*(writer.run(lambda: alive) for writer in writers))
                await until_async(lambda: sum(len(writer.acknowledged) for writer in writers) > 300, "some writes")
                alive = False
                await work
                last = await created(urls[0], token, vault)
                await until_async(lambda: last in heard, "the other node to tell of a commit", 3)
            acknowledged = {uid: made for writer in writers for uid, made in writer.acknowledged.items()}
            assert lost(acknowledged, await stored(urls[1], token, vault)) == {}
            assert [writer.refused for writer in writers] == [{}] * 12
            assert await left_behind(f"{pooler}/{NAME}") == []
        finally:
            for node in nodes:
                node.abandon()


async def created(url: str, token: str, vault: str) -> str:
    """A new document."""
    async with client(url, token) as http:
        answer = await http.post(f"/vaults/{vault}/documents", json={"collection": "c", "data": "AAAA"})
        assert answer.status_code == 201, answer.text
        uid: str = answer.json()["uid"]
        return uid


@asynccontextmanager
async def following(url: str, token: str, vault: str) -> AsyncIterator[set[str]]:
    """The documents that a stream of events tells of."""
    heard: set[str] = set()
    ready = asyncio.Event()

    async def follow() -> None:
        parser = Parser()
        async with client(url, token) as http, http.stream("GET", f"/vaults/{vault}/events") as stream:
            async for piece in stream.aiter_bytes():
                for event in parser.feed(piece):
                    ready.set()
                    heard.update([event.data["uid"]] if event.data and "uid" in event.data else [])

    task = asyncio.create_task(follow())
    try:
        await asyncio.wait_for(ready.wait(), 20)
        yield heard
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, httpx2.TransportError):
            await task


async def left_behind(pooler: str) -> list[Any]:
    """What the sessions of a pooler still have between transactions: locks, listening, settings, statements of ours."""
    found: list[Any] = []
    holding = [await asyncpg.connect(pooler, statement_cache_size=0) for _ in range(3)]
    try:
        for connection in holding:  # a transaction each, so that each has another session
            await connection.execute("BEGIN")
            found += await connection.fetch(
                "SELECT 'lock' FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            found += await connection.fetch("SELECT 'listens' FROM pg_listening_channels()")
            found += await connection.fetch("SELECT name FROM pg_prepared_statements WHERE name NOT LIKE 'PGBOUNCER%'")
            found += await connection.fetch("SELECT 'commit' WHERE current_setting('synchronous_commit') = 'off'")
            found += await connection.fetch("SELECT 'timeout' WHERE current_setting('statement_timeout') != '15s'")
        return found
    finally:
        for connection in holding:
            connection.terminate()


@pytest.mark.parametrize("more", ["", IGNORED])
def test_the_main_address_must_not_lead_through_it(where: str, clock: Clock, more: str) -> None:
    """Whether PgBouncer refuses the settings of a session or ignores them: the sentence says what to set."""
    with pgbouncer({NAME: where}, more) as pooler, pytest.raises(CannotOpen, match="set DATABASE_POOLER_URL to"):
        open_database(f"{pooler}/{NAME}", clock)


@pytest.mark.parametrize("more", ["", IGNORED])
@async_test
async def test_a_backup_must_not_lead_through_it(where: str, more: str) -> None:
    """Its lock, and its settings, would be left in a session of others; so for a restore and a copy."""
    with pgbouncer({NAME: where}, more) as pooler:
        source = endpoint("database", f"{pooler}/{NAME}")
        with pytest.raises(CannotCopy, match="set DATABASE_POOLER_URL to"):
            await source.open(to_fill=False)
        await source.close()


@async_test
async def test_in_session_mode_the_main_address_may_lead_through_it(where: str, clock: Clock) -> None:
    """A session is of one client for as long as that is connected."""
    with pgbouncer({NAME: where}, "pool_mode = session", "default_pool_size = 20", IGNORED) as pooler:
        db = open_database(f"{pooler}/{NAME}", clock)
        assert await db.size() > 0
        await db.close()


def test_both_addresses_must_lead_to_the_same_database(where: str, clock: Clock) -> None:
    """Another one on the same server is refused."""
    other = postgres().fresh()
    with pgbouncer({NAME: other}) as pooler, pytest.raises(CannotOpen, match="leads to another server or database"):
        open_database(where, clock, pooler_url=f"{pooler}/{NAME}")


@async_test
async def test_what_the_role_lacks_is_said(where: str, clock: Clock) -> None:
    """A statement without a time limit is possible, and commits that could be lost are not."""
    name = where.rpartition("?")[0].rpartition("/")[2]
    with pgbouncer({NAME: where}) as pooler:
        db = open_database(where, clock, pooler_url=f"{pooler}/{NAME}")
        assert "ALTER ROLE postgres SET statement_timeout = '15s'" in str(db.notice)
        await db.close()
    role_settings(where)
    with pgbouncer({NAME: where}) as pooler:
        db = open_database(where, clock, pooler_url=f"{pooler}/{NAME}")
        assert "statement_timeout" not in str(db.notice)
        await db.close()
    postgres().sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pgbouncer({NAME: where}) as pooler, pytest.raises(CannotOpen, match="synchronous_commit is off"):
        open_database(where, clock, pooler_url=f"{pooler}/{NAME}")


def test_a_pooler_that_cannot_be_reached_is_named_without_its_password(where: str, clock: Clock) -> None:
    """The sentence has the host alone."""
    with pytest.raises(CannotOpen, match=r"through the pooler at 127\.0\.0\.1:1:") as refused:
        open_database(where, clock, pooler_url="postgresql://strongroom:secret@127.0.0.1:1/strongroom")
    assert "secret" not in str(refused.value)
