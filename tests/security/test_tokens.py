"""Forged and malformed tokens: none is taken, none upsets the server, none harms the session that it imitates."""

from __future__ import annotations

import pytest

from strongroom.rules import MINUTE
from tests.contract.jwt import resigned
from tests.kit.asynchronous import async_test
from tests.kit.servers.secret import SECRET
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Account, Stage
from tests.security.forgeries import corpus

pytestmark = pytest.mark.parametrize("where", ["sqlite"], indirect=True)
GOOD = {"jwt_secret": SECRET}


async def refresh(stage: Stage, token: str) -> tuple[int, str]:
    answer = await stage.send("POST", "/auth/refresh", None, {"refreshToken": token})
    return answer.status, answer.code


async def unharmed(stage: Stage, ann: Account) -> None:
    assert (await stage.send("GET", "/auth/me", ann.access)).status == 200
    assert await refresh(stage, ann.refresh) == (200, "")


@async_test
async def test_the_forger_can_sign(nodes: Nodes) -> None:
    """Signed anew with nothing changed, both tokens are good: what is refused below is what was done to them."""
    async with nodes(GOOD) as (stage,):
        ann = await stage.register("ann")
        assert (await stage.send("GET", "/auth/me", resigned(ann.access))).status == 200
        assert await refresh(stage, resigned(ann.refresh)) == (200, "")
        assert len(corpus(ann.access, ann.refresh)) >= 500


@async_test
async def test_no_forged_access_token_is_taken(nodes: Nodes) -> None:
    """As a bearer, each gets 401 and the same answer as no token at all."""
    async with nodes(GOOD) as (stage,):
        ann = await stage.register("ann")
        nobody = await stage.send("GET", "/auth/me")
        assert (nobody.status, nobody.code) == (401, "unauthorized")
        taken = {}
        for name, forged in corpus(ann.access, ann.refresh).items():
            if forged.strip() == ann.access and forged.isascii():
                continue  # white space around a header's value is not part of it
            answer = await stage.send("GET", "/auth/me", forged)
            if answer != nobody:
                taken[name] = answer
        assert taken == {}
        await unharmed(stage, ann)


@pytest.mark.parametrize("sign", ["\u00a0", "\u0085"])
@async_test
async def test_a_byte_that_only_looks_like_white_space_is_part_of_the_token(nodes: Nodes, sign: str) -> None:
    """HTTP knows the space and the tab; a no-break space is one more letter, and a token has one spelling."""
    async with nodes(GOOD) as (stage,):
        ann = await stage.register("ann")
        for value in (f"Bearer {sign}{ann.access}", f"Bearer {ann.access}{sign}"):
            answer = await stage.send("GET", "/auth/me", headers=(("authorization", value),))
            assert answer.status == 401


@async_test
async def test_no_forged_refresh_token_is_taken(nodes: Nodes) -> None:
    """In the body, each gets 401; 400 only where the JSON itself is broken text, 413 where it is too long."""
    async with nodes(GOOD) as (stage,):
        ann = await stage.register("ann")
        taken = {}
        for name, forged in corpus(ann.refresh, ann.access).items():
            broken = any("\ud800" <= sign <= "\udfff" for sign in forged)
            expected = (400, "validation_error") if broken else (401, "invalid_refresh_token")
            if len(forged) > 65_536:
                expected = (413, "payload_too_large")
            if (got := await refresh(stage, forged)) != expected:
                taken[name] = got
        for forged in (resigned(ann.refresh, jti="x"), resigned(ann.refresh, jti=ann.session), f" {ann.refresh} "):
            assert await refresh(stage, forged) == (401, "invalid_refresh_token")
        assert taken == {}
        await unharmed(stage, ann)


@async_test
async def test_no_mixture_of_two_peoples_tokens_is_taken(nodes: Nodes) -> None:
    """Neither somebody else's session under one's own name nor the other way round, though the signature fits."""
    async with nodes(GOOD) as (stage,):
        ann, bob = await stage.register("ann"), await stage.register("bob")
        for changes in ({"sub": bob.id}, {"sid": bob.session}):
            assert (await stage.send("GET", "/auth/me", resigned(ann.access, **changes))).status == 401
            assert await refresh(stage, resigned(ann.refresh, **changes)) == (401, "invalid_refresh_token")
        await unharmed(stage, ann)
        await unharmed(stage, bob)


@async_test
async def test_no_token_outlives_its_session_its_account_or_its_time(nodes: Nodes) -> None:
    """Whatever expiry a forger gives it: an ended session is ended."""
    async with nodes(GOOD) as (stage,):
        ended, gone, late = await stage.register("ann"), await stage.register("bob"), await stage.register("carol")
        assert (await stage.send("POST", "/auth/logout", ended.access)).status == 200
        assert (await stage.send("DELETE", "/auth/me", gone.access, {"password": PASSWORD})).status == 200
        for account in (ended, gone):
            for token in (account.access, resigned(account.access, exp=10**11)):
                assert (await stage.send("GET", "/auth/me", token)).status == 401
            for token in (account.refresh, resigned(account.refresh, exp=10**11)):
                assert await refresh(stage, token) == (401, "invalid_refresh_token")
        stage.clock.pass_(15 * MINUTE)
        assert (await stage.send("GET", "/auth/me", late.access)).status == 401
        assert await refresh(stage, late.refresh) == (200, "")


@async_test
async def test_no_answer_echoes_a_token(nodes: Nodes) -> None:
    """A refusal says what is wrong, not what was sent."""
    async with nodes(GOOD) as (stage,):
        ann = await stage.register("ann")
        for name, forged in corpus(ann.access, ann.refresh).items():
            if len(forged) < 16:
                continue
            answer = await stage.send("GET", "/auth/me", forged)
            assert forged.encode("utf-8", "replace")[:40] not in answer.body, name
