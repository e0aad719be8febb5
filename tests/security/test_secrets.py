"""Secrets change without anybody noticing: the one that signs tokens, and the cost of a password's hash."""

from __future__ import annotations

import os

import apsw
import asyncpg
import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from strongroom import credentials
from tests.contract.jwt import verifies
from tests.kit.asynchronous import async_test
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Account, Stage

OLD, NEW = "the secret of last year, 32 bytes long", "the secret of this year, 32 bytes long"


async def works(stage: Stage, account: Account) -> tuple[bool, bool]:
    """Whether an account's access and refresh tokens are taken."""
    me = await stage.send("GET", "/auth/me", account.access)
    again = await stage.send("POST", "/auth/refresh", None, {"refreshToken": account.refresh})
    return me.status == 200, again.status == 200


@async_test
async def test_a_new_secret_logs_nobody_out(nodes: Nodes) -> None:
    """While the previous one is named its tokens are good; new ones are signed with the new one, and outlive it."""
    rotated = {"jwt_secret": NEW, "jwt_secret_previous": OLD}
    async with nodes({"jwt_secret": OLD}, rotated, {"jwt_secret": NEW}) as (before, during, after):
        ann = await before.register("ann")
        assert await works(during, ann) == (True, True)
        assert await works(after, ann) == (False, False)
        answer = await during.send("POST", "/auth/refresh", None, {"refreshToken": ann.refresh})
        moved = Account("ann", ann.email, ann.agent, answer.json() | {"user": {"id": ann.id}})
        for token in (moved.access, moved.refresh):
            assert verifies(token, NEW)
            assert not verifies(token, OLD)
        assert await works(after, moved) == (True, True)
        assert await works(during, moved) == (True, True)
        assert await works(before, moved) == (False, False)


@async_test
async def test_no_previous_secret_is_not_an_empty_one(nodes: Nodes) -> None:
    """A token that is signed with nothing is signed with nothing."""
    from tests.contract.jwt import claims, signed

    async with nodes({"jwt_secret_previous": ""}) as (stage,):
        ann = await stage.register("ann")
        forged = signed(claims(ann.access), secret="")
        assert (await stage.send("GET", "/auth/me", forged)).status == 401


async def stored_hash(where: str, email: str, new: str | None = None) -> str:
    """The password hash in the database; replaced first if there is a new one."""
    if "://" not in where:
        connection = apsw.Connection(where)
        connection.set_busy_timeout(5_000)
        if new is not None:
            connection.execute("UPDATE users SET password_hash = ? WHERE email = ?", (new, email))
        ((found,),) = list(connection.execute("SELECT password_hash FROM users WHERE email = ?", (email,)))
        connection.close()
        return str(found)
    wire = await asyncpg.connect(where)
    try:
        if new is not None:
            await wire.execute("UPDATE users SET password_hash = $1 WHERE email = $2", new, email)
        return str(await wire.fetchval("SELECT password_hash FROM users WHERE email = $1", email))
    finally:
        await wire.close()


@pytest.mark.production_hashing
@pytest.mark.parametrize(("memory", "passes"), [(8_192, 1), (20_480, 3)])
@async_test
async def test_a_hash_of_other_parameters_is_made_anew_at_login(
    nodes: Nodes, where: str, memory: int, passes: int
) -> None:
    """At the first right password, and not at a wrong one; the open sessions stay."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        kdf = Argon2id(salt=os.urandom(16), length=32, iterations=passes, lanes=1, memory_cost=memory)
        weak = kdf.derive_phc_encoded(PASSWORD.encode())
        assert await stored_hash(where, ann.email, weak) == weak
        wrong = await stage.send("POST", "/auth/email/login", None, {"email": ann.email, "password": "wrong horse"})
        assert wrong.code == "invalid_credentials"
        assert await stored_hash(where, ann.email) == weak
        there = await stage.log_in(ann)
        strong = await stored_hash(where, ann.email)
        assert strong.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
        assert not credentials.is_outdated(strong)
        assert credentials.password_matches(PASSWORD, strong)
        await stage.log_in(ann)
        assert await stored_hash(where, ann.email) == strong
        assert [await works(stage, account) for account in (ann, there)] == [(True, True)] * 2


@async_test
async def test_a_weak_hash_serves_every_road(nodes: Nodes, where: str) -> None:
    """A password change and a deletion take it too."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        kdf = Argon2id(salt=os.urandom(16), length=32, iterations=1, lanes=1, memory_cost=8_192)
        await stored_hash(where, ann.email, kdf.derive_phc_encoded(PASSWORD.encode()))
        body = {"currentPassword": PASSWORD, "newPassword": "another horse"}
        assert (await stage.send("PUT", "/auth/password", ann.access, body)).status == 200
        assert not credentials.is_outdated(await stored_hash(where, ann.email))
        assert (await stage.send("DELETE", "/auth/me", ann.access, {"password": "another horse"})).status == 200
