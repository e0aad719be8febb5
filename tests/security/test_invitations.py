"""An invitation lets one account register, tells nobody anything else, and is used exactly if that account exists."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from strongroom import store
from strongroom.actions import sessions
from strongroom.actions.retention import Sweep
from strongroom.rules import DAY, FAILURES_PER_ADDRESS, INVITATION_DAYS, MINUTE, TAKEN_EMAILS
from tests.kit.asynchronous import async_test
from tests.kit.people.invitations import invite
from tests.kit.servers.internals import database_of
from tests.kit.servers.populated_database import rows_of
from tests.security.asgi_request import Answer, fresh_address
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Stage

CLOSED = {"signups": "closed"}
GOOD = "SRI-00000-11111-22222-33333-44444"  # of the right form, and never made
HERE = "192.0.2.66"


async def signed_up(stage: Stage, email: str, code: str | None, address: str | None = None, **more: Any) -> Answer:
    body = {"email": email, "password": PASSWORD, "invitation": code, **more}
    return await stage.send("POST", "/auth/email/register", None, body, address=address or fresh_address())


async def used_by(where: str) -> list[str | None]:
    """Which account has used each invitation."""
    return [row[8] for row in (await rows_of(where))["invitations"]]


async def accounts(where: str) -> set[str]:
    return {row[1] for row in (await rows_of(where))["users"]}


@async_test
async def test_one_registration_where_sign_ups_are_closed(nodes: Nodes, where: str) -> None:
    """However it is typed. The account's log says so, and the second who comes with it gets nothing."""
    async with nodes(CLOSED) as (stage,):
        for name, typed in (("ann", str), ("bob", str.lower), ("eve", lambda code: code.replace("-", " \t"))):
            code = await invite(database_of(stage.app))
            answer = await signed_up(stage, f"{name}@example.com", typed(code))
            assert answer.status == 201, answer
            told = (await stage.send("GET", "/auth/events", answer.json()["accessToken"])).json()["events"]
            assert [event["type"] for event in told] == ["registered_by_invitation"]
            for skew in (0, -MINUTE):  # also at a node whose clock is behind
                stage.clock.pass_(skew)
                again = await signed_up(stage, "second@example.com", code)
                assert (again.status, again.code) == (403, "invalid_invitation")
        assert await accounts(where) == {"ann@example.com", "bob@example.com", "eve@example.com"}
        assert (await signed_up(stage, "new@example.com", None)).code == "signups_closed"


@async_test
async def test_only_a_hash_is_stored(nodes: Nodes, where: str) -> None:
    """Neither the code nor its letters and digits are in any row."""
    async with nodes(CLOSED) as (stage,):
        code = await invite(database_of(stage.app))
        bare = code.replace("-", "")
        stored = repr(await rows_of(where))
        assert hashlib.sha256(bare.encode()).hexdigest() in stored
        assert not [part for part in (code, bare, bare[3:], code[4:]) if part in stored]


@async_test
async def test_every_reason_has_one_answer(nodes: Nodes) -> None:
    """Mistyped, unknown, used, expired, revoked, for another email, tried too often: the same to the byte.

    An email that has an account is answered as one that has none: nobody asks about emails without a valid code.
    """
    async with nodes(CLOSED) as (stage,):
        database = database_of(stage.app)
        revoked = await invite(database)
        [one] = await database.read(store.invitations.page, "", 10)
        assert await database.write(store.invitations.revoke, one.uid)
        used, expired = [await invite(database, lifetime=MINUTE) for _ in range(2)]
        assert (await signed_up(stage, "ann@example.com", used)).status == 201
        stage.clock.pass_(MINUTE)
        bound, blocked = await invite(database, "bob@example.com"), await invite(database)
        for _ in range(TAKEN_EMAILS):
            assert (await signed_up(stage, "ann@example.com", blocked)).code == "email_already_exists"
        answers = {
            await signed_up(stage, email, code)
            for email in ("ann@example.com", "new@example.com")
            for code in ("", "SRI", "no code", GOOD, GOOD[:-1], used, expired, revoked, bound, blocked)
        }
        (answer,) = answers
        assert (answer.status, answer.code) == (403, "invalid_invitation")
        assert (await signed_up(stage, " Bob@Example.com", bound)).status == 201


@async_test
async def test_it_is_good_until_it_expires(nodes: Nodes) -> None:
    """To the millisecond."""
    async with nodes(CLOSED) as (stage,):
        first, second = [await invite(database_of(stage.app), lifetime=MINUTE) for _ in range(2)]
        stage.clock.pass_(MINUTE - 1)
        assert (await signed_up(stage, "ann@example.com", first)).status == 201
        stage.clock.pass_(1)
        assert (await signed_up(stage, "bob@example.com", second)).status == 403


@async_test
async def test_of_many_at_once_one_registers(nodes: Nodes, where: str) -> None:
    """On two nodes, with one code and different emails, and with one email too: one account, and its id in the row."""
    async with nodes(CLOSED, CLOSED) as both:
        for round_ in range(5):
            code = await invite(database_of(both[0].app))
            emails = [f"p{round_}-{number}@example.com" for number in range(4)] * 2
            answers = await asyncio.gather(
                *(signed_up(both[number % 2], email, code) for number, email in enumerate(emails))
            )
            made = [answer.json()["user"]["id"] for answer in answers if answer.status == 201]
            assert len(made) == 1
            assert {answer.status for answer in answers} <= {201, 403, 409}
            assert len(await accounts(where)) == round_ + 1
            assert made[0] in await used_by(where)


@async_test
async def test_what_fails_in_the_middle_has_not_happened(
    nodes: Nodes, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last step of a registration fails there is no account, and the code can be used."""

    async def fail(*_: object) -> None:
        raise RuntimeError

    async with nodes(CLOSED) as (stage,):
        code = await invite(database_of(stage.app))
        with monkeypatch.context() as planted:
            planted.setattr(sessions, "open_", fail)
            assert (await signed_up(stage, "ann@example.com", code)).status == 500
        assert await accounts(where) == set()
        assert await used_by(where) == [None]
        assert (await signed_up(stage, "ann@example.com", code)).status == 201
        assert None not in await used_by(where)


@async_test
async def test_a_code_is_no_oracle_for_emails(nodes: Nodes, where: str) -> None:
    """Its holder hears of ten emails that they have an account, however many are asked at once; then it is refused."""
    async with nodes({}, CLOSED, CLOSED) as (open_, *closed):
        taken = [(await open_.register("ann")).email for _ in range(30)]
        code = await invite(database_of(open_.app))
        answers = await asyncio.gather(
            *(signed_up(closed[number % 2], email, code) for number, email in enumerate(taken))
        )
        codes = [answer.code for answer in answers]
        assert codes.count("email_already_exists") == TAKEN_EMAILS
        assert codes.count("invalid_invitation") == len(taken) - TAKEN_EMAILS
        assert (await signed_up(closed[0], "new@example.com", code)).status == 403
        assert await used_by(where) == [None]


@async_test
async def test_guesses_count_like_those_at_other_secrets(nodes: Nodes) -> None:
    """A hundred, whatever their form; then 429, also for passwords. A valid code passes, and counts as no failure."""
    async with nodes(CLOSED) as (stage,):
        codes = [await invite(database_of(stage.app)) for _ in range(2)]
        for number in range(FAILURES_PER_ADDRESS):
            answer = await signed_up(stage, "ann@example.com", (GOOD, "nonsense")[number % 2], HERE)
            assert answer.code == "invalid_invitation"
            if number == 0:
                assert (await signed_up(stage, "ann@example.com", codes[0], HERE)).status == 201
        for email in ("ann@example.com", "new@example.com"):
            answer = await signed_up(stage, email, GOOD, HERE)
            assert (answer.status, answer.code, answer.header("retry-after")) == (429, "rate_limited", "900")
        login = {"email": "ann@example.com", "password": PASSWORD}
        assert (await stage.send("POST", "/auth/email/login", None, login, address=HERE)).status == 429
        assert (await signed_up(stage, "bob@example.com", codes[1], HERE)).status == 201


@async_test
async def test_registrations_by_invitation_are_bounded_too(nodes: Nodes) -> None:
    """By SIGNUP_LIMIT; a refused code is no registration, and one that met the limit can be used elsewhere."""
    async with nodes({**CLOSED, "signup_limit": 1}) as (stage,):
        first, second = [await invite(database_of(stage.app)) for _ in range(2)]
        assert (await signed_up(stage, "ann@example.com", GOOD, HERE)).status == 403
        assert (await signed_up(stage, "ann@example.com", None, HERE)).status == 403
        assert (await signed_up(stage, "ann@example.com", first, HERE)).status == 201
        assert (await signed_up(stage, "bob@example.com", second, HERE)).status == 429
        assert (await signed_up(stage, "bob@example.com", second)).status == 201


@async_test
async def test_one_that_is_given_counts_where_none_is_needed(nodes: Nodes, where: str) -> None:
    """On an open server a valid code is used up, and one that is not is refused; without one all is as ever."""
    async with nodes({}) as (stage,):
        code = await invite(database_of(stage.app))
        assert (await signed_up(stage, "ann@example.com", code)).status == 201
        assert None not in await used_by(where)
        for wrong in (code, GOOD, ""):
            assert (await signed_up(stage, "bob@example.com", wrong)).code == "invalid_invitation"
        assert (await signed_up(stage, "bob@example.com", None)).status == 201


@async_test
async def test_the_form_of_a_registration_is_checked_first(nodes: Nodes) -> None:
    """What is wrong is named, so that an invited person can mend it; the code is not touched."""
    async with nodes(CLOSED) as (stage,):
        code = await invite(database_of(stage.app))
        for body, field in (
            ({"password": "short"}, "password"),
            ({"email": "nobody"}, "email"),
            ({"invitation": 7}, "invitation"),
            ({"invitation": "S" * 101}, "invitation"),
        ):
            answer = await signed_up(stage, "ann@example.com", code, **body) if "email" not in body else None
            if answer is None:
                answer = await signed_up(stage, str(body["email"]), code)
            assert answer.status == 400
            assert list(answer.json()["error"]["details"]["fields"]) == [field]
        assert (await signed_up(stage, "ann@example.com", code)).status == 201


@async_test
async def test_used_and_expired_ones_are_deleted_in_time(nodes: Nodes, where: str) -> None:
    """Thirty days after that; one that can be used stays, however old."""
    async with nodes(CLOSED) as (stage,):
        database = database_of(stage.app)
        lifetimes = (300 * DAY, MINUTE, 300 * DAY)
        used, _, _ = [await invite(database, lifetime=lifetime) for lifetime in lifetimes]
        assert (await signed_up(stage, "ann@example.com", used)).status == 201
        for time, left in ((INVITATION_DAYS * DAY - 1, 3), (1, 2), (MINUTE - 1, 2), (1, 1), (200 * DAY, 1)):
            stage.clock.pass_(time)
            await database.write(sessions.purge_some, 90, Sweep())
            assert len(await used_by(where)) == left
        assert await used_by(where) == [None]
