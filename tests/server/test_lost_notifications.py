"""A nudge that is lost delays an event, and loses none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.server.live import channel, follower, hub
from strongroom.store.postgres import notify
from strongroom.store.postgres.notify import PostgresNotifications
from strongroom.store.sqlite.change_watch import FileNotifications
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.event_stream import Follow, following
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of
from tests.kit.servers.populated_database import Served
from tests.kit.servers.postgres import Postgres
from tests.server.waiting_polls import until_waiting


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is heard from other processes; clocks are compared five times a second."""

    async def drop(self: PostgresNotifications, _: Any) -> None:
        self._pending.clear()

    monkeypatch.setattr(PostgresNotifications, "_send", drop)
    monkeypatch.setattr(FileNotifications, "poll", lambda _: None)
    monkeypatch.setattr(hub, "SAFETY_SECONDS", 0.2)


@pytest.mark.usefixtures("deaf")
@async_test
async def test_clocks_are_compared_all_the_same(open_server: OpenServer, where: str, clock: Clock) -> None:
    """Changes, vaults, long polls and the end of a session, all from another process that nobody hears."""
    async with open_server() as server, Served(where, clock) as elsewhere:
        ann = await server.person()
        vault, there = await ann.vault(), Person.__new__(Person)
        there.__dict__.update(ann.__dict__ | {"http": elsewhere.http})
        other = (await server.login(ann.email)).json()
        async with (
            following(server, ann, f"/vaults/{vault['uid']}/events") as stream,
            following(server, ann, "/events") as account,
            following(server, ann, "/events", bearer=other["accessToken"]) as ending,
        ):
            made = await there.document(vault)
            for one in (stream, account, ending):
                assert (await one.next()).data["uid"] == made["uid"]
            path = f"/vaults/{vault['uid']}/documents?since={made['updatedAt']}&wait=30"
            waiting = asyncio.create_task(ann("GET", path))
            second = await there.document(vault)
            assert [one["uid"] for one in (await waiting).json()["documents"]] == [second["uid"]]
            for one in (stream, account, ending):
                assert (await one.next()).data["uid"] == second["uid"]
            third = await there.vault()
            assert (await account.next()).data["uid"] == (await ending.next()).data["uid"] == third["uid"]
            await there("POST", "/auth/logout", bearer=other["accessToken"])
            assert await ending.reason() == "session_revoked"
            last = await there.document(vault)
            assert (await stream.next()).data["uid"] == last["uid"]


@pytest.mark.usefixtures("deaf")
@async_test
async def test_a_long_poll_ends_with_its_session(open_server: OpenServer, where: str, clock: Clock) -> None:
    """A long poll alone, whose session or key was ended by another process that nobody hears."""
    async with open_server() as server, Served(where, clock) as elsewhere:
        ann = await server.person()
        vault, there = await ann.vault(), Person.__new__(Person)
        there.__dict__.update(ann.__dict__ | {"http": elsewhere.http})
        key = (await ann("POST", "/auth/api-keys", {"name": "k"})).json()
        other = (await server.login(ann.email)).json()["accessToken"]
        path = f"/vaults/{vault['uid']}/documents?since={vault['updatedAt']}&wait=60"
        for bearer, end in (
            (other, ("POST", "/auth/logout", other)),
            (key["key"], ("DELETE", f"/auth/api-keys/{key['uid']}", ann.access)),
        ):
            waiting = asyncio.create_task(ann("GET", path, bearer=bearer))
            async with asyncio.timeout(20):
                await until_waiting(server, 1)
                method, target, who = end
                assert (await there(method, target, bearer=who)).status_code == 200
                assert (await waiting).status_code == 401


@async_test
async def test_a_database_that_goes_away_costs_no_stream(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL is killed and comes back: the stream goes on, with all that was committed."""
    for module in (channel, follower):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(notify, "RETRY_SECONDS", 0.05)
    server = Postgres()
    async with Served(server.fresh(), clock) as served:
        ann = await served.person()
        vault = await ann.vault()
        async with Follow(served.app, f"/vaults/{vault['uid']}/events", ann.access) as stream:
            await stream.ready()
            for _ in range(2):
                await asyncio.to_thread(server.crash)
                await asyncio.to_thread(server.restart)
                made = await ann.document(vault)
                assert (await stream.next()).data["uid"] == made["uid"]
    server.stop()


@async_test
async def test_a_server_that_was_ended_and_started_is_followed_on(open_server: OpenServer) -> None:
    """The stream says that it ends; its last id leads on, over the restart and what was written meanwhile."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        async with following(server, ann, "/events") as stream:
            first = await ann.document(vault)
            cursor = (await stream.next()).id
            context_of(server.app).live.stop()
            assert await stream.reason() == "server_stopping"
            between = await ann.document(vault)
        async with Follow(server.app, "/events", ann.access) as late:
            await late.ready()
            assert await late.reason() == "server_stopping"
    async with open_server() as again:
        ann.http = again.http
        async with Follow(again.app, "/events", ann.access, last_event_id=str(cursor)) as stream:
            assert await stream.ready() == cursor == first["updatedAt"]
            assert (await stream.next()).data["uid"] == between["uid"]
            last = await ann.document(vault)
            assert (await stream.next()).data["uid"] == last["uid"]
