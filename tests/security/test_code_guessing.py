"""Guessing one-time codes: ten wrong ones, then 429, from however many addresses and on however many nodes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from strongroom.actions import admin
from strongroom.rules import FAILURE_WINDOW
from strongroom.store.postgres import transaction as on_postgres
from strongroom.store.sqlite import transaction as on_sqlite
from tests.kit.asynchronous import async_test
from tests.kit.people.api_user import PASSWORD as LONG_PASSWORD
from tests.kit.people.api_user import ApiUser
from tests.kit.people.one_time_codes import code, wrong_code
from tests.kit.servers.internals import database_of
from tests.kit.servers.process import STRONGROOM, Server, fresh_address
from tests.security.code_owner import CONFIRM, PROOF, TOTP, assert_refused, enrolled, log_of
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD
from tests.security.request_times import ATTEMPTS, MARGIN, PAIRS, quick


@async_test
async def test_after_ten_wrong_codes_none_is_checked(nodes: Nodes) -> None:
    """From ten addresses, on two nodes, at login and in a session: then 429, for the right code too, for a while."""
    async with nodes({"jwt_access_expiry": "1d"}, {}) as (one, two):
        owner = await enrolled(one)
        for number in range(5):
            assert_refused(
                await owner.finish(await owner.ticket(), owner.wrong(), (one, two)[number % 2]), "invalid_second_factor"
            )
            body = {**PROOF, "newPassword": PASSWORD, "secondFactor": owner.wrong()}
            assert_refused(await owner.send("PUT", "/auth/password", body), "invalid_second_factor")
        right = owner.next_code()
        for stage in (one, two):
            answer = await owner.finish(await owner.ticket(), right, stage)
            assert_refused(answer, "rate_limited", 429)
            assert 0 < int(answer.header("retry-after")) <= FAILURE_WINDOW // 1000
        answer = await owner.send("PUT", "/auth/password", {**PROOF, "newPassword": PASSWORD, "secondFactor": right})
        assert_refused(answer, "rate_limited", 429)
        assert (await log_of(owner))["second_factor_failed"] == 10
        assert (await owner.finish(await owner.ticket(), {"recoveryCode": owner.recovery_codes[0]}, two)).status == 200
        assert_refused(await owner.finish(await owner.ticket(), right), "rate_limited", 429)
        one.clock.pass_(FAILURE_WINDOW)
        assert (await owner.finish(await owner.ticket(), owner.code())).status == 200


@async_test
async def test_guessing_at_the_same_time_gives_no_more_guesses(nodes: Nodes) -> None:
    """Thirty at once over two nodes: ten are checked."""
    async with nodes({}, {}) as stages:
        owner = await enrolled(stages[0])
        ticket = await owner.ticket()
        guesses = [owner.finish(ticket, owner.wrong(), stages[number % 2]) for number in range(30)]
        assert Counter(answer.status for answer in await asyncio.gather(*guesses)) == {401: 10, 429: 20}
        assert (await log_of(owner))["second_factor_failed"] == 10


@async_test
async def test_a_right_password_does_not_clear_wrong_codes_and_a_right_code_does(nodes: Nodes) -> None:
    """Whoever has the password cannot guess for ever; whoever mistypes now and then is not shut out."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        for _ in range(9):
            assert_refused(await owner.finish(await owner.ticket(), owner.wrong()), "invalid_second_factor")
        assert (await owner.finish(await owner.ticket(), owner.next_code())).status == 200
        for _ in range(10):
            assert_refused(await owner.finish(await owner.ticket(), owner.wrong()), "invalid_second_factor")
        assert_refused(await owner.finish(await owner.ticket(), owner.next_code()), "rate_limited", 429)


@async_test
async def test_the_codes_of_one_account_do_not_count_for_another(nodes: Nodes) -> None:
    """Except for their address, over all accounts; and an operator clears both."""
    async with nodes() as (stage,):
        ann, bob = await enrolled(stage), await enrolled(stage, "bob")
        for _ in range(10):
            assert_refused(
                await ann.finish(await ann.ticket(), ann.wrong(), address="192.0.2.9"), "invalid_second_factor"
            )
        assert (await bob.finish(await bob.ticket(), bob.next_code(), address="192.0.2.9")).status == 200
        for _ in range(90):
            body = {"ticket": "srt_" + "A" * 43, "secondFactor": {"code": "123456"}}
            answer = await stage.send("POST", "/auth/email/login/second", None, body, address="192.0.2.9")
            assert_refused(answer, "invalid_ticket")
        assert_refused(await bob.finish(await bob.ticket(), bob.next_code(), address="192.0.2.9"), "rate_limited", 429)
        assert (await bob.finish(await bob.ticket(), bob.code(), address="192.0.2.10")).status == 200
        assert_refused(await ann.finish(await ann.ticket(), ann.code(), address="192.0.2.10"), "rate_limited", 429)
        assert await database_of(stage.app).write(admin.reset_throttle, ann.account.email, None) == 10
        assert (await ann.finish(await ann.ticket(), ann.code(), address="192.0.2.10")).status == 200


@async_test
async def test_wrong_recovery_codes_count_for_their_address(nodes: Nodes) -> None:
    """As wrong API keys do: they cannot be guessed, and a right one passes."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        ticket, wrong = await owner.ticket(), {"recoveryCode": "0000-0000-0000-0000"}
        for _ in range(100):
            assert_refused(await owner.finish(ticket, wrong, address="192.0.2.9"), "invalid_second_factor")
        assert_refused(await owner.finish(ticket, wrong, address="192.0.2.9"), "rate_limited", 429)
        right = {"recoveryCode": owner.recovery_codes[0]}
        assert (await owner.finish(ticket, right, address="192.0.2.9")).status == 200


@async_test
async def test_the_code_that_confirms_cannot_be_guessed_either(nodes: Nodes) -> None:
    """A stolen access token does not get the recovery codes of an enrolment that its owner has begun."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        secret = (await stage.send("POST", TOTP, ann.access, PROOF)).json()["secret"]
        wrong = {"code": wrong_code(secret, stage.clock.now)}
        for _ in range(10):
            assert_refused(await stage.send("POST", CONFIRM, ann.access, wrong), "invalid_second_factor")
        right = {"code": code(secret, stage.clock.now)}
        assert_refused(await stage.send("POST", CONFIRM, ann.access, right), "rate_limited", 429)


@async_test
async def test_a_login_without_a_second_factor_costs_no_further_statement(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as before there were second factors, and none of them reads their tables."""
    run: list[str] = []

    def counted(module: Any, name: str) -> None:
        real = getattr(module.Tx, name)

        async def call(tx: Any, *args: Any, **parameters: Any) -> Any:
            run.append(next(one.sqlite for one in args if hasattr(one, "sqlite")))
            return await real(tx, *args, **parameters)

        monkeypatch.setattr(module.Tx, name, call)

    async with nodes() as (stage,):
        ann = await stage.register("ann")
        for module in (on_sqlite, on_postgres):
            for name in ("one", "all", "value", "run"):
                counted(module, name)
        await stage.log_in(ann)
        assert len(run) == STATEMENTS
        assert not [sql for sql in run if "one_time_codes" in sql or "recovery_codes" in sql or "login_tickets" in sql]


STATEMENTS = 21  # of a login, before there were second factors


def apart(server: Server, person: ApiUser, secret: str, attempt: int) -> dict[str, float]:
    """Wrong passwords and wrong codes in turn; how far their quickest tenths are from each other.

    In a session, and at login, where a wrong password is compared with a right one that gets a ticket.
    """
    ids: dict[str, list[str]] = {kind: [] for kind in ("password", "code", "login", "ticket")}
    for number in range(PAIRS):
        if number % 9 == 0:  # before the tenth wrong code
            forget(server.settings["DB_PATH"])
        now = int(person.http.get("/health").json()["timestamp"])
        change = {"newPassword": "another password", "currentPassword": LONG_PASSWORD}
        factor = {"secondFactor": {"code": wrong_code(secret, now)}}
        login = {"email": person.email, "password": LONG_PASSWORD}
        turns: list[tuple[str, str, str, Any]] = [
            ("password", "PUT", "/auth/password", {**change, **factor, "currentPassword": "a wrong guess"}),
            ("code", "PUT", "/auth/password", {**change, **factor}),
            ("login", "POST", "/auth/email/login", {**login, "password": "a wrong guess"}),
            ("ticket", "POST", "/auth/email/login", login),
        ]
        for kind, method, path, body in turns if number % 2 else reversed(turns):
            name = f"{kind}-{attempt}-{number}"
            with server.connect(person.access, address=fresh_address()) as http:
                answer = http.request(method, path, json=body, headers={"x-request-id": name})
            assert answer.status_code == 401, answer.text
            ids[kind].append(name)
    times = {kind: quick(server, names) for kind, names in ids.items()}
    pairs = {"session": ("password", "code"), "login": ("login", "ticket")}
    return {name: abs(times[a] - times[b]) / max(times[a], times[b]) for name, (a, b) in pairs.items()}


def forget(path: str) -> None:
    """Clear the failures that are counted."""
    import apsw

    connection = apsw.Connection(path)
    connection.set_busy_timeout(10_000)
    connection.execute("DELETE FROM failures")
    connection.close()


@pytest.mark.alone
def test_a_wrong_code_takes_as_long_as_a_wrong_password(tmp_path: Path) -> None:
    """The quickest tenths of interleaved requests lie within a few per cent, in a session and at login."""
    server = Server(tmp_path, LOG_LEVEL="debug")
    server.program = STRONGROOM  # at the cost of production
    try:
        person = ApiUser.register(server.start())
        proof = {"currentPassword": LONG_PASSWORD}
        secret = person.http.post(TOTP, json=proof).json()["secret"]
        now = int(person.http.get("/health").json()["timestamp"])
        assert person.http.post(CONFIRM, json={"code": code(secret, now)}).status_code == 201
        found = []
        for attempt in range(ATTEMPTS):
            found.append(apart(server, person, secret, attempt))
            print(json.dumps(found[-1]))  # noqa: T201 - the figures, for who writes the page
            if max(found[-1].values()) <= MARGIN:
                return
        for kind in ("session", "login"):
            assert min(one[kind] for one in found) <= MARGIN, found
    finally:
        server.abandon()


@async_test
async def test_a_used_code_is_a_wrong_one(nodes: Nodes) -> None:
    """At login and in a session, on two nodes: each attempt is in the log, and after ten there are no more."""
    async with nodes({"jwt_access_expiry": "1d"}, {}) as (one, two):
        owner = await enrolled(one)
        used = owner.next_code()
        assert (await owner.finish(await owner.ticket(), used)).status == 200
        for _ in range(5):
            assert_refused(await owner.finish(await owner.ticket(), used, two), "invalid_second_factor")
            body = {**PROOF, "newPassword": PASSWORD, "secondFactor": used}
            assert_refused(await owner.send("PUT", "/auth/password", body), "invalid_second_factor")
        assert (await log_of(owner))["second_factor_failed"] == 10
        assert_refused(await owner.finish(await owner.ticket(), owner.next_code()), "rate_limited", 429)
