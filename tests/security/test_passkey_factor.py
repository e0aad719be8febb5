"""A passkey as the second factor beside the password: at login with a ticket, and where the account itself changes."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from strongroom.actions import admin
from strongroom.rules import FAILURES_PER_ACCOUNT
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good, refused
from tests.kit.people.keyrings import keyring
from tests.kit.people.one_time_codes import code, wrong_code
from tests.kit.people.passkeys import (
    BY_PASSWORD,
    ORIGIN,
    PASSWORD,
    add_passkey,
    log_in,
    login_options,
    newest_events,
    proof_by,
    second_factor,
)
from tests.kit.people.person import Person
from tests.kit.people.soft_authenticator import SoftPasskey
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import database_of

SETTINGS = {"public_url": ORIGIN}
STEP = 30_000


async def ticket_of(server: InProcessServer, person: Person) -> str:
    """The ticket that a right password gives."""
    details = refused(await server.login(person.email), 401, "second_factor_required")["details"]
    assert "passkey" in details["methods"]
    return str(details["ticket"])


async def finish(server: InProcessServer, ticket: str, credential: Any) -> httpx2.Response:
    body = {"ticket": ticket, "secondFactor": {"passkey": credential}}
    return await server.http.post("/auth/email/login/second", json=body)


@async_test
async def test_a_login_is_finished_with_a_passkey(open_server: OpenServer) -> None:
    """After the password, with options that name the account's passkeys. Each ticket and each challenge counts once."""
    async with open_server(**SETTINGS) as one, open_server(**SETTINGS) as two:
        person = await one.person()
        passkey, added = await add_passkey(person)
        assert len(added["recoveryCodes"]) == 10
        details = refused(await one.login(person.email), 401, "second_factor_required")["details"]
        assert details["methods"] == ["recovery_code", "passkey"]
        options = await login_options(two.http, details["ticket"])
        assert options["allowCredentials"] == [{"id": passkey.credential_id, "type": "public-key"}]
        credential = passkey.assertion(options, ORIGIN)
        session = good(await finish(two, details["ticket"], credential))
        assert good(await person("GET", "/auth/me", bearer=session["accessToken"]))["user"]["id"] == person.id
        ticket = await ticket_of(one, person)
        refused(await finish(one, ticket, credential), 401, "invalid_second_factor")
        again = passkey.assertion(await login_options(one.http, ticket), ORIGIN)
        good(await finish(one, ticket, again))
        refused(await one.http.post("/auth/passkeys/login/options", json={"ticket": ticket}), 401, "invalid_ticket")


@async_test
async def test_one_assertion_finishes_one_login(open_server: OpenServer) -> None:
    """Sent to two nodes at once, with two tickets, it opens one session."""
    async with open_server(**SETTINGS) as one, open_server(**SETTINGS) as two:
        person = await one.person()
        passkey, _ = await add_passkey(person)
        tickets = [await ticket_of(one, person) for _ in range(2)]
        credential = passkey.assertion(await login_options(one.http, tickets[0]), ORIGIN)
        answers = await asyncio.gather(finish(one, tickets[0], credential), finish(two, tickets[1], credential))
        assert sorted(answer.status_code for answer in answers) == [200, 401]


@async_test
async def test_a_wrong_passkey_finishes_no_login(open_server: OpenServer) -> None:
    """Damaged, of somebody else, for another challenge; the owner's log has each. The ticket stays good."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        (of_ann, _), (of_bob, _) = await add_passkey(ann), await add_passkey(bob)
        ticket = await ticket_of(server, ann)
        of_the_other = await login_options(server.http, await ticket_of(server, bob))
        plain = await login_options(server.http)
        for credential in (
            of_ann.assertion(await login_options(server.http, ticket), ORIGIN, signature=b"no"),
            of_ann.assertion(await login_options(server.http, ticket), ORIGIN, origin="https://evil.example.com"),
            of_bob.assertion(await login_options(server.http, ticket), ORIGIN),
            of_bob.assertion(of_the_other, ORIGIN),
            of_ann.assertion(of_the_other, ORIGIN),
            of_ann.assertion(plain, ORIGIN),
        ):
            server.clock.pass_(1_000)
            refused(await finish(server, ticket, credential), 401, "invalid_second_factor")
            assert await newest_events(ann) == {"second_factor_failed"}
        good(await finish(server, ticket, of_ann.assertion(await login_options(server.http, ticket), ORIGIN)))


def changes(person: Person) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Everything for which the password is asked again, and its body without the second factor."""
    return {
        "password": ("PUT", "/auth/password", {**BY_PASSWORD, "newPassword": "another horse"}),
        "first keyring": ("PUT", "/auth/keyring", {**BY_PASSWORD, "keyring": keyring(person.id), "version": 0}),
        "one-time codes": ("POST", "/auth/second-factor/totp", BY_PASSWORD),
        "recovery codes": ("POST", "/auth/second-factor/recovery-codes", BY_PASSWORD),
        "passkey": ("POST", "/auth/passkeys/registration/options", BY_PASSWORD),
        "deletion": ("DELETE", "/auth/me", {"password": PASSWORD}),
    }


@pytest.mark.parametrize(
    "change", ["password", "first keyring", "one-time codes", "recovery codes", "passkey", "deletion"]
)
@async_test
async def test_a_passkey_proves_a_change_of_the_account(open_server: OpenServer, change: str) -> None:
    """Beside the password: without it, with a wrong one, with one of before, nothing changes."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        method, path, body = changes(person)[change]
        refused(await person(method, path, body), 401, "second_factor_required")
        wrong = await second_factor(person, passkey, signature=b"no")
        refused(await person(method, path, {**body, "secondFactor": wrong}), 401, "invalid_second_factor")
        right = await second_factor(person, passkey)
        mistaken = {**body, "secondFactor": right}
        mistaken |= {name: "wrong horse" for name in ("currentPassword", "password") if name in body}
        refused(await person(method, path, mistaken), 401, "invalid_credentials")
        answer = await person(method, path, {**body, "secondFactor": right})
        assert answer.status_code in {200, 201}, answer.text
        again = await person(method, path, {**body, "secondFactor": right})
        assert again.status_code == 401, again.text


@async_test
async def test_a_fallen_counter_proves_nothing(open_server: OpenServer) -> None:
    """As at a login, and the log says why."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        good(await log_in(server.http, passkey, counter=50))
        server.clock.pass_(1_000)
        factor = await second_factor(person, passkey, counter=50)
        body = {**BY_PASSWORD, "secondFactor": factor}
        refused(await person("POST", "/auth/second-factor/recovery-codes", body), 401, "invalid_second_factor")
        assert await newest_events(person) == {"passkey_counter_fell"}


@async_test
async def test_each_factor_stands_by_itself(open_server: OpenServer) -> None:
    """While one of codes and passkeys is left, a password alone is not enough; recovery codes go with the last."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, added = await add_passkey(person)
        body = {**BY_PASSWORD, "secondFactor": await second_factor(person, passkey)}
        secret = good(await person("POST", "/auth/second-factor/totp", body), 201)["secret"]
        first = {"code": code(secret, server.clock.now)}
        good(await person("POST", "/auth/second-factor/totp/confirm", first), 201)
        details = refused(await server.login(person.email), 401, "second_factor_required")["details"]
        assert details["methods"] == ["totp", "recovery_code", "passkey"]
        body = {**BY_PASSWORD, "secondFactor": await second_factor(person, passkey)}
        good(await person("DELETE", "/auth/second-factor/totp", body))
        assert refused(await server.login(person.email), 401, "second_factor_required")
        assert good(await person("GET", "/auth/second-factor"))["recoveryCodes"] == 10
        body = {**BY_PASSWORD, "secondFactor": await second_factor(person, passkey)}
        good(await person("DELETE", f"/auth/passkeys/{added['passkey']['uid']}", body))
        good(await server.login(person.email))
        shown = good(await person("GET", "/auth/second-factor"))
        assert shown == {"totpSince": None, "passkeys": 0, "recoveryCodes": 0}


@async_test
async def test_a_lost_key_is_deleted_with_a_recovery_code(open_server: OpenServer) -> None:
    """The password and one of the ten codes do what the passkey would."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        _, added = await add_passkey(person)
        first, second, *_ = added["recoveryCodes"]
        body = {"ticket": await ticket_of(server, person), "secondFactor": {"recoveryCode": first}}
        good(await server.http.post("/auth/email/login/second", json=body))
        body = {**BY_PASSWORD, "secondFactor": {"recoveryCode": second}}
        good(await person("DELETE", f"/auth/passkeys/{added['passkey']['uid']}", body))
        good(await server.login(person.email))


@async_test
async def test_an_operator_resets_passkeys_too(open_server: OpenServer) -> None:
    """Who has lost the key and the recovery codes gets in with the password again; what was begun is void."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        begun = await proof_by(person, passkey)
        server.clock.pass_(1_000)
        assert await database_of(server.app).write(admin.reset_second_factor, person.id)
        good(await server.login(person.email))
        refused(await log_in(server.http, passkey), 401, "invalid_passkey")
        refused(await person("POST", "/auth/passkeys/registration/options", {"passkey": begun}), 401, "invalid_passkey")
        assert good(await person("GET", "/auth/passkeys"))["passkeys"] == []
        assert not await database_of(server.app).write(admin.reset_second_factor, person.id)
        assert (await add_passkey(person))[1]["recoveryCodes"]


@async_test
async def test_a_passkey_is_good_while_codes_are_throttled(open_server: OpenServer) -> None:
    """Whoever guesses codes does not lock the owner out of a passkey."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        body = {**BY_PASSWORD, "secondFactor": await second_factor(person, passkey)}
        secret = good(await person("POST", "/auth/second-factor/totp", body), 201)["secret"]
        good(await person("POST", "/auth/second-factor/totp/confirm", {"code": code(secret, server.clock.now)}), 201)
        server.clock.pass_(STEP)
        ticket = await ticket_of(server, person)
        for number in range(FAILURES_PER_ACCOUNT + 1):
            wrong = {"ticket": ticket, "secondFactor": {"code": wrong_code(secret, server.clock.now)}}
            answer = await server.http.post("/auth/email/login/second", json=wrong)
            assert answer.status_code == (401 if number < FAILURES_PER_ACCOUNT else 429)
        good(await finish(server, ticket, passkey.assertion(await login_options(server.http, ticket), ORIGIN)))


@async_test
async def test_where_passkeys_are_unavailable_the_reason_is_said(open_server: OpenServer) -> None:
    """On a server without PUBLIC_URL a passkey is no second factor, and a recovery code still is."""
    async with open_server(**SETTINGS) as one, open_server() as two:
        person = await one.person()
        passkey, added = await add_passkey(person)
        session = {"accessToken": person.access, "refreshToken": "", "user": {"id": person.id}}
        there = Person(two.http, person.email, session)
        factor = await second_factor(person, passkey)
        body = {**BY_PASSWORD, "secondFactor": factor}
        error = refused(await there("POST", "/auth/second-factor/totp", body), 401, "invalid_second_factor")
        assert "PUBLIC_URL" in error["message"]
        body = {**BY_PASSWORD, "secondFactor": {"recoveryCode": added["recoveryCodes"][0]}}
        good(await there("POST", "/auth/second-factor/totp", body), 201)


@pytest.mark.parametrize("beside", [{"code": "123456"}, {"recoveryCode": "7K3M-Q0ZD-V9XA-41TE"}])
@async_test
async def test_one_factor_at_a_time(open_server: OpenServer, beside: dict[str, str]) -> None:
    """A passkey beside a code is a bad request, and uses neither up."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        factor = await second_factor(person, passkey)
        body = {**BY_PASSWORD, "secondFactor": {**factor, **beside}}
        refused(await person("POST", "/auth/second-factor/recovery-codes", body), 400, "validation_error")
        body = {**BY_PASSWORD, "secondFactor": factor}
        good(await person("POST", "/auth/second-factor/recovery-codes", body), 201)


@async_test
async def test_a_passkey_that_is_gone_proves_nothing(open_server: OpenServer) -> None:
    """Its challenge was asked for while it was there."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, added = await add_passkey(person)
        other, _ = await add_passkey(person, {"passkey": await proof_by(person, passkey)})
        ticket = await ticket_of(server, person)
        options = await login_options(server.http, ticket)
        proof = {"passkey": await proof_by(person, other)}
        good(await person("DELETE", f"/auth/passkeys/{added['passkey']['uid']}", proof))
        refused(await finish(server, ticket, passkey.assertion(options, ORIGIN)), 401, "invalid_ticket")
        ticket = await ticket_of(server, person)
        options = await login_options(server.http, ticket)
        assert [one["id"] for one in options["allowCredentials"]] == [other.credential_id]
        refused(await finish(server, ticket, passkey.assertion(options, ORIGIN)), 401, "invalid_second_factor")
        stranger = SoftPasskey(passkey.rp_id, passkey.user_handle)
        options = await login_options(server.http, ticket)
        refused(await finish(server, ticket, stranger.assertion(options, ORIGIN)), 401, "invalid_second_factor")
