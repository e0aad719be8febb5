"""The secrets of one-time codes at rest: sealed under a secret outside of the database, which may change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.servers.internals import context_of
from tests.kit.servers.populated_database import rows_of
from tests.security.code_owner import Owner, assert_refused, enrolled
from tests.security.conftest import Nodes
from tests.security.fixtures import Stage

OLD, NEW, OWN = (f"the {name} secret, which has 32 bytes or more" for name in ("old", "new", "own"))


async def key_ids(where: str) -> set[str]:
    """The keys under which secrets are sealed."""
    return {row[2] for row in (await rows_of(where))["one_time_codes"]}


def on(owner: Owner, stage: Stage) -> Owner:
    """The owner at another node."""
    return Owner(stage, owner.account, owner.secret, owner.recovery_codes)


async def logs_in(owner: Owner) -> bool:
    """Whether a code opens a session."""
    return (await owner.finish(await owner.ticket(), owner.next_code())).status == 200


@async_test
async def test_the_database_does_not_show_the_secret(nodes: Nodes, where: str) -> None:
    """Nor a recovery code, nor a ticket: whoever reads it can make no code."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        ticket = await owner.ticket()
        text = str(await rows_of(where))
        assert owner.account.id in text
        for secret in (owner.secret, ticket, *owner.recovery_codes):
            assert secret not in text
            assert secret.replace("-", "") not in text


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a new JWT_SECRET": ({"jwt_secret": OLD}, {"jwt_secret": NEW, "jwt_secret_previous": OLD}),
    "a new JWT_SECRET after a leak": ({"jwt_secret": OLD}, {"jwt_secret": NEW, "second_factor_secret_previous": OLD}),
    "a secret of its own": ({"jwt_secret": OLD}, {"jwt_secret": OLD, "second_factor_secret": OWN}),
    "another of its own": (
        {"jwt_secret": OLD, "second_factor_secret": OWN},
        {"jwt_secret": OLD, "second_factor_secret": NEW, "second_factor_secret_previous": OWN},
    ),
    "no more of its own": (
        {"jwt_secret": OLD, "second_factor_secret": OWN},
        {"jwt_secret": OLD, "second_factor_secret_previous": OWN},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@async_test
async def test_a_changed_secret_seals_anew(nodes: Nodes, where: str, change: str) -> None:
    """Codes count before and after; then nothing is left that needs the secret of before."""
    before, during = CHANGES[change]
    after = {name: value for name, value in during.items() if not name.endswith("_previous")}
    async with nodes(before, during, after) as (one, two, three):
        owners = [await enrolled(one, f"person{number}") for number in range(3)]
        first = await key_ids(where)
        assert await logs_in(on(owners[0], two)), "also before anything is sealed anew"
        await two.app.app.reseal()
        second = await key_ids(where)
        assert len(first | second) == 2
        for owner in owners:
            assert await logs_in(on(owner, three))


@async_test
async def test_many_secrets_are_sealed_in_steps(nodes: Nodes, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, those of enrolments that have begun included, however they fall on the steps."""
    monkeypatch.setattr("strongroom.actions.second_factors.RESEALED_AT_ONCE", 2)
    async with nodes({"jwt_secret": OLD}, {"jwt_secret": NEW, "jwt_secret_previous": OLD}) as (one, two):
        for number in range(3):
            owner = await enrolled(one, f"person{number}")
            body = {"currentPassword": "correct horse", "secondFactor": owner.next_code()}
            assert (await owner.send("POST", "/auth/second-factor/totp", body)).status == 201
        await two.app.app.reseal()
        sealed = (await rows_of(where))["one_time_codes"]
        assert len(sealed) == 6
        assert {row[2] for row in sealed} == {context_of(two.app).secret_box.key_id}


@async_test
async def test_a_lost_secret_is_told_and_recovery_codes_still_count(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right code gets a sentence and counts as no guess; the log says what to do, and names no secret."""
    async with nodes({"jwt_secret": OLD}, {"jwt_secret": NEW}) as (one, two):
        owner = on(await enrolled(one), two)
        said: list[tuple[str, str]] = []
        monkeypatch.setattr(context_of(two.app).log, "say", lambda level, text: said.append((level, text)))
        await two.app.app.reseal()
        [(level, text)] = said
        assert level == "error"
        assert "SECOND_FACTOR_SECRET_PREVIOUS" in text
        assert "strongroom users reset-second-factor" in text
        assert OLD not in json.dumps(said)
        ticket = await owner.ticket()
        for _ in range(12):
            answer = await owner.finish(ticket, owner.code())
            assert_refused(answer, "unavailable", 503)
            assert "recovery code" in answer.json()["error"]["message"]
        assert (await owner.finish(await owner.ticket(), {"recoveryCode": owner.recovery_codes[0]})).status == 200
