"""A server that is killed in the middle of registrations: an account exists exactly if its invitation is used."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from strongroom.store import open_database
from tests.kit.asynchronous import async_test
from tests.kit.people.invitations import invite
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import rows_of
from tests.kit.servers.process import ENGINES, Server, fresh_address

CODES = 24
TRIES = 2  # each code is sent so often
AT_ONCE = 6


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server that takes registrations by invitation only."""
    made = Server(tmp_path, request.param, SIGNUPS="closed")
    try:
        yield made.start()
    finally:
        made.abandon()


class Crowd:
    """People who register, some at once, each code sent by several of them."""

    def __init__(self, server: Server) -> None:
        self.acknowledged: set[str] = set()
        self._server = server
        self._numbers = itertools.count(1)

    async def run_until_killed(self, codes: list[str], wanted: int) -> None:
        """Register with all codes, and kill the server when so many have an account."""
        self._left, self._enough = wanted, asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            waiting = [code for code in codes for _ in range(TRIES)]
            for _ in range(AT_ONCE):
                group.create_task(self._work(waiting))
            await self._enough.wait()
            self._server.process.send_signal(signal.SIGKILL)
        self._server.process.wait()

    async def _work(self, waiting: list[str]) -> None:
        while waiting:
            await self._register(waiting.pop())

    async def _register(self, code: str) -> None:
        email = f"p{next(self._numbers)}@example.com"
        body = {"email": email, "password": "correct horse", "invitation": code}
        transport = httpx2.AsyncHTTPTransport(verify=False, trust_env=False, local_address=fresh_address())
        url = f"http://127.0.0.1:{self._server.port}"
        with suppress(httpx2.TransportError):  # a lost connection is not an answer
            async with httpx2.AsyncClient(base_url=url, transport=transport, timeout=30, trust_env=False) as http:
                answer = await http.post("/auth/email/register", json=body)
            assert answer.status_code in {201, 403}, answer.text
            if answer.status_code == 201:
                self.acknowledged.add(email)
                self._left -= 1
                if self._left == 0:
                    self._enough.set()


@async_test
async def test_accounts_and_codes_stay_in_step(server: Server) -> None:
    """SIGKILL under many registrations, again and again; what was answered with 201 is there, and once."""
    where = server.settings.get("DATABASE_URL") or server.settings["DB_PATH"]
    crowd = Crowd(server)
    for number in range(rounds(4, 40, "KILLS")):
        database = open_database(where, lambda: time.time_ns() // 1_000_000)
        codes = [await invite(database) for _ in range(CODES)]
        await database.close()
        await crowd.run_until_killed(codes, number % CODES // 2 + 1)
        server.start()
        rows = await rows_of(where)
        accounts = {row[0]: row[1] for row in rows["users"]}
        used = [row[8] for row in rows["invitations"] if row[8] is not None]
        assert sorted(used) == sorted(accounts)
        assert crowd.acknowledged <= set(accounts.values())
        assert len(used) < len(rows["invitations"]), "the kill came when all was done"
    assert server.end() == 0
