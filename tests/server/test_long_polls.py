"""Long polls: a list that waits for a change, and holds no connection to the database meanwhile."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from strongroom.actions import documents as actions
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.event_stream import Follow
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of
from tests.kit.waiting import until_async
from tests.server.waiting_polls import until_waiting


def documents(vault: dict[str, Any], query: str, route: str = "") -> str:
    return f"/vaults/{vault['uid']}/documents{route}?{query}"


@pytest.mark.parametrize("route", ["", "/sync"])
@async_test
async def test_a_wait_ends_with_the_first_change(open_server: OpenServer, route: str) -> None:
    """As soon as there is something, and at once where there is something already."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        first = await ann.document(vault)
        at_once = await ann("GET", documents(vault, f"since={vault['updatedAt']}&wait=60", route))
        assert [one["uid"] for one in at_once.json()["documents"]] == [first["uid"]]
        waiting = asyncio.create_task(ann("GET", documents(vault, f"since={first['updatedAt']}&wait=60", route)))
        await until_waiting(server, 1)
        second = await ann.document(vault)
        async with asyncio.timeout(30):
            answer = (await waiting).json()
        assert [one["uid"] for one in answer["documents"]] == [second["uid"]]
        assert answer["next"] == second["updatedAt"]
        assert ("syncedAt" in answer) is (route == "/sync")
        assert context_of(server.app).live._accounts == {}


@async_test
async def test_a_wait_in_vain_is_an_empty_list(open_server: OpenServer) -> None:
    """After the time that was asked for."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        began = time.monotonic()
        answer = await ann("GET", documents(vault, f"since={vault['updatedAt']}&wait=1"))
        assert time.monotonic() - began >= 1
        assert answer.json() == {"documents": [], "hasMore": False, "next": vault["updatedAt"]}


@async_test
async def test_only_what_the_filter_shows_ends_a_wait(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another collection, not a tombstone that is not wanted, not another vault, not what a key does not reach."""
    looks = 0
    look = actions.has_changes

    async def counted(*args: Any) -> bool:
        nonlocal looks
        looks += 1
        return await look(*args)

    monkeypatch.setattr(actions, "has_changes", counted)
    async with open_server() as server:
        ann = await server.person()
        vault, other = await ann.vault(), await ann.vault()
        buried = await ann.document(vault, collection="in")
        key = await ann.key(collections=["in"])
        since = buried["updatedAt"]
        asked = [
            asyncio.create_task(ann("GET", documents(vault, f"since={since}&wait=60&{more}"), bearer=bearer))
            for more, bearer in (
                ("collection=in&includeDeleted=false", ann.access),
                ("includeDeleted=false", key),
                ("limit=1&includeDeleted=false&collection=in", key),
            )
        ]
        await until_waiting(server, 3)
        await ann.document(vault, collection="out")
        await ann.document(other, collection="in")
        await until_async(lambda: looks >= 6)
        await ann("DELETE", f"/vaults/{vault['uid']}/documents/{buried['uid']}")
        await until_async(lambda: looks >= 9)
        assert not any(one.done() for one in asked)
        shown = await ann.document(vault, collection="in")
        async with asyncio.timeout(30):
            for answer in await asyncio.gather(*asked):
                assert [one["uid"] for one in answer.json()["documents"]] == [shown["uid"]]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=0&wait=61", "wait"),
        ("since=0&wait=-1", "wait"),
        ("since=0&wait=1.5", "wait"),
        ("since=0&wait=", "wait"),
        ("since=0&wait=x", "wait"),
        ("wait=5", "since"),
        ("wait=0", "since"),
        ("since=x&wait=5", "since"),
    ],
)
@async_test
async def test_a_wait_that_is_none_is_refused(open_server: OpenServer, query: str, field: str) -> None:
    """0 to 60 whole seconds, and only after a moment."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        refused = await ann("GET", documents(vault, query))
        assert refused.status_code == 400
        assert set(refused.json()["error"]["details"]["fields"]) == {field}
        assert (await ann("GET", documents(vault, "since=0&wait=0"))).status_code == 200
        assert (await ann("GET", documents(vault, "wait=0", "/sync"))).status_code == 200


async def log_out(_: Any, ann: Person, __: dict[str, Any]) -> None:
    assert (await ann("POST", "/auth/logout")).status_code == 200


async def outlive(server: Any, _: Person, __: dict[str, Any]) -> None:
    server.clock.pass_(15 * 60_000)
    for account in context_of(server.app).live._accounts.values():
        account.notify()


async def lose_vault(_: Any, ann: Person, vault: dict[str, Any]) -> None:
    assert (await ann("DELETE", f"/vault/{vault['uid']}")).status_code == 200


@pytest.mark.parametrize(
    ("act", "status"), [(log_out, 401), (outlive, 401), (lose_vault, 404)], ids=["logout", "expiry", "vault"]
)
@async_test
async def test_who_waits_is_looked_at_again(open_server: OpenServer, clock: Clock, act: Any, status: int) -> None:
    """What ended meanwhile is refused, at once and with nothing shown."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        waiting = asyncio.create_task(ann("GET", documents(vault, f"since={clock.now + 1000}&wait=60")))
        await until_waiting(server, 1)
        await act(server, ann, vault)
        async with asyncio.timeout(30):
            assert (await waiting).status_code == status


@async_test
async def test_those_who_wait_hold_nothing(open_server: OpenServer) -> None:
    """More of them than there are turns and connections: others read lists and write."""
    async with open_server(db_pool=2) as server:
        ann = await server.person()
        vault = await ann.vault()
        path = documents(vault, f"since={vault['updatedAt']}&wait=60")
        waiting = [asyncio.create_task(ann("GET", path)) for _ in range(40)]
        await until_waiting(server, 40)
        assert (await ann("GET", f"/vaults/{vault['uid']}/documents")).json()["documents"] == []
        made = await ann.document(vault)
        async with asyncio.timeout(20):
            for answer in await asyncio.gather(*waiting):
                assert answer.status_code in {200, 503}
        listed = await ann("GET", f"/vaults/{vault['uid']}/documents")
        assert [one["uid"] for one in listed.json()["documents"]] == [made["uid"]]


@async_test
async def test_who_goes_away_waits_no_more(open_server: OpenServer) -> None:
    """And nothing is left of it."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        stream = Follow(server.app, documents(vault, f"since={vault['updatedAt']}&wait=60"), ann.access)
        entering = asyncio.create_task(stream.__aenter__())
        await until_waiting(server, 1)
        stream._closed.set()
        await entering
        assert stream.status == 0
        assert context_of(server.app).live._accounts == {}


@async_test
async def test_a_server_that_stops_waits_for_nobody(open_server: OpenServer) -> None:
    """The answer is what there is: nothing."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        waiting = asyncio.create_task(ann("GET", documents(vault, f"since={vault['updatedAt']}&wait=60")))
        await until_waiting(server, 1)
        context_of(server.app).live.stop()
        async with asyncio.timeout(30):
            assert (await waiting).json()["documents"] == []
