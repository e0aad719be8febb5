"""Challenges that are open: they end with the factors they were begun with, and an address has no more than so many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from strongroom.actions import admin, passkeys
from strongroom.store.postgres.connection import connect
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good, refused
from tests.kit.people.passkeys import BY_PASSWORD, ORIGIN, RP_ID, add_passkey, creation_options, proof_by, register
from tests.kit.people.person import Person
from tests.kit.people.soft_authenticator import SoftPasskey, unb64
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import database_of
from tests.kit.servers.populated_database import rows_of
from tests.kit.waiting import PATIENCE

SETTINGS = {"public_url": ORIGIN}
LIMIT, TOO_MANY = 3, 8  # logins that an address may begin, and logins that it begins at once
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


async def finish(person: Person, options: dict[str, Any]) -> Any:
    """The response to the registration of a new passkey with these options."""
    return await register(person, options, SoftPasskey(RP_ID, unb64(options["user"]["id"])))


@asynccontextmanager
async def held_back(where: str) -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    """Let nobody add a challenge until so many wait for a lock; SQLite has one writer, and needs no help."""

    async def at_once(_count: int) -> None:
        """Nobody waits."""

    if "://" not in where:
        yield at_once
        return
    holder, observer = await connect(where), await connect(where)

    async def release(count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while await observer.fetchval(_WAITING) < count:  # noqa: ASYNC110 - PostgreSQL tells nobody
                await asyncio.sleep(0.01)
        await holder.execute("COMMIT")

    try:
        await holder.execute("BEGIN")
        await holder.execute("LOCK TABLE challenges IN SHARE MODE")  # they can be counted
        yield release
    finally:
        await holder.close()
        await observer.close()


@async_test
async def test_a_deleted_passkey_ends_what_was_begun_with_it(open_server: OpenServer, where: str) -> None:
    """A registration that a finder of the key has begun cannot be finished; what others have begun stays open."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        lost, added = await add_passkey(ann)
        kept, _ = await add_passkey(ann, {"passkey": await proof_by(ann, lost)})
        begun = await creation_options(ann, {"passkey": await proof_by(ann, lost)})
        await proof_by(ann, lost)
        of_bob = await creation_options(bob)
        deletion = {"passkey": await proof_by(ann, kept)}
        good(await ann("DELETE", f"/auth/passkeys/{added['passkey']['uid']}", deletion))
        refused(await finish(ann, begun), 401, "invalid_passkey")
        assert {row[2] for row in (await rows_of(where))["challenges"]} == {bob.id}
        assert [one["credentialId"] for one in good(await ann("GET", "/auth/passkeys"))["passkeys"]] == [
            kept.credential_id
        ]
        good(await finish(bob, of_bob), 201)
        good(await finish(ann, await creation_options(ann, {"passkey": await proof_by(ann, kept)})), 201)


@async_test
async def test_an_operators_reset_ends_what_was_begun(open_server: OpenServer, where: str) -> None:
    """A registration that was begun before it cannot be finished; what others have begun stays open."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        lost, _ = await add_passkey(ann)
        begun = await creation_options(ann, {"passkey": await proof_by(ann, lost)})
        of_bob = await creation_options(bob)
        assert await database_of(server.app).write(admin.reset_second_factor, ann.id)
        refused(await finish(ann, begun), 401, "invalid_passkey")
        assert {row[2] for row in (await rows_of(where))["challenges"]} == {bob.id}
        assert good(await ann("GET", "/auth/passkeys"))["passkeys"] == []
        good(await finish(bob, of_bob), 201)
        good(await finish(ann, await creation_options(ann, BY_PASSWORD)), 201)


@async_test
async def test_an_address_that_begins_many_logins_at_once(
    open_server: OpenServer, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two nodes, all before the first challenge is stored: no more than the limit get one."""
    monkeypatch.setattr(passkeys, "CHALLENGES_PER_ADDRESS", LIMIT)
    async with open_server(**SETTINGS) as one, open_server(**SETTINGS) as two, held_back(where) as release:
        logins = [
            asyncio.ensure_future((one, two)[number % 2].http.post("/auth/passkeys/login/options", json={}))
            for number in range(TOO_MANY)
        ]
        await release(TOO_MANY)
        answers = await asyncio.gather(*logins)
        assert Counter(answer.status_code for answer in answers) == {200: LIMIT, 429: TOO_MANY - LIMIT}
        assert len((await rows_of(where))["challenges"]) == LIMIT
