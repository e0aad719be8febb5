"""A session or API key that has ended is refused on the next request, on the node where it ended and on the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.servers.internals import context_of
from tests.security.conftest import Nodes
from tests.security.endings import ENDINGS, PASSWORDS, Cast
from tests.security.fixtures import PASSWORD, Account, Stage


async def is_in(stage: Stage, bearer: str) -> bool:
    """Whether a bearer is let in, to read and to write, and as good or as bad on every road."""
    asked = [
        await stage.send("GET", "/auth/me", bearer),
        await stage.send("GET", "/vault", bearer),
        await stage.send("POST", "/vault", bearer, {}),
    ]
    statuses = [answer.status for answer in asked]
    assert statuses in ([200, 200, 400], [401, 401, 401]), asked
    return statuses[0] == 200


async def refreshes(stage: Stage, account: Account) -> bool:
    answer = await stage.send("POST", "/auth/refresh", None, {"refreshToken": account.refresh})
    assert (answer.status, answer.code) in {(200, ""), (401, "invalid_refresh_token")}, answer
    return answer.status == 200


@pytest.mark.parametrize("how", ENDINGS)
@async_test
async def test_the_next_request_is_refused_on_both_nodes(nodes: Nodes, how: str) -> None:
    """And those whom it does not concern go on, with their refresh tokens too."""
    async with nodes({}, {}) as (one, two):
        here = await one.register("ann")
        cast = Cast(here, await two.log_in(here), await one.key(here), await one.register("bob"))
        bearers = {
            "here": cast.here.access,
            "there": cast.there.access,
            "key": cast.key["key"],
            "other": cast.other.access,
        }
        for stage in (one, two):  # whatever a node may remember, it remembers now
            assert all([await is_in(stage, bearer) for bearer in bearers.values()])
        await ENDINGS[how].act(one, cast)
        for stage in (two, one):
            let_in = {name for name, bearer in bearers.items() if await is_in(stage, bearer)}
            assert let_in == bearers.keys() - set(ENDINGS[how].out.split())
        for stage in (two, one):
            for name in ("here", "other"):
                assert await refreshes(stage, getattr(cast, name)) is (name not in ENDINGS[how].out.split())
        if "there" in ENDINGS[how].out.split():
            assert not await refreshes(two, cast.there)
            assert not await refreshes(one, cast.there)


@async_test
async def test_the_old_password_opens_nothing_after_a_change(nodes: Nodes) -> None:
    """Logins with the old password that race the change leave no session, on whichever node they are."""
    async with nodes({}, {}) as (one, two):
        ann = await one.register("ann")
        body = {"email": ann.email, "password": PASSWORD}
        racing = [stage.send("POST", "/auth/email/login", None, body) for stage in (one, two) * 4]
        changing = one.send("PUT", "/auth/password", ann.access, PASSWORDS)
        *answers, changed = await asyncio.gather(*racing[:4], changing, *racing[4:])
        answers.append(changed)
        opened = [answer.json()["accessToken"] for answer in answers if "accessToken" in answer.json()]
        assert not any([await is_in(stage, token) for stage in (one, two) for token in opened])
        assert await is_in(two, ann.access)
        assert (await two.send("POST", "/auth/email/login", None, body)).status == 401
        body["password"] = PASSWORDS["newPassword"]
        assert (await two.send("POST", "/auth/email/login", None, body)).status == 200


@async_test
async def test_a_login_cannot_outrun_a_change_of_password(nodes: Nodes) -> None:
    """The password is changed between the check of the old one and the session: no session is opened."""
    async with nodes({}, {}) as (one, two):
        ann = await one.register("ann")
        matches = context_of(one.app).password_matches

        async def and_change(*args: Any) -> bool:
            good: bool = await matches(*args)
            assert (await two.send("PUT", "/auth/password", ann.access, PASSWORDS)).status == 200
            return good

        context_of(one.app).password_matches = and_change  # type: ignore[method-assign, assignment]
        answer = await one.send("POST", "/auth/email/login", None, {"email": ann.email, "password": PASSWORD})
        assert answer.status == 401
        assert len((await two.send("GET", "/auth/sessions", ann.access)).json()["sessions"]) == 1


@async_test
async def test_a_deleted_account_cannot_be_used_by_what_is_under_way(nodes: Nodes) -> None:
    """Writes that race the deletion leave nothing behind, and no fault."""
    async with nodes({}, {}) as (one, two):
        ann = await one.register("ann")
        vault = await one.vault(ann)
        body = {"collection": "c", "data": "AAAA"}
        writes = [two.send("POST", f"/vaults/{vault}/documents", ann.access, body) for _ in range(6)]
        deleting = one.send("DELETE", "/auth/me", ann.access, {"password": PASSWORD})
        answers = await asyncio.gather(*writes[:3], deleting, *writes[3:])
        assert {answer.status for answer in answers} <= {200, 201, 401, 404}
        assert answers[3].status == 200
        assert not await is_in(two, ann.access)
        again = await two.send("POST", "/auth/email/register", None, {"email": ann.email, "password": PASSWORD})
        assert again.status == 201
        assert (await two.send("GET", "/vault", again.json()["accessToken"])).json() == {"vaults": []}


@async_test
async def test_deleting_a_session_twice(nodes: Nodes) -> None:
    """The second time it is not there any more."""
    async with nodes() as (one,):
        ann = await one.register("ann")
        there = await one.log_in(ann)
        path = f"/auth/sessions/{there.session}"
        assert (await one.send("DELETE", path, ann.access)).status == 200
        assert (await one.send("DELETE", path, ann.access)).code == "session_not_found"
