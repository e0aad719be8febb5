"""Refresh tokens over time: what a black box would have to wait for."""

from __future__ import annotations

import pytest

from strongroom import store
from strongroom.rules import MINUTE, REUSE_GRACE
from tests.conftest import House, Open, Person, runs


async def refreshed(person: Person, token: str) -> tuple[int, str]:
    answer = await person.http.post("/auth/refresh", json={"refreshToken": token})
    body = answer.json()
    return answer.status_code, body.get("refreshToken", body.get("error", {}).get("code"))


async def still_in(person: Person) -> bool:
    return (await person("GET", "/auth/me")).status_code == 200


@runs
async def test_a_client_that_never_rotates_is_never_logged_out(house: Open) -> None:
    """The presented token stays good until the one that replaced it is used."""
    async with house() as h:
        person = await h.person()
        for _ in range(20):
            h.clock.pass_(3_600_000)
            assert (await refreshed(person, person.refresh))[0] == 200


@runs
async def test_a_superseded_token_is_refused_at_first_and_ends_the_session_later(house: Open) -> None:
    """Within the grace it is two tabs; after it, it is theft."""
    async with house() as h:
        person = await h.person()
        _, second = await refreshed(person, person.refresh)
        _, third = await refreshed(person, second)
        h.clock.pass_(REUSE_GRACE)
        assert await refreshed(person, person.refresh) == (401, "invalid_refresh_token")
        assert await still_in(person)
        h.clock.pass_(1)
        assert await refreshed(person, person.refresh) == (401, "invalid_refresh_token")
        assert not await still_in(person)
        assert (await refreshed(person, third))[0] == 401


@runs
async def test_the_grace_counts_from_each_tokens_own_end(house: Open) -> None:
    """A token that died long ago gets no new grace because a later one has just died."""
    async with house() as h:
        person = await h.person()
        _, second = await refreshed(person, person.refresh)
        _, third = await refreshed(person, second)
        h.clock.pass_(REUSE_GRACE + 1)
        await refreshed(person, third)
        assert (await refreshed(person, second))[0] == 401
        assert await still_in(person)
        assert (await refreshed(person, person.refresh))[0] == 401
        assert not await still_in(person)


@runs
async def test_siblings_of_one_generation_all_live(house: Open) -> None:
    """Eight tabs refresh at once, and each goes on with what it got."""
    async with house() as h:
        person = await h.person()
        siblings = [(await refreshed(person, person.refresh))[1] for _ in range(8)]
        assert len(set(siblings)) == 8
        assert [(await refreshed(person, sibling))[0] for sibling in siblings] == [200] * 8


@runs
async def test_tokens_expire_to_the_millisecond(house: Open) -> None:
    """No leeway."""
    async with house(jwt_access_expiry="1500ms", jwt_refresh_expiry="3s") as h:
        person = await h.person()
        h.clock.pass_(1_499)
        assert await still_in(person)
        h.clock.pass_(1)
        assert not await still_in(person)
        h.clock.pass_(1_499)
        assert (await refreshed(person, person.refresh))[0] == 200
        h.clock.pass_(1)
        assert (await refreshed(person, person.refresh))[0] == 401


@runs
async def test_one_account_may_have_many_sessions(house: Open) -> None:
    """Logging out of one leaves the other."""
    async with house() as h:
        first = await h.person()
        second = Person(h.http, first.email, (await h.login(first.email)).json())
        assert (await first("POST", "/auth/logout")).json() == {"success": True}
        assert not await still_in(first)
        assert (await refreshed(first, first.refresh))[0] == 401
        assert await still_in(second)


async def _fail(h: House, email: str, times: int) -> list[int]:
    return [(await h.login(email, "wrong password")).status_code for _ in range(times)]


@runs
async def test_the_eleventh_failure_is_refused_until_the_first_is_forgotten(house: Open) -> None:
    """And no lock-out is for ever."""
    async with house() as h:
        person = await h.person()
        assert await _fail(h, person.email, 5) == [401] * 5
        h.clock.pass_(60_000)
        assert await _fail(h, person.email, 5) == [401] * 5
        refused = await h.login(person.email.upper())
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) == 14 * 60
        h.clock.pass_(14 * 60_000 - 1)
        assert (await h.login(person.email)).status_code == 429
        h.clock.pass_(1)
        assert (await h.login(person.email)).status_code == 200
        assert await _fail(h, person.email, 10) == [401] * 10


@runs
async def test_restarts_do_not_forget_failures(house: Open) -> None:
    """The count lies in the database."""
    async with house() as h:
        person = await h.person()
        assert await _fail(h, person.email, 10) == [401] * 10
    async with house() as h:
        assert (await h.login(person.email)).status_code == 429
    async with house(address="10.0.0.9") as h:
        assert (await h.login(person.email)).status_code == 200


@runs
async def test_an_address_is_bounded_over_all_accounts(house: Open) -> None:
    """A hundred failures, whoever they were aimed at; the /64 of IPv6 is one address."""
    async with house(address="2001:db8::1") as h:
        person = await h.person()
        for n in range(10):
            assert await _fail(h, f"stranger{n}@example.com", 10) == [401] * 10
    async with house(address="2001:db8::ffff:1") as h:
        assert (await h.login(person.email)).status_code == 429
        assert await still_in(Person(h.http, person.email, _signed(person)))
    async with house(address="2001:db8:0:1::1") as h:
        assert (await h.login(person.email)).status_code == 200


def _signed(person: Person) -> dict[str, object]:
    return {"accessToken": person.access, "refreshToken": person.refresh, "user": {"id": person.id}}


@runs
async def test_a_use_that_cannot_be_noted_spoils_nothing(house: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is answered as written, and what was read as read: the note is ours, not theirs."""

    async def fails(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    async with house() as h:
        person = await h.person()
        vault = await person.vault()
        h.clock.pass_(2 * MINUTE)
        monkeypatch.setattr(store.sessions, "touch", fails)
        document = await person.document(vault)
        assert (await person("GET", f"/vaults/{vault['uid']}/documents/{document['uid']}")).status_code == 200
        assert (await person("GET", "/auth/me")).status_code == 200
