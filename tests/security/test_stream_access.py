"""An event stream ends with the right to follow it: at once, on every node, and nothing is sent after that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from strongroom.actions import change_feed
from strongroom.server.live.channel import Channel
from tests.kit.asynchronous import async_test
from tests.kit.network.event_stream import Follow
from tests.security.conftest import Nodes
from tests.security.endings import ENDINGS, Cast
from tests.security.fixtures import Stage

REASONS = {"here": "session_revoked", "there": "session_revoked", "key": "key_revoked"}


@asynccontextmanager
async def cast_on(one: Stage, two: Stage) -> AsyncIterator[tuple[Cast, str]]:
    """Ann in two sessions and with a key, and Bob; and a vault of hers."""
    here = await one.register("ann")
    yield Cast(here, await two.log_in(here), await one.key(here), await one.register("bob")), await one.vault(here)


async def write(stage: Stage, account: Any, vault: str) -> str:
    """One more document; fails if it is refused."""
    return await stage.document(account, vault, "c", "AAAA")


@pytest.mark.parametrize("how", ENDINGS)
@async_test
async def test_a_stream_ends_on_both_nodes(nodes: Nodes, how: str) -> None:
    """With the word for it; what is written afterwards is not shown, and those whom it does not concern go on."""
    async with nodes({}, {}) as (one, two), cast_on(one, two) as (cast, vault), AsyncExitStack() as stack:
        bearers = {"here": cast.here.access, "there": cast.there.access, "key": cast.key["key"]}
        streams = {}
        for number, stage in enumerate((one, two)):
            for name, bearer in bearers.items():
                for path in (f"/vaults/{vault}/events", "/events"):
                    stream = await stack.enter_async_context(Follow(stage.app, path, bearer))
                    await stream.ready()
                    streams[name, number, path] = stream
        first = await write(one, cast.there, vault)
        for stream in streams.values():
            assert (await stream.next()).data["uid"] == first
        await ENDINGS[how].act(one, cast)
        out = ENDINGS[how].out.split()
        writer = next(
            (account for name, account in (("here", cast.here), ("there", cast.there)) if name not in out), None
        )
        if writer is None and how != "account deletion":
            writer = await one.log_in(cast.here)
        after = None if writer is None else await write(one, writer, vault)
        for (name, _, _), stream in streams.items():
            if name in out:
                assert await stream.reason() == ("account_deleted" if "account" in how else REASONS[name])
            else:
                assert (await stream.next()).data["uid"] == after


@async_test
async def test_what_is_ready_is_not_shown_after_the_end(nodes: Nodes) -> None:
    """A reader that is slow to take: when it takes again, the session is over, and so is what waited for it."""
    async with (
        nodes({}) as (one,),
        cast_on(one, one) as (cast, vault),
        Follow(one.app, f"/vaults/{vault}/events", cast.there.access) as stream,
    ):
        await stream.ready()
        stream.open.clear()
        taken = await write(one, cast.here, vault)
        assert (await stream.next()).data["uid"] == taken
        for _ in range(5):
            await write(one, cast.here, vault)
        ended = await one.send("DELETE", f"/auth/sessions/{cast.there.session}", cast.here.access)
        assert ended.status == 200
        stream.open.set()
        assert await stream.reason() == "session_revoked"


@async_test
async def test_the_look_at_who_follows_comes_after_the_look_at_what_changed(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that ends, and a write after that, both while a channel is reading: the write is not shown."""
    async with (
        nodes({}, {}) as (one, two),
        cast_on(one, two) as (cast, vault),
        Follow(one.app, f"/vaults/{vault}/events", cast.there.access) as stream,
    ):
        await stream.ready()
        await write(one, cast.here, vault)
        await stream.next()
        real, hit = Channel.access_status, asyncio.Event()

        async def late(channel: Channel) -> Any:
            if not hit.is_set():
                hit.set()
                await two.send("DELETE", f"/auth/sessions/{cast.there.session}", cast.here.access)
                await write(two, cast.here, vault)
            return await real(channel)

        monkeypatch.setattr(Channel, "access_status", late)
        await write(one, cast.here, vault)
        assert await stream.reason() == "session_revoked"
        assert hit.is_set()


@async_test
async def test_a_stream_that_catches_up_is_looked_at_too(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page: the session ends in the middle, and the rest is not shown."""
    monkeypatch.setattr("strongroom.server.live.change_source.PAGE", 2)
    async with nodes({}, {}) as (one, two), cast_on(one, two) as (cast, vault):
        for _ in range(7):
            await write(one, cast.here, vault)
        pages = 0
        real = change_feed.page

        async def counted(*args: Any) -> Any:
            nonlocal pages
            pages += 1
            return await real(*args)

        monkeypatch.setattr(change_feed, "page", counted)
        stream = Follow(one.app, f"/vaults/{vault}/events?since=0", cast.there.access)
        async with stream:
            await stream.ready()
            await stream.next()
            stream.open.clear()
            await two.send("DELETE", f"/auth/sessions/{cast.there.session}", cast.here.access)
            stream.open.set()
            while (event := await stream.next()).name == "document":
                pass
            assert event.data == {"reason": "session_revoked"}
            assert pages < 5


@async_test
async def test_a_stranger_follows_nothing(nodes: Nodes) -> None:
    """Bob sees no vault of Ann's, and what she does is not on his stream."""
    async with nodes({}) as (one,), cast_on(one, one) as (cast, vault):
        refused = await one.send("GET", f"/vaults/{vault}/events", cast.other.access)
        assert (refused.status, refused.code) == (404, "vault_not_found")
        async with Follow(one.app, "/events", cast.other.access) as stream:
            await stream.ready()
            await write(one, cast.here, vault)
            own = await one.vault(cast.other)
            assert (await stream.next()).data["uid"] == own
