"""Limits on passwords, logins and registrations, also for concurrent requests."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from strongroom import credentials, rules
from strongroom.actions import invitations, login_throttle
from strongroom.errors import Unavailable
from strongroom.model import Origin
from strongroom.rules import DAY, FAILURE_WINDOW
from strongroom.server.client_address import counted_address
from strongroom.server.fair_queue import Place
from strongroom.server.limits import AttemptGate
from strongroom.store import Tx
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good, refused
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import context_of, database_of
from tests.kit.waiting import until_async

HERE = Place("192.0.2.7", "an account")


def count_checks(server: InProcessServer) -> list[str]:
    """Every password that is checked from now on."""
    room = context_of(server.app)
    real, checked = room.password_matches, []

    async def counting(password: str, phc: str | None, place: Place) -> bool:
        checked.append(password)
        return await real(password, phc, place)

    room.password_matches = counting  # type: ignore[method-assign]
    return checked


def count_hashes(server: InProcessServer) -> list[str]:
    """Every password that is hashed from now on."""
    room = context_of(server.app)
    real, hashed = room.hash_password, []

    async def counting(password: str, place: Place) -> str:
        hashed.append(password)
        return await real(password, place)

    room.hash_password = counting  # type: ignore[method-assign]
    return hashed


@async_test
async def test_a_volley_of_guesses_gets_no_more_tries_than_a_row_of_them(open_server: OpenServer) -> None:
    """Forty at once: ten are checked, thirty are refused."""
    async with open_server() as server:
        person = await server.person()
        checked = count_checks(server)
        answers = await asyncio.gather(*(server.login(person.email, f"guess {n}") for n in range(40)))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [401] * 10 + [429] * 30
        assert len(checked) == 10, "a guess that is not answered must not be checked either"


@async_test
async def test_a_volley_of_right_passwords_all_get_in(open_server: OpenServer) -> None:
    """They are fewer than LOGIN_LIMIT."""
    async with open_server(login_limit=60) as server:
        person = await server.person()
        answers = await asyncio.gather(*(server.login(person.email) for _ in range(24)))
        assert {answer.status_code for answer in answers} == {200}


@async_test
async def test_right_passwords_of_an_account_are_limited(open_server: OpenServer) -> None:
    """Logins and proofs of the password count together, and the next is refused before it is checked."""
    async with open_server(login_limit=3) as server:
        ann, bob = await server.person(), await server.person()
        good(await server.login(ann.email))
        changed = {"currentPassword": "correct horse", "newPassword": "correct horse"}
        good(await ann("PUT", "/auth/password", changed))
        good(await server.login(ann.email))
        checked = count_checks(server)
        refusal = await server.login(ann.email)
        refused(refusal, 429, "rate_limited")
        assert 0 < int(refusal.headers["retry-after"]) <= 900
        refused(await ann("PUT", "/auth/password", changed), 429, "rate_limited")
        assert checked == []
        good(await server.login(bob.email))
        server.clock.pass_(FAILURE_WINDOW)
        good(await server.login(ann.email))


@async_test
async def test_the_limit_of_right_passwords_says_nothing_to_others(open_server: OpenServer) -> None:
    """An address that has not given the password gets the response to a wrong one; the right one is refused."""
    async with open_server(login_limit=1, trusted_proxies="127.0.0.1") as server:
        ann = await server.person()
        good(await server.login(ann.email))
        refused(await server.login(ann.email), 429, "rate_limited")
        elsewhere = {"x-forwarded-for": "192.0.2.9"}
        for password, status, code in (("a guess", 401, "invalid_credentials"), ("correct horse", 429, "rate_limited")):
            body = {"email": ann.email, "password": password}
            refused(await server.http.post("/auth/email/login", json=body, headers=elsewhere), status, code)


@async_test
async def test_registrations_with_one_email_are_hashed_once(open_server: OpenServer) -> None:
    """Of many at once, one gets the account, and the others are refused before they take a place."""
    async with open_server() as server:
        hashed = count_hashes(server)
        body = {"email": "ann@example.com", "password": "correct horse"}
        answers = await asyncio.gather(*(server.http.post("/auth/email/register", json=body) for _ in range(20)))
        assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19
        assert len(hashed) == 1


@async_test
async def test_registrations_with_one_invitation_are_hashed_once(open_server: OpenServer) -> None:
    """Whatever their emails; without an invitation, or with a wrong one, none is."""
    async with open_server(signups="closed") as server:
        hashed = count_hashes(server)
        code, code_hash = credentials.new_invitation()
        await database_of(server.app).write(invitations.create, code_hash, None, None, DAY)

        async def register(number: int, **more: str) -> int:
            body = {"email": f"ann{number}@example.com", "password": "correct horse", **more}
            return (await server.http.post("/auth/email/register", json=body)).status_code

        statuses = await asyncio.gather(
            *(register(number, invitation=code) for number in range(10)),
            *(register(number) for number in range(10, 20)),
            *(register(number, invitation="wrong") for number in range(20, 30)),
        )
        assert sorted(statuses) == [201] + [403] * 29
        assert len(hashed) == 1


@async_test
async def test_the_gate_forgets_whoever_has_left() -> None:
    """A gate that remembered every name would be a leak."""
    gate = AttemptGate()

    async def attempt() -> None:
        async with gate.attempt("name", room):
            await asyncio.sleep(0)

    async def room() -> int:
        return 2

    tasks = [asyncio.create_task(attempt()) for _ in range(10)]
    await asyncio.sleep(0)
    tasks[5].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (gate._inside, gate._waiting) == ({}, {})


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("not an address", "unknown"),
    ],
)
def test_whose_failures_count_together(host: str, counted: str) -> None:
    """An IPv6 customer has a whole /64."""
    assert counted_address(host) == counted


@async_test
async def test_so_many_wait_for_a_password_to_be_hashed_and_no_more(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more than may wait is told to come back; once they are served, the next one waits again."""
    monkeypatch.setattr("strongroom.server.passwords.MOST_WAITING", 3)
    released = threading.Event()
    async with open_server() as server:
        pool = context_of(server.app).passwords
        waiting = [asyncio.create_task(pool.run(HERE, lambda _: released.wait(20), "")) for _ in range(3)]
        await until_async(lambda: pool.waiting == 3)
        with pytest.raises(Unavailable):
            await pool.run(HERE, lambda _: None, "")
        released.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await pool.run(HERE, lambda _: "hashed", "") == "hashed"


class CountingTx:
    """A transaction that notes each statement."""

    def __init__(self, tx: Tx) -> None:
        self.statements: list[object] = []
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._tx, name)
        if name not in {"one", "all", "few", "value", "run"}:
            return real

        def noting(*args: Any, **parameters: Any) -> Any:
            self.statements.append(args[-1])
            return real(*args, **parameters)

        return noting


@async_test
async def test_a_failed_login_runs_the_same_statements_with_and_without_an_account(open_server: OpenServer) -> None:
    """In the same order; only the account has it in its log."""
    async with open_server() as server:
        ann = await server.person()

        async def statements(user_id: str | None) -> list[object]:
            async def record(tx: Tx) -> list[object]:
                counting = CountingTx(tx)
                where = "192.0.2.7", login_throttle.account_label(f"{user_id}"), user_id, Origin("192.0.2.7", "")
                await login_throttle.record_failed_login(counting, *where)
                return counting.statements

            return await database_of(server.app).write(record)

        known = await statements(ann.id)
        assert len(known) > 3
        assert known == await statements(None)
        events = good(await ann("GET", "/auth/events"))["events"]
        assert [event["type"] for event in events].count("login_failed") == 1


@async_test
@pytest.mark.parametrize("sign", ["\u200b", "\u202e", "\u2066", "\u00ad", "\ufeff"])
async def test_no_new_email_has_invisible_characters(open_server: OpenServer, sign: str) -> None:
    """It would look like another; an account that has one still logs in."""
    async with open_server() as server:
        email = f"a{sign}nn@example.com"
        body = {"email": email, "password": "correct horse"}
        fault = refused(await server.http.post("/auth/email/register", json=body), 400, "validation_error")
        assert list(fault["details"]["fields"]) == ["email"]
        with pytest.MonkeyPatch.context() as older:
            older.setattr("strongroom.rules.is_new_email", rules.is_email)
            await server.person(email)
        good(await server.login(email))
        good(await server.http.post("/auth/email/prelogin", json={"email": email}))
