"""`/ready`: what a load balancer is told."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import apsw
import asyncpg
import pytest

from strongroom import credentials
from strongroom.server import passwords
from strongroom.server.monitoring import readiness
from strongroom.store import migrations
from tests.kit.asynchronous import async_test
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import database_of

PATIENCE = 20.0
_SET = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I {}', current_database()); END $$"
_CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def answer_of(server: InProcessServer, status: int) -> dict[str, Any]:
    """The answer, once it has this status."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = await server.http.get("/ready")
        if answer.status_code == status:
            body: dict[str, Any] = answer.json()
            return body
        assert time.monotonic() < deadline, answer.text
        await asyncio.sleep(0.05)


async def meddle(where: str, *statements: str) -> None:
    """Change the database behind the server's back."""
    if "://" in where:
        connection: Any = await asyncpg.connect(where)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()
        return
    file = apsw.Connection(where)
    file.set_busy_timeout(5_000)
    for statement in statements:
        file.execute(statement).fetchall()
    file.close()


@async_test
async def test_a_server_that_can_work_is_ready(open_server: OpenServer, where: str) -> None:
    """Everything that it looked at is told; of the disk only where it can know."""
    async with open_server() as server:
        told = await answer_of(server, 200)
        assert told["status"] == "ready"
        disk = {} if "://" in where else {"disk": "ok"}
        assert told["checks"] == {"database": "ok", "schema": "ok", "passwords": "ok", **disk}


@async_test
async def test_however_many_ask_the_database_is_written_to_once(open_server: OpenServer, where: str) -> None:
    """A hundred probes in a second are one write, and the clock of that write stays in the database."""
    async with open_server() as server:
        writes = 0
        db = database_of(server.app)
        write = db.write

        async def counted(*args: Any, **keywords: Any) -> Any:
            nonlocal writes
            writes += 1
            return await write(*args, **keywords)

        db.write = counted  # type: ignore[method-assign]
        began = time.monotonic()
        answers = await asyncio.gather(*(server.http.get("/ready") for _ in range(100)))
        assert {answer.status_code for answer in answers} == {200}
        assert 1 <= writes <= 1 + (time.monotonic() - began) / readiness.CACHE_SECONDS
        await meddle(where, "UPDATE lineage SET epoch = NULL WHERE probed_at IS NULL")  # which would fail


@async_test
async def test_a_database_that_takes_no_writes_is_not_ready_until_it_does(open_server: OpenServer, where: str) -> None:
    """Another process holds the lock; on PostgreSQL, the database is read only for now."""
    async with open_server() as server:
        await answer_of(server, 200)
        if "://" in where:
            await meddle(where, _SET.format("SET default_transaction_read_only = on"), _CUT)
            assert (await answer_of(server, 503))["checks"]["database"] == "failed"
            await meddle(where, "SET default_transaction_read_only = off", _SET.format("RESET ALL"), _CUT)
        else:
            holder = apsw.Connection(where)
            holder.execute("BEGIN IMMEDIATE")
            good = {"passwords": "ok", "disk": "ok"}
            assert (await answer_of(server, 503))["checks"] == {"database": "failed", "schema": "failed", **good}
            assert (await server.http.get("/health")).status_code == 200
            holder.execute("ROLLBACK")
            holder.close()
        assert (await answer_of(server, 200))["status"] == "ready"


@async_test
async def test_slow_hashing_is_ready_and_hashing_that_stands_still_is_not(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine takes seconds for a password; threads that never finish leave none that could begin."""
    going_on = threading.Event()
    monkeypatch.setattr(credentials, "hash_password", lambda _: going_on.wait(60))
    monkeypatch.setattr(passwords, "_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(readiness, "CACHE_SECONDS", 0)
    async with open_server() as server:
        try:
            assert (await server.http.get("/ready")).json()["checks"]["passwords"] == "ok"
            for _ in range(100):
                if (await server.http.get("/ready")).json()["checks"]["passwords"] == "failed":
                    break
            else:
                pytest.fail("it is ready without a thread that hashes")
        finally:
            going_on.set()
        await answer_of(server, 200)


@async_test
async def test_a_schema_that_lacks_a_step_is_not_ready(open_server: OpenServer, where: str) -> None:
    """As when an older copy was put in place under a running server. One that is newer is fine."""
    newest = migrations.load()[-1].number
    async with open_server() as server:
        await answer_of(server, 200)
        await meddle(where, f"UPDATE schema_migrations SET number = 0 WHERE number = {newest}")
        told = await answer_of(server, 503)
        assert told["status"] == "not ready"
        assert told["checks"]["schema"] == "failed"
        assert told["checks"]["database"] == "ok"
        await meddle(where, f"UPDATE schema_migrations SET number = {newest + 1} WHERE number = 0")
        await answer_of(server, 200)


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_a_disk_below_the_floor_is_not_ready(open_server: OpenServer) -> None:
    """Before it is full: writes still work."""
    async with open_server(ready_free_bytes=10**15 - 1) as server:
        told = await answer_of(server, 503)
        assert told["checks"] == {"database": "ok", "schema": "ok", "passwords": "ok", "disk": "failed"}
        await server.person()
