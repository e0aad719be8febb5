"""Exports that overlap do not keep deleted data in the write-ahead log, and an account has one at a time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from strongroom.server import snapshot_slots
from strongroom.store.sqlite import engine as sqlite_engine
from strongroom.store.sqlite import writer as sqlite_writer
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.responses import good, refused
from tests.kit.network.slow_reader import SlowReader
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer, in_process_server
from tests.kit.servers.internals import context_of, database_of
from tests.kit.waiting import until_async

MARK = "DELETEDDELETED01"
LARGE = "A" * 1_600_000  # one is a piece of an export


async def exporter(server: InProcessServer) -> Person:
    """Somebody whose export has several pieces."""
    person = await server.person()
    vault = await person.vault()
    for _ in range(4):
        await person.document(vault, data=LARGE)
    return person


async def begun(server: InProcessServer, person: Person) -> SlowReader:
    """An export of which the first pieces were read."""
    reader = SlowReader(server.app, person.access)
    await reader.take(2)
    return reader


def on_disk(where: str) -> bytes:
    """The file and its log."""
    return b"".join(path.read_bytes() for path in Path(where).parent.glob("vault.db*") if path.suffix != ".db-shm")


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_overlapping_exports_keep_nothing_of_a_deleted_account(
    open_server: OpenServer, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once truncation is overdue, the next export waits until those that run have ended and the log is empty."""
    monkeypatch.setattr(sqlite_writer, "OWED_SECONDS", 0.0)
    monkeypatch.setattr(sqlite_engine, "OWED_SECONDS", 0.0)
    monkeypatch.setattr(sqlite_engine, "WAIT_SECONDS", 60.0)
    async with open_server() as server:
        first, second, gone = [await exporter(server) for _ in range(3)]
        vault = await gone.vault()
        for _ in range(20):
            await gone.document(vault, data=MARK * 300)
        running = [await begun(server, first)]
        context = context_of(server.app)
        background = asyncio.create_task(context.deletions.run(context.log))
        good(await gone("DELETE", "/auth/me", {"password": "correct horse"}))
        await until_async(lambda: context.db.is_truncation_overdue, "the attempt to truncate the log")
        assert MARK.encode() in on_disk(where), "the export holds the log"
        waiting = asyncio.ensure_future(begun(server, second))
        short = await second("GET", "/vault")  # a list can be asked to end: none waits
        assert short.status_code == 200
        assert not waiting.done()
        assert (await running[0].rest()).rstrip().endswith(b"}")
        reader = await waiting
        assert MARK.encode() not in on_disk(where), "the next export began before the log was truncated"
        await reader.rest()
        background.cancel()


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_an_export_of_another_process_waits_too(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the log is to be truncated is written in the database: each process of it sees that."""
    monkeypatch.setattr(sqlite_engine, "WAIT_SECONDS", 0.0)
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(in_process_server(where, clock)) for _ in range(2)]
        first, gone = await exporter(one), await one.person()
        running = await begun(one, first)
        good(await gone("DELETE", "/auth/me", {"password": "correct horse"}))
        await one.finish_deletions()
        assert not database_of(other.app).is_truncation_overdue
        clock.pass_(int(1_000 * sqlite_writer.OWED_SECONDS))
        assert database_of(other.app).is_truncation_overdue
        headers = {"authorization": f"Bearer {first.access}"}
        refused(await other.http.get("/auth/export", headers=headers), 503, "unavailable")
        await running.rest()
        await one.finish_deletions()
        assert not database_of(other.app).is_truncation_overdue
        assert (await other.http.get("/auth/export", headers=headers)).status_code == 200


@async_test
async def test_an_account_has_one_export_at_a_time(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused in a sentence, and another account's is not."""
    monkeypatch.setattr(snapshot_slots, "WAIT_SECONDS", 0.0)
    async with open_server(db_pool=20) as server:
        first, second = await exporter(server), await exporter(server)
        running = await begun(server, first)
        error = refused(await first("GET", "/auth/export"), 429, "rate_limited")
        assert "Another export of your account" in error["message"]
        assert (await second("GET", "/auth/export")).status_code == 200
        await running.rest()
        assert (await first("GET", "/auth/export")).status_code == 200


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@async_test
async def test_another_node_begins_no_second_export(where: str, clock: Clock) -> None:
    """Of an account that is being exported; when that has ended, it does."""
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(in_process_server(where, clock)) for _ in range(2)]
        person = await exporter(one)
        running = await begun(one, person)
        headers = {"authorization": f"Bearer {person.access}"}
        refused(await other.http.get("/auth/export", headers=headers), 429, "rate_limited")
        await running.rest()
        assert (await other.http.get("/auth/export", headers=headers)).status_code == 200
