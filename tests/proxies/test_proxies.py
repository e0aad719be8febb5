"""Behind caddy, nginx and haproxy, as docs/operating.md sets them up, everybody gets their own answers alone."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.programs.debian_programs import find
from tests.kit.requirements import needs
from tests.kit.samples import rounds
from tests.kit.servers.process import Server, fresh_address
from tests.proxies.clients import ENOUGH, PASSWORD, Account, Attacker, Honest, Tally, Wire, let_go, open_account
from tests.proxies.processes import HOST, PROXIES, running, settings
from tests.proxies.smuggling import BURST, Tricks

SEED = int(os.environ.get("PROXY_SEED", "0")) or secrets.randbelow(2**32)
SECONDS = rounds(2, 60, "SECONDS")  # of a run with every trick; one with bursts takes half of that
SILENCE = rounds(1, 60)  # seconds of a long poll in which nothing happens
HONEST = 6
ATTACKERS = 12
WHICH = [pytest.param(name, marks=needs(name)) for name in PROXIES]


class Stage:
    """A server, and accounts on it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.accounts: list[Account] = []
        with server.connect() as http:
            for number in range(1, HONEST + 1):
                opened = open_account(http, number, fresh_address(), f"honest{number}@example.com")
                self.accounts.append(opened)
            self.attacker = open_account(http, 0, fresh_address(), "attacker@example.com")

    def tricks(self) -> Tricks:
        """What the attacker knows."""
        return Tricks(SEED, self.attacker.token, self.attacker.vault)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server as the page has it behind a proxy."""
    settings = {"TRUSTED_PROXIES": "127.0.0.1", "PUBLIC_URL": "https://vault.example.com"}
    server = Server(tmp_path_factory.mktemp("proxied") / "server", **settings).start()
    yield Stage(server)
    server.abandon()


@pytest.fixture(params=WHICH)
def proxied(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> Iterator[tuple[str, int, Stage]]:
    """A proxy before the server: its name, its port, and the server's stage."""
    program = find(request.param)
    assert program is not None
    with running(request.param, program, tmp_path / "proxy", stage.server.port) as port:
        yield request.param, port, stage


def lasting(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds are not yet over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def shown(name: str, tally: Tally) -> None:
    """Print what a run came to, and hold it to it."""
    print(f"{name}: {tally}")  # noqa: T201 - what the soak shows
    assert not tally.faults, "\n".join([f"PROXY_SEED={SEED}", *tally.faults])
    assert tally.checked == tally.requests > 0
    assert tally.attacks.total() > 0


@async_test
async def test_nobody_gets_the_answer_of_another(proxied: tuple[str, int, Stage]) -> None:
    """Every answer is the client's own, none is late or lost, whatever an attacker sends beside."""
    name, port, stage = proxied
    tally, tricks, go_on = Tally(), stage.tricks(), lasting(SECONDS)
    habits = ["logs in", "logs in", "reads", *["writes"] * HONEST]
    honest = [Honest(account, port, tally, habit) for account, habit in zip(stage.accounts, habits, strict=False)]
    attackers = [Attacker(port, fresh_address(), tally, tricks.one) for _ in range(ATTACKERS)]
    await asyncio.gather(*(each.run(go_on) for each in honest), *(each.run(go_on) for each in attackers))
    shown(name, tally)


@async_test
async def test_a_body_that_was_refused_and_never_sent_disturbs_nobody(proxied: tuple[str, int, Stage]) -> None:
    """Bursts of requests that expect a 100 Continue and are refused, and after each the honest clients all at once."""
    name, port, stage = proxied
    tally, bursts, go_on = Tally(), itertools.cycle(stage.tricks().by("burst")), lasting(SECONDS / 2)
    honest = [Honest(account, port, tally) for account in stage.accounts for _ in range(BURST // HONEST)]
    attacker = Attacker(port, fresh_address(), tally, lambda: next(bursts))
    while go_on() and len(tally.faults) < ENOUGH:
        await attacker.once()
        await asyncio.gather(*(each.once() for each in honest))
    for each in honest:
        await each.leave()
    shown(name, tally)


@async_test
async def test_events_and_long_polls_pass_through(proxied: tuple[str, int, Stage]) -> None:
    """A change is told on a stream and ends a long poll as it happens; neither is cut off while nothing happens."""
    name, port, stage = proxied
    account = stage.accounts[-1]
    path = f"/vaults/{account.vault}/documents"
    authority = {"Authorization": f"Bearer {account.token}"}
    writing, polling = Wire(port, account.address), Wire(port, account.address)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(account.address, 0))
    async with AsyncExitStack() as closing, asyncio.timeout(30 + 2 * SILENCE):
        closing.push_async_callback(writing.close)
        closing.push_async_callback(polling.close)
        closing.push_async_callback(let_go, writer)
        first = f"GET /vaults/{account.vault}/events HTTP/1.1\r\nHost: {HOST}\r\n"
        writer.write(f"{first}Authorization: Bearer {account.token}\r\n\r\n".encode())
        await reader.readuntil(b"event: ready\n")
        since = json.loads((await writing.ask("GET", path, authority)).body)["next"]
        await writing.close()  # a proxy may close it while nothing happens
        began = time.monotonic()
        silent = await polling.ask("GET", f"{path}?since={since}&wait={SILENCE}", authority)
        assert (silent.status, json.loads(silent.body)["documents"]) == (200, [])
        assert time.monotonic() - began > SILENCE - 0.5

        poll = asyncio.create_task(polling.ask("GET", f"{path}?since={since}&wait=60", authority))
        began = time.monotonic()
        put = json.dumps({"data": account.mark, "version": account.version}).encode()
        changed = await writing.ask("PUT", f"{path}/{account.document}", authority, put)
        assert changed.status == 200, changed.body
        account.version += 1
        await reader.readuntil(f'data: {{"uid":"{account.document}"'.encode())
        streamed = time.monotonic() - began
        [document] = json.loads((await poll).body)["documents"]
        assert (document["uid"], document["version"]) == (account.document, account.version)
        polled = time.monotonic() - began
    print(f"{name}: an event after {1000 * streamed:.0f} ms, a poll after {1000 * polled:.0f} ms")  # noqa: T201


@async_test
async def test_the_address_of_a_client_is_told_by_the_proxy(proxied: tuple[str, int, Stage]) -> None:
    """Whatever the client writes into X-Forwarded-For."""
    _, port, stage = proxied
    account = stage.accounts[-1]
    wire = Wire(port, fresh_address())
    body = json.dumps({"email": account.email, "password": PASSWORD}).encode()
    signed = await wire.ask("POST", "/auth/email/login", {"X-Forwarded-For": "203.0.113.7, 127.0.0.1"}, body)
    authority = {"Authorization": f"Bearer {json.loads(signed.body)['accessToken']}"}
    sessions = json.loads((await wire.ask("GET", "/auth/sessions", authority)).body)["sessions"]
    assert [session["address"] for session in sessions if session["current"]] == [wire.address]
    await wire.close()


@pytest.mark.parametrize("name", PROXIES)
def test_the_page_shows_each_proxy_with_what_it_needs(name: str) -> None:
    """The examples are found, and each rule for their addresses applies once."""
    text = settings(name, 1, 2)
    assert "443" not in text
    assert "3000" not in text
    needed = {
        "caddy": ["flush_interval -1", "keepalive 60s"],
        "nginx": [
            "keepalive 32;",
            "proxy_http_version 1.1;",
            'proxy_set_header Connection "";',
            "proxy_set_header X-Forwarded-For $remote_addr;",
            "proxy_buffering off;",
            "proxy_read_timeout 75s;",
        ],
        "haproxy": ["option http-no-delay", "timeout server 75s", "http-request set-header X-Forwarded-For %[src]"],
    }
    assert [line for line in needed[name] if line not in text] == []
