"""Refresh tokens over time: what a black box would have to wait for."""

from __future__ import annotations

import pytest

from strongroom import store
from strongroom.rules import MINUTE, REUSE_GRACE
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer


async def refreshed(person: Person, token: str) -> tuple[int, str]:
    answer = await person.http.post("/auth/refresh", json={"refreshToken": token})
    body = answer.json()
    return answer.status_code, body.get("refreshToken", body.get("error", {}).get("code"))


async def still_in(person: Person) -> bool:
    return (await person("GET", "/auth/me")).status_code == 200


@async_test
async def test_a_client_that_never_rotates_is_never_logged_out(open_server: OpenServer) -> None:
    """The presented token stays good until the one that replaced it is used."""
    async with open_server() as server:
        person = await server.person()
        for _ in range(20):
            server.clock.pass_(3_600_000)
            assert (await refreshed(person, person.refresh))[0] == 200


@async_test
async def test_a_superseded_token_is_refused_at_first_and_ends_the_session_later(open_server: OpenServer) -> None:
    """Within the grace it is two tabs; after it, it is theft."""
    async with open_server() as server:
        person = await server.person()
        _, second = await refreshed(person, person.refresh)
        _, third = await refreshed(person, second)
        server.clock.pass_(REUSE_GRACE)
        assert await refreshed(person, person.refresh) == (401, "invalid_refresh_token")
        assert await still_in(person)
        server.clock.pass_(1)
        assert await refreshed(person, person.refresh) == (401, "invalid_refresh_token")
        assert not await still_in(person)
        assert (await refreshed(person, third))[0] == 401


@async_test
async def test_the_grace_counts_from_each_tokens_own_end(open_server: OpenServer) -> None:
    """A token that died long ago gets no new grace because a later one has just died."""
    async with open_server() as server:
        person = await server.person()
        _, second = await refreshed(person, person.refresh)
        _, third = await refreshed(person, second)
        server.clock.pass_(REUSE_GRACE + 1)
        await refreshed(person, third)
        assert (await refreshed(person, second))[0] == 401
        assert await still_in(person)
        assert (await refreshed(person, person.refresh))[0] == 401
        assert not await still_in(person)


@async_test
async def test_siblings_of_one_generation_all_live(open_server: OpenServer) -> None:
    """Eight tabs refresh at once, and each goes on with what it got."""
    async with open_server() as server:
        person = await server.person()
        siblings = [(await refreshed(person, person.refresh))[1] for _ in range(8)]
        assert len(set(siblings)) == 8
        assert [(await refreshed(person, sibling))[0] for sibling in siblings] == [200] * 8


@async_test
async def test_tokens_expire_to_the_millisecond(open_server: OpenServer) -> None:
    """No leeway."""
    async with open_server(jwt_access_expiry="1500ms", jwt_refresh_expiry="3s") as server:
        person = await server.person()
        server.clock.pass_(1_499)
        assert await still_in(person)
        server.clock.pass_(1)
        assert not await still_in(person)
        server.clock.pass_(1_499)
        assert (await refreshed(person, person.refresh))[0] == 200
        server.clock.pass_(1)
        assert (await refreshed(person, person.refresh))[0] == 401


@async_test
async def test_one_account_may_have_many_sessions(open_server: OpenServer) -> None:
    """Logging out of one leaves the other."""
    async with open_server() as server:
        first = await server.person()
        second = Person(server.http, first.email, (await server.login(first.email)).json())
        assert (await first("POST", "/auth/logout")).json() == {"success": True}
        assert not await still_in(first)
        assert (await refreshed(first, first.refresh))[0] == 401
        assert await still_in(second)


async def _fail(server: InProcessServer, email: str, times: int) -> list[int]:
    return [(await server.login(email, "wrong password")).status_code for _ in range(times)]


@async_test
async def test_the_eleventh_failure_is_refused_until_the_first_is_forgotten(open_server: OpenServer) -> None:
    """And no lock-out is for ever."""
    async with open_server() as server:
        person = await server.person()
        assert await _fail(server, person.email, 5) == [401] * 5
        server.clock.pass_(60_000)
        assert await _fail(server, person.email, 5) == [401] * 5
        refused = await server.login(person.email.upper())
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) == 14 * 60
        server.clock.pass_(14 * 60_000 - 1)
        assert (await server.login(person.email)).status_code == 429
        server.clock.pass_(1)
        assert (await server.login(person.email)).status_code == 200
        assert await _fail(server, person.email, 10) == [401] * 10


@async_test
async def test_restarts_do_not_forget_failures(open_server: OpenServer) -> None:
    """The count lies in the database."""
    async with open_server() as server:
        person = await server.person()
        assert await _fail(server, person.email, 10) == [401] * 10
    async with open_server() as server:
        assert (await server.login(person.email)).status_code == 429
    async with open_server(address="10.0.0.9") as server:
        assert (await server.login(person.email)).status_code == 200


@async_test
async def test_an_address_is_bounded_over_all_accounts(open_server: OpenServer) -> None:
    """A hundred failures, whoever they were aimed at; the /64 of IPv6 is one address."""
    async with open_server(address="2001:db8::1") as server:
        person = await server.person()
        for n in range(10):
            assert await _fail(server, f"stranger{n}@example.com", 10) == [401] * 10
    async with open_server(address="2001:db8::ffff:1") as server:
        assert (await server.login(person.email)).status_code == 429
        assert await still_in(Person(server.http, person.email, _signed(person)))
    async with open_server(address="2001:db8:0:1::1") as server:
        assert (await server.login(person.email)).status_code == 200


def _signed(person: Person) -> dict[str, object]:
    return {"accessToken": person.access, "refreshToken": person.refresh, "user": {"id": person.id}}


@async_test
async def test_a_use_that_cannot_be_noted_spoils_nothing(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is answered as written, and what was read as read: the note is ours, not theirs."""

    async def fails(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        server.clock.pass_(2 * MINUTE)
        monkeypatch.setattr(store.sessions, "touch", fails)
        document = await person.document(vault)
        assert (await person("GET", f"/vaults/{vault['uid']}/documents/{document['uid']}")).status_code == 200
        assert (await person("GET", "/auth/me")).status_code == 200
