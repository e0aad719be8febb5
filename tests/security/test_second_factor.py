"""A second factor: one-time codes and recovery codes, at login and where the account itself changes."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from strongroom.actions import admin
from strongroom.rules import ENROLMENT_LIFETIME, MINUTE, SESSIONS_PER_ACCOUNT, TICKET_LIFETIME, TICKETS_PER_ACCOUNT
from tests.kit.asynchronous import async_test
from tests.kit.people.keyrings import keyring
from tests.kit.people.one_time_codes import code, wrong_code
from tests.kit.servers.internals import database_of
from tests.security.asgi_request import Answer
from tests.security.code_owner import CONFIRM, PROOF, STEP, TOTP, Owner, assert_refused, enrolled, log_of
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD


@async_test
async def test_enrolment_needs_the_password_and_a_first_code(nodes: Nodes) -> None:
    """Until the first code is given nothing changes; from then on a password alone opens no session."""
    async with nodes({"public_url": "https://vault.example.com"}) as (stage,):
        ann = await stage.register("ann")
        assert_refused(
            await stage.send("POST", TOTP, ann.access, {"currentPassword": "wrong horse"}), "invalid_credentials"
        )
        assert_refused(await stage.send("POST", TOTP, ann.access, {}), "validation_error", 400)
        assert_refused(
            await stage.send("POST", CONFIRM, ann.access, {"code": "123456"}), "second_factor_not_found", 404
        )
        begun = (await stage.send("POST", TOTP, ann.access, PROOF)).json()
        uri = urlsplit(begun["uri"])
        assert (uri.scheme, uri.netloc, unquote(uri.path)) == (
            "otpauth",
            "totp",
            f"/vault.example.com:{ann.email}",
        )
        assert parse_qs(uri.query) == {
            "secret": [begun["secret"]],
            "issuer": ["vault.example.com"],
            "algorithm": ["SHA1"],
            "digits": ["6"],
            "period": ["30"],
        }
        await stage.log_in(ann)
        nothing = {"totpSince": None, "passkeys": 0, "recoveryCodes": 0}
        assert (await stage.send("GET", "/auth/second-factor", ann.access)).json() == nothing
        wrong = {"code": wrong_code(begun["secret"], stage.clock.now)}
        assert_refused(await stage.send("POST", CONFIRM, ann.access, wrong), "invalid_second_factor")
        right = {"code": code(begun["secret"], stage.clock.now)}
        codes = (await stage.send("POST", CONFIRM, ann.access, right)).json()["recoveryCodes"]
        assert len(set(codes)) == 10
        assert all(len(text.replace("-", "")) == 16 for text in codes)
        shown = (await stage.send("GET", "/auth/second-factor", ann.access)).json()
        assert shown == {"totpSince": stage.clock.now, "passkeys": 0, "recoveryCodes": 10}
        owner = Owner(stage, ann, begun["secret"], codes)
        assert assert_refused(await owner.log_in(), "second_factor_required")["methods"] == ["totp", "recovery_code"]
        assert (await owner.log_in(deviceName="x")).json()["error"]["details"].keys() == {
            "ticket",
            "expiresAt",
            "methods",
        }
        assert await log_of(owner) == {
            "registered": 1,
            "login": 1,
            "login_failed": 1,
            "second_factor_failed": 1,
            "second_factor_enabled": 1,
        }


@async_test
async def test_an_enrolment_that_nobody_confirms_expires(nodes: Nodes) -> None:
    """After an hour it begins anew; the newest begun is the one that is confirmed."""
    async with nodes({"jwt_access_expiry": "1d"}) as (stage,):
        ann = await stage.register("ann")
        first, second = [(await stage.send("POST", TOTP, ann.access, PROOF)).json()["secret"] for _ in range(2)]
        old = {"code": code(first, stage.clock.now)}
        assert_refused(await stage.send("POST", CONFIRM, ann.access, old), "invalid_second_factor")
        stage.clock.pass_(ENROLMENT_LIFETIME)
        late = {"code": code(second, stage.clock.now)}
        assert_refused(await stage.send("POST", CONFIRM, ann.access, late), "second_factor_not_found", 404)


@async_test
async def test_a_login_takes_a_ticket_and_a_code(nodes: Nodes) -> None:
    """The ticket comes after a right password only, and opens one session, which has the name of the device."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        wrong = {"email": owner.account.email, "password": "wrong horse"}
        assert "details" not in (await stage.send("POST", "/auth/email/login", None, wrong)).json()["error"]
        details = assert_refused(await owner.log_in(deviceName="a phone"), "second_factor_required")
        assert details["expiresAt"] == stage.clock.now + TICKET_LIFETIME
        ticket = details["ticket"]
        assert_refused(await stage.send("GET", "/auth/me", ticket), "unauthorized")
        assert_refused(
            await stage.send("POST", "/auth/refresh", None, {"refreshToken": ticket}), "invalid_refresh_token"
        )
        done = await owner.finish(ticket, owner.next_code())
        assert done.status == 200
        assert done.json()["user"] == {"id": owner.account.id, "email": owner.account.email}
        listed = (await stage.send("GET", "/auth/sessions", done.json()["accessToken"])).json()["sessions"]
        assert [one["deviceName"] for one in listed if one["current"]] == ["a phone"]
        assert_refused(await owner.finish(ticket, owner.next_code()), "invalid_ticket")
        again = await stage.send("POST", "/auth/refresh", None, {"refreshToken": done.json()["refreshToken"]})
        assert again.status == 200
        assert await log_of(owner) == {"registered": 1, "second_factor_enabled": 1, "login_failed": 1, "login": 1}


@async_test
async def test_a_code_counts_once_on_all_nodes_and_after_a_restart(nodes: Nodes) -> None:
    """Neither again, nor an earlier one after it; nor does the one with which the enrolment was confirmed."""
    async with nodes({}, {}) as (one, two):
        owner = await enrolled(one)
        assert_refused(await owner.finish(await owner.ticket(), owner.code()), "invalid_second_factor")
        used = owner.next_code()
        assert (await owner.finish(await owner.ticket(), used)).status == 200
        assert_refused(await owner.finish(await owner.ticket(), used, two), "invalid_second_factor")
        assert_refused(await owner.finish(await owner.ticket(), owner.code(-1), two), "invalid_second_factor")
        assert_refused(await owner.send("DELETE", TOTP, {**PROOF, "secondFactor": used}), "invalid_second_factor")
    async with nodes() as (later,):
        owner.stage = later
        assert_refused(await owner.finish(await owner.ticket(), used), "invalid_second_factor")
        assert (await owner.finish(await owner.ticket(), owner.next_code())).status == 200


@pytest.mark.parametrize("steps", range(-3, 4))
@async_test
async def test_a_clock_may_be_one_step_off(nodes: Nodes, steps: int) -> None:
    """A code of the step before or after counts, and none beyond."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        stage.clock.pass_(10 * STEP)
        answer = await owner.finish(await owner.ticket(), owner.code(steps))
        assert answer.status == (200 if abs(steps) <= 1 else 401)


@async_test
async def test_of_many_requests_with_one_code_one_succeeds(nodes: Nodes) -> None:
    """At the same time, with tickets of their own, on two nodes."""
    async with nodes({}, {}) as stages:
        owner = await enrolled(stages[0])
        tickets = [await owner.ticket() for _ in range(6)]
        factor = owner.next_code()
        attempts = [owner.finish(ticket, factor, stages[at % 2]) for at, ticket in enumerate(tickets)]
        answers = await asyncio.gather(*attempts)
        assert sorted(answer.status for answer in answers) == [200] + [401] * 5
        assert {answer.code for answer in answers if answer.status == 401} == {"invalid_second_factor"}


@async_test
async def test_of_many_requests_with_one_ticket_one_succeeds(nodes: Nodes) -> None:
    """At the same time, with a recovery code each."""
    async with nodes({}, {}) as stages:
        owner = await enrolled(stages[0])
        ticket = await owner.ticket()
        codes = [{"recoveryCode": text} for text in owner.recovery_codes[:4]]
        answers = await asyncio.gather(*[owner.finish(ticket, one, stages[at % 2]) for at, one in enumerate(codes)])
        assert sorted(answer.status for answer in answers) == [200] + [401] * 3
        left = (await owner.send("GET", "/auth/second-factor")).json()["recoveryCodes"]
        assert left == 9, "a refused request uses no recovery code up"


@async_test
async def test_a_ticket_is_bound(nodes: Nodes) -> None:
    """To its account, to the password that was verified, to five minutes, to a second factor that is still required."""
    async with nodes({}, {}) as (one, two):
        ann, bob = await enrolled(one), await enrolled(one, "bob")
        assert_refused(await ann.finish(await bob.ticket(), ann.next_code()), "invalid_second_factor")
        assert_refused(await ann.finish(await ann.ticket() + "x", ann.code()), "invalid_ticket")
        assert_refused(await ann.finish("srt_" + "A" * 43, ann.code()), "invalid_ticket")
        assert_refused(await ann.finish(ann.account.access, ann.code()), "invalid_ticket")
        late = await ann.ticket()
        one.clock.pass_(TICKET_LIFETIME)
        assert_refused(await ann.finish(late, ann.code()), "invalid_ticket")
        early = await ann.ticket()
        one.clock.pass_(TICKET_LIFETIME - 1)
        assert (await ann.finish(early, ann.code(), two)).status == 200
        before = await ann.ticket()
        change = {**PROOF, "newPassword": PASSWORD, "secondFactor": ann.next_code()}
        assert (await ann.send("PUT", "/auth/password", change)).status == 200
        assert_refused(await ann.finish(before, ann.next_code()), "invalid_ticket")
        unused = await ann.ticket()
        assert (await ann.send("DELETE", TOTP, {**PROOF, "secondFactor": ann.next_code()})).status == 200
        assert_refused(await ann.finish(unused, ann.next_code()), "invalid_ticket")


@async_test
async def test_of_too_many_tickets_the_newest_is_good(nodes: Nodes) -> None:
    """Whoever asks for many at once, in the same millisecond, can use the last of them; the session stays as well."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        for _ in range(TICKETS_PER_ACCOUNT + 10):
            ticket = await owner.ticket()
        assert (await owner.finish(ticket, owner.next_code())).status == 200
        bob = await stage.register("bob")
        for _ in range(SESSIONS_PER_ACCOUNT + 10):
            access = (await stage.log_in(bob)).access
            assert (await stage.send("GET", "/auth/me", access)).status == 200


@async_test
async def test_a_wrong_code_does_not_use_the_ticket_up(nodes: Nodes) -> None:
    """Somebody who mistypes the code does not type the password again."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        ticket = await owner.ticket()
        assert_refused(await owner.finish(ticket, owner.wrong()), "invalid_second_factor")
        spaced = owner.next_code()["code"]
        assert (await owner.finish(ticket, {"code": f"{spaced[:3]} {spaced[3:]}"})).status == 200


@async_test
async def test_a_disabled_account_gets_no_ticket_and_no_session(nodes: Nodes) -> None:
    """Not with a ticket from before either."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        ticket = await owner.ticket()
        assert await database_of(stage.app).write(admin.disable, owner.account.id)
        assert_refused(await owner.log_in(), "account_disabled", 403)
        assert_refused(await owner.finish(ticket, owner.next_code()), "account_disabled", 403)


@async_test
async def test_a_recovery_code_counts_once(nodes: Nodes) -> None:
    """However it is spelled; new ones replace them all, and the log tells of both."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        first, second, third, *_ = owner.recovery_codes
        typed = {"recoveryCode": f" {first.lower().replace('-', ' ').replace('0', 'o').replace('1', 'l')}"}
        assert (await owner.finish(await owner.ticket(), typed)).status == 200
        assert_refused(await owner.finish(await owner.ticket(), {"recoveryCode": first}), "invalid_second_factor")
        assert (await owner.send("GET", "/auth/second-factor")).json()["recoveryCodes"] == 9
        body = {**PROOF, "secondFactor": {"recoveryCode": second}}
        fresh = (await owner.send("POST", "/auth/second-factor/recovery-codes", body)).json()["recoveryCodes"]
        assert not set(fresh) & set(owner.recovery_codes)
        assert_refused(await owner.finish(await owner.ticket(), {"recoveryCode": third}), "invalid_second_factor")
        assert (await owner.finish(await owner.ticket(), {"recoveryCode": fresh[0]})).status == 200
        bob = await enrolled(stage, "bob")
        assert_refused(
            await owner.finish(await owner.ticket(), {"recoveryCode": bob.recovery_codes[0]}), "invalid_second_factor"
        )
        kinds = await log_of(owner)
        assert (kinds["recovery_code_used"], kinds["recovery_codes_replaced"]) == (3, 1)


def changes(owner: Owner) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Every request that must ask for the second factor again."""
    ring = keyring(owner.account.id)
    return {
        "password": ("PUT", "/auth/password", {**PROOF, "newPassword": "another horse"}),
        "first keyring": ("PUT", "/auth/keyring", {**PROOF, "keyring": ring, "version": 0}),
        "descriptor": ("PUT", "/auth/keyring", {**PROOF, "keyring": ring, "version": 0, "kdf": {"salt": "x"}}),
        "other one-time codes": ("POST", TOTP, PROOF),
        "no one-time codes": ("DELETE", TOTP, PROOF),
        "recovery codes": ("POST", "/auth/second-factor/recovery-codes", PROOF),
        "deletion": ("DELETE", "/auth/me", {"password": PASSWORD}),
    }


CHANGES = (
    "password",
    "first keyring",
    "descriptor",
    "other one-time codes",
    "no one-time codes",
    "recovery codes",
    "deletion",
)


@pytest.mark.parametrize("change", CHANGES)
@async_test
async def test_what_opens_the_account_changes_with_the_second_factor_only(nodes: Nodes, change: str) -> None:
    """Without one, with a wrong one and with a wrong password nothing changes; a right code counts once there too."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        assert changes(owner).keys() == set(CHANGES)
        method, path, body = changes(owner)[change]
        details = assert_refused(await owner.send(method, path, body), "second_factor_required")
        assert details == {"methods": ["totp", "recovery_code"]}
        wrong = {**body, "secondFactor": owner.wrong()}
        assert_refused(await owner.send(method, path, wrong), "invalid_second_factor")
        right = {**body, "secondFactor": owner.next_code()}
        unproven = {**right, "currentPassword": "wrong horse", "password": "wrong horse"}
        assert_refused(await owner.send(method, path, unproven), "invalid_credentials")
        assert (await owner.finish(await owner.ticket(), {"recoveryCode": owner.recovery_codes[0]})).status == 200
        done = await owner.send(method, path, right)
        assert done.status in {200, 201}, done
        if change != "deletion":
            body = {**PROOF, "secondFactor": right["secondFactor"]}
            answer = await owner.send("POST", TOTP, body)
            assert answer.status == (201 if change == "no one-time codes" else 401)


@async_test
async def test_new_slots_of_a_keyring_need_the_second_factor(nodes: Nodes) -> None:
    """With the password alone they are refused; what is not a slot changes with neither."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        ring = {"keyring": keyring(owner.account.id), "version": 0}
        first = {**PROOF, **ring, "secondFactor": owner.next_code()}
        assert (await owner.send("PUT", "/auth/keyring", first)).status == 200
        other = {"keyring": keyring(owner.account.id, slots="of another"), "version": 1}
        assert_refused(await owner.send("PUT", "/auth/keyring", {**PROOF, **other}), "second_factor_required")
        same = {"keyring": keyring(owner.account.id, body="other"), "version": 1}
        assert (await owner.send("PUT", "/auth/keyring", same)).status == 200


@async_test
async def test_keys_come_in_with_the_second_factor_only(nodes: Nodes) -> None:
    """An import of a file that has keys asks for it beside the password."""
    async with nodes() as (stage,):
        bob = await stage.register("bob", keyring=keyring("an account"))
        file = (await stage.send("GET", "/auth/export", bob.access)).body
        owner = await enrolled(stage)

        async def brought(factor: str) -> Answer:
            line = f'{{"kind":"password","currentPassword":"{PASSWORD}"{factor}}}\n'.encode()
            return await owner.send("POST", "/auth/import", line + file, content_type="application/x-ndjson")

        assert_refused(await brought(""), "second_factor_required")
        assert_refused(await brought(f',"secondFactor":{{"code":"{owner.wrong()["code"]}"}}'), "invalid_second_factor")
        assert_refused(await brought(',"secondFactor":{"code":5}'), "validation_error", 400)
        done = await brought(f',"secondFactor":{{"code":"{owner.next_code()["code"]}"}}')
        assert (done.status, done.json()["keyrings"]) == (200, 1)


@async_test
async def test_a_login_and_a_proof_cannot_outrun_an_enrolment(nodes: Nodes) -> None:
    """What was verified with the password alone, before the second factor was enrolled, opens nothing after it."""
    from strongroom.actions import accounts, sessions
    from strongroom.errors import InvalidCredentials
    from strongroom.model import Actor, Origin, Proof
    from strongroom.wire.requests import ChangePassword
    from tests.kit.servers.internals import context_of

    async with nodes() as (stage,):
        context, origin = context_of(stage.app), Origin("192.0.2.1", "tests")
        ann = await stage.register("ann")
        before = await context.db.read(accounts.for_login, ann.email)
        assert before is not None
        assert before.password_hash is not None
        begun = (await stage.send("POST", TOTP, ann.access, PROOF)).json()
        body = {"code": code(begun["secret"], stage.clock.now)}
        assert (await stage.send("POST", CONFIRM, ann.access, body)).status == 201
        pair = context.token_issuer.pair(ann.id, "01890000-0000-7000-8000-00000000dead", stage.clock.now)
        with pytest.raises(InvalidCredentials):
            await context.db.write(sessions.open_, ann.id, before.password_hash, pair, origin)
        proof, wanted = Proof(before.password_hash, None), ChangePassword(PASSWORD, "another horse")
        actor = Actor(ann.id, ann.session)
        with pytest.raises(InvalidCredentials):
            await context.db.write(accounts.change_password, actor, proof, before.password_hash, origin, wanted)


@async_test
async def test_without_one_time_codes_a_password_is_enough_again(nodes: Nodes) -> None:
    """The recovery codes are gone with them; codes can be enrolled again, and count then."""
    async with nodes() as (stage,):
        owner = await enrolled(stage)
        assert_refused(
            await stage.send("DELETE", TOTP, (await stage.register("bob")).access, PROOF),
            "second_factor_not_found",
            404,
        )
        assert (await owner.send("DELETE", TOTP, {**PROOF, "secondFactor": owner.next_code()})).status == 200
        assert (await owner.send("GET", "/auth/second-factor")).json() == {
            "totpSince": None,
            "passkeys": 0,
            "recoveryCodes": 0,
        }
        await stage.log_in(owner.account)
        assert_refused(
            await owner.send("POST", "/auth/second-factor/recovery-codes", PROOF), "second_factor_not_found", 404
        )
        begun = (await owner.send("POST", TOTP, PROOF)).json()
        again = Owner(stage, owner.account, begun["secret"], [])
        assert (await owner.send("POST", CONFIRM, again.code())).status == 201
        assert_refused(await owner.finish(await again.ticket(), owner.next_code()), "invalid_second_factor")
        assert (await owner.finish(await again.ticket(), again.code())).status == 200


@async_test
async def test_sessions_keys_and_passwords_live_on(nodes: Nodes) -> None:
    """Enrolling ends no session and no API key; the password changes as before, and the factor stays required."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        key, other = await stage.key(ann), await stage.log_in(ann)
        begun = (await stage.send("POST", TOTP, ann.access, PROOF)).json()
        owner = Owner(stage, ann, begun["secret"], [])
        assert (await owner.send("POST", CONFIRM, owner.code())).status == 201
        for bearer in (ann.access, other.access, key["key"]):
            assert (await stage.send("GET", "/auth/me", bearer)).status == 200
        assert (await stage.send("POST", "/auth/refresh", None, {"refreshToken": other.refresh})).status == 200
        change = {**PROOF, "newPassword": "another horse", "secondFactor": owner.next_code()}
        assert (await owner.send("PUT", "/auth/password", change)).status == 200
        assert_refused(await owner.log_in(), "invalid_credentials")
        assert_refused(await owner.log_in(password="another horse"), "second_factor_required")


@pytest.mark.parametrize(
    "factor",
    [
        {},
        None,
        [],
        "123456",
        {"code": "123456", "recoveryCode": "A"},
        {"code": 123456},
        {"code": "12345"},
        {"code": "1234567"},
        {"code": "\N{ARABIC-INDIC DIGIT ONE}" * 6},
        {"code": "123456\n"},
        {"code": ""},
        {"recoveryCode": "A" * 101},
        {"recoveryCode": None, "code": None},
        {"unknown": "x"},
    ],
    ids=str,
)
@async_test
async def test_what_is_no_second_factor_is_a_bad_request(nodes: Nodes, factor: Any) -> None:
    """It names the field, and counts as no guess."""
    async with nodes() as (stage,):
        answer = await stage.send(
            "POST", "/auth/email/login/second", None, {"ticket": "srt_" + "A" * 43, "secondFactor": factor}
        )
        assert list(assert_refused(answer, "validation_error", 400)["fields"]) == ["secondFactor"]


@async_test
async def test_what_has_expired_is_purged(nodes: Nodes, where: str) -> None:
    """Tickets, and enrolments that nobody confirmed."""
    from strongroom.actions import sessions
    from strongroom.actions.retention import Sweep
    from tests.kit.servers.populated_database import rows_of

    async with nodes({"jwt_access_expiry": "1d"}) as (stage,):
        owner, bob = await enrolled(stage), await stage.register("bob")
        await stage.send("POST", TOTP, bob.access, PROOF)
        await owner.ticket()
        rows = await rows_of(where)
        assert (len(rows["one_time_codes"]), len(rows["login_tickets"])) == (2, 1)
        stage.clock.pass_(ENROLMENT_LIFETIME + MINUTE)
        await database_of(stage.app).write_long(sessions.purge_some, 90, Sweep())
        rows = await rows_of(where)
        assert (len(rows["one_time_codes"]), len(rows["login_tickets"])) == (1, 0)


@async_test
async def test_an_operator_opens_an_account_whose_second_factors_are_lost(nodes: Nodes, where: str) -> None:
    """After a salvage that found the account and not its codes: until then nobody gets in with the password alone."""
    from tests.kit.servers.populated_database import alter

    async with nodes() as (stage,):
        owner = await enrolled(stage)
        for table in ("one_time_codes", "recovery_codes"):
            await alter(where, f"DELETE FROM {table}")
        details = assert_refused(await owner.log_in(), "second_factor_required")
        assert details["methods"] == []
        assert_refused(await owner.finish(details["ticket"], owner.next_code()), "invalid_second_factor")
        assert await database_of(stage.app).write(admin.reset_second_factor, owner.account.id)
        await stage.log_in(owner.account)
