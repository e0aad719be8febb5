"""An account that an operator has shut: out at once, on every node, and whole when it is opened again."""

from __future__ import annotations

from typing import Any

from strongroom.actions import admin
from tests.kit.asynchronous import async_test
from tests.kit.servers.internals import context_of, database_of
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Account, Stage

SHUT = (403, "account_disabled")


async def knocks(stage: Stage, account: Account, key: str) -> list[tuple[int, str]]:
    """What each way in says: a read, a write and a list with a session, the same with a key, a refresh, a login."""
    asked = [
        await stage.send("GET", "/auth/me", account.access),
        await stage.send("POST", "/vault", account.access, {}),
        await stage.send("GET", "/vault", account.access),
        await stage.send("GET", "/auth/me", key),
        await stage.send("GET", "/vault", key),
        await stage.send("POST", "/auth/refresh", None, {"refreshToken": account.refresh}),
        await stage.send("POST", "/auth/email/login", None, {"email": account.email, "password": PASSWORD}),
    ]
    return [(answer.status, answer.code) for answer in asked]


OPEN = [(200, ""), (400, "validation_error"), (200, ""), (200, ""), (200, ""), (200, ""), (200, "")]


@async_test
async def test_a_shut_account_is_out_on_both_nodes_and_comes_back_whole(nodes: Nodes) -> None:
    """Sessions, keys and refresh tokens are refused on the next request; enabled, all of them are good again."""
    async with nodes({}, {}) as (one, two):
        ann, bob = await one.register("ann"), await one.register("bob")
        keys = {name: (await one.key(account))["key"] for name, account in (("ann", ann), ("bob", bob))}
        vault = await one.vault(ann)
        assert await knocks(two, ann, keys["ann"]) == OPEN
        assert await database_of(one.app).write(admin.disable, ann.id)
        assert not await database_of(one.app).write(admin.disable, ann.id)
        for node in (one, two):
            assert await knocks(node, ann, keys["ann"]) == [SHUT] * 7
            assert await knocks(node, bob, keys["bob"]) == OPEN
        one.clock.pass_(1_000)
        assert await database_of(two.app).write(admin.enable, ann.id)
        assert not await database_of(two.app).write(admin.enable, ann.id)
        for node in (one, two):
            assert await knocks(node, ann, keys["ann"]) == OPEN
        assert (await one.send("GET", f"/vault/{vault}", ann.access)).status == 200
        log = (await one.send("GET", "/auth/events", ann.access)).json()["events"]
        told = [(line["type"], line["address"]) for line in log if line["type"] in {"disabled", "enabled"}]
        assert told == [("enabled", "operator"), ("disabled", "operator")]


@async_test
async def test_only_who_has_the_password_learns_that_it_is_shut(nodes: Nodes) -> None:
    """A wrong password gets the answer that a stranger's email gets, and counts as much."""
    async with nodes({}, {}) as (one, _):
        ann = await one.register("ann")
        await database_of(one.app).write(admin.disable, ann.id)

        async def login(email: str, password: str) -> Any:
            body = {"email": email, "password": password}
            return await one.send("POST", "/auth/email/login", None, body, address="203.0.113.8")

        wrong, nobody = await login(ann.email, "wrong horse"), await login("nobody@example.com", "wrong horse")
        assert (wrong.status, wrong.code) == (nobody.status, nobody.code) == (401, "invalid_credentials")
        assert wrong == nobody
        right = await login(ann.email, PASSWORD)
        assert (right.status, right.code) == SHUT
        for _ in range(9):
            await login(ann.email, "wrong horse")
        assert (await login(ann.email, PASSWORD)).status == 429


@async_test
async def test_a_refused_refresh_of_a_shut_account_costs_nothing(nodes: Nodes) -> None:
    """The token is as good as before, and no failure is counted against the address."""
    async with nodes({}, {}) as (one, _):
        ann = await one.register("ann")
        await database_of(one.app).write(admin.disable, ann.id)
        for _ in range(120):
            answer = await one.send("POST", "/auth/refresh", None, {"refreshToken": ann.refresh})
            assert (answer.status, answer.code) == SHUT
        await database_of(one.app).write(admin.enable, ann.id)
        assert (await one.send("POST", "/auth/refresh", None, {"refreshToken": ann.refresh})).status == 200


@async_test
async def test_a_login_cannot_outrun_the_shutting(nodes: Nodes) -> None:
    """The account is shut between the check of the password and the session: no session is opened."""
    async with nodes({}, {}) as (one, two):
        ann = await one.register("ann")
        matches = context_of(one.app).password_matches

        async def and_shut(*args: Any) -> bool:
            good: bool = await matches(*args)
            await database_of(two.app).write(admin.disable, ann.id)
            return good

        context_of(one.app).password_matches = and_shut  # type: ignore[method-assign, assignment]
        answer = await one.send("POST", "/auth/email/login", None, {"email": ann.email, "password": PASSWORD})
        assert (answer.status, answer.code) == SHUT
        await database_of(two.app).write(admin.enable, ann.id)
        sessions = (await two.send("GET", "/auth/sessions", ann.access)).json()["sessions"]
        assert len(sessions) == 1
