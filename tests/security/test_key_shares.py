"""Key shares of saved sessions: a refresh of the session gives one, nothing else does, and it goes with the session."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest

from strongroom.actions import sessions
from strongroom.actions.retention import Sweep
from strongroom.rules import HOUR, KEY_SHARE_GRACE, MINUTE
from strongroom.store import Tx
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.servers.internals import database_of
from tests.security.conftest import Nodes
from tests.security.endings import ENDINGS, Cast
from tests.security.fixtures import Account, Stage

ACCESS = 15 * MINUTE
BAD: dict[str, Any] = {
    "31 bytes": base64.b64encode(bytes(31)).decode(),
    "33 bytes": base64.b64encode(bytes(33)).decode(),
    "spare bits": f"{'A' * 42}B=",
    "no padding": "A" * 43,
    "more padding": f"{'A' * 43}==",
    "base64url": f"{'A' * 41}-A=",
    "a line feed": f"{'A' * 43}=\n",
    "empty": "",
    "a number": 1,
    "null": None,
}


def new_share() -> str:
    return base64.b64encode(os.urandom(32)).decode()


async def put(stage: Stage, account: Account, share: Any) -> Any:
    return await stage.send("PUT", "/auth/key-share", account.access, {"keyShare": share})


async def refreshed(stage: Stage, token: str) -> Any:
    answer = await stage.send("POST", "/auth/refresh", None, {"refreshToken": token})
    return answer.json() if answer.status == 200 else answer.code


async def stored(stage: Stage) -> list[str]:
    """The shares that the database holds."""

    async def read(tx: Tx) -> list[str]:
        return await tx.all(str, Sql("SELECT key_share FROM key_shares ORDER BY key_share"))

    return await database_of(stage.app).read(read)


@async_test
async def test_a_refresh_gives_it_and_a_lost_response_loses_nothing(nodes: Nodes) -> None:
    """On every node, as often as the session is refreshed; a token that was presented before gives it again."""
    async with nodes({}, {}) as (one, two):
        ann, share = await one.register("ann"), new_share()
        assert "keyShare" not in await refreshed(one, ann.refresh)
        kept = await put(one, ann, share)
        assert kept.json() == {"sessionId": ann.session, "expiresAt": one.clock() + ACCESS + KEY_SHARE_GRACE}
        lost = await refreshed(two, ann.refresh)  # as far as the client knows, there was no response
        again = await refreshed(one, ann.refresh)
        assert lost["keyShare"] == again["keyShare"] == share
        assert (await refreshed(two, again["refreshToken"]))["keyShare"] == share
        other = new_share()
        await put(two, ann, other)
        assert (await refreshed(one, again["refreshToken"]))["keyShare"] == other
        assert await stored(one) == [other]


@async_test
async def test_it_is_of_one_session_alone(nodes: Nodes) -> None:
    """Another session of the account has none, nor has another account; and nothing but a refresh shows it."""
    async with nodes({}) as (stage,):
        ann, bob, share = await stage.register("ann"), await stage.register("bob"), new_share()
        there = await stage.log_in(ann)
        await put(stage, ann, share)
        for other in (there, bob):
            assert "keyShare" not in await refreshed(stage, other.refresh)
        for path in ("/auth/me", "/auth/sessions", "/auth/events", "/auth/keyring", "/auth/export", "/auth/key-share"):
            assert share not in (await stage.send("GET", path, ann.access)).body.decode()
        assert share not in (await stage.send("DELETE", "/auth/key-share", there.access)).body.decode()
        assert (await refreshed(stage, ann.refresh))["keyShare"] == share


@pytest.mark.parametrize("how", [name for name in ENDINGS if name != "key revocation"])
@async_test
async def test_it_is_deleted_with_its_session(nodes: Nodes, how: str) -> None:
    """Whatever ends the session; and a change of the password ends the share of the session that changes it."""
    async with nodes({}, {}) as (one, two):
        here = await one.register("ann")
        cast = Cast(here, await two.log_in(here), await one.key(here), await one.register("bob"))
        shares = {name: new_share() for name in ("here", "there", "other")}
        for name, share in shares.items():
            await put(two, getattr(cast, name), share)
        await ENDINGS[how].act(one, cast)
        gone = {*ENDINGS[how].out.split(), *(["here"] if how == "password change" else [])}
        assert await stored(two) == sorted(share for name, share in shares.items() if name not in gone)


@async_test
async def test_it_is_deleted_alone(nodes: Nodes) -> None:
    """The session stays open, and takes another share later."""
    async with nodes({}) as (stage,):
        ann = await stage.register("ann")
        await put(stage, ann, new_share())
        for _ in range(2):
            assert (await stage.send("DELETE", "/auth/key-share", ann.access)).json() == {"success": True}
            assert await stored(stage) == []
        found = await refreshed(stage, ann.refresh)
        assert "keyShare" not in found
        assert (await put(stage, ann, new_share())).status == 200


@async_test
async def test_it_expires_unless_a_refresh_asks_for_it(nodes: Nodes) -> None:
    """An hour after the access token that came with it; a purge deletes it."""
    async with nodes({}) as (stage,):
        ann, share = await stage.register("ann"), new_share()
        await put(stage, ann, share)
        token = ann.refresh
        for _ in range(3):
            stage.clock.pass_(ACCESS + HOUR - 1000)  # tokens expire at whole seconds
            found = await refreshed(stage, token)
            assert found["keyShare"] == share
            token = found["refreshToken"]
        stage.clock.pass_(ACCESS + HOUR)
        assert "keyShare" not in await refreshed(stage, token)
        assert await stored(stage) == [share]
        await database_of(stage.app).write(sessions.purge_some, 90, Sweep())
        assert await stored(stage) == []


@pytest.mark.parametrize("how", BAD)
@async_test
async def test_it_is_32_bytes_in_base64(nodes: Nodes, how: str) -> None:
    """In one spelling; the response says so."""
    async with nodes({}) as (stage,):
        ann = await stage.register("ann")
        refused = await put(stage, ann, BAD[how])
        assert (refused.status, refused.code) == (400, "validation_error")
        assert refused.json()["error"]["details"] == {
            "fields": {"keyShare": "must be 32 bytes in base64: 44 characters"}
        }
        assert await stored(stage) == []


@async_test
async def test_a_session_that_has_ended_keeps_none(nodes: Nodes) -> None:
    """A tab that saves its session while another one locks leaves nothing on the server."""
    async with nodes({}) as (stage,):
        ann = await stage.register("ann")
        await stage.send("POST", "/auth/logout", ann.access)
        assert (await put(stage, ann, new_share())).status == 401
        assert await stored(stage) == []
