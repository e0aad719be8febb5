"""Rate limits of password guesses hold for concurrent requests."""

from __future__ import annotations

import asyncio
import threading

import pytest

from strongroom.errors import Unavailable
from strongroom.server.client_address import counted_address
from strongroom.server.limits import AttemptGate
from tests.kit.asynchronous import async_test
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import context_of
from tests.kit.waiting import until_async


def count_checks(server: InProcessServer) -> list[str]:
    """Every password that is checked from now on."""
    room = context_of(server.app)
    real, checked = room.password_matches, []

    async def counting(password: str, phc: str | None) -> bool:
        checked.append(password)
        return await real(password, phc)

    room.password_matches = counting  # type: ignore[method-assign]
    return checked


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
    """Successful calls are not limited."""
    async with open_server() as server:
        person = await server.person()
        answers = await asyncio.gather(*(server.login(person.email) for _ in range(24)))
        assert {answer.status_code for answer in answers} == {200}


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
        waiting = [asyncio.create_task(pool.run(lambda _: released.wait(20), "")) for _ in range(3)]
        await until_async(lambda: pool.waiting == 3)
        with pytest.raises(Unavailable):
            await pool.run(lambda _: None, "")
        released.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await pool.run(lambda _: "hashed", "") == "hashed"
