"""Clients that log in or register as fast as they can, from addresses of their own, beside others who log in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from tests.kit.people.api_user import ApiUser
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server, fresh_address
from tests.kit.waiting import until

ACCOUNTS: Final = 16
CONNECTIONS_EACH: Final = 10
REGISTERING: Final = 150
_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
Ask = Callable[[], tuple[str, dict[str, Any]]]


class Login(NamedTuple):
    """The status of an honest login, and how long it took."""

    status: int
    seconds: float


class Flood:
    """Connections that each ask again as soon as they have their response."""

    def __init__(self, port: int, asks: list[Ask], addresses: list[str]) -> None:
        self.statuses: Counter[int] = Counter()
        self._port = port
        self._asks = asks
        self._addresses = addresses
        self._over = False

    async def run(self) -> None:
        """Ask until it is over."""
        async with asyncio.TaskGroup() as group:
            for number, ask in enumerate(self._asks):
                group.create_task(self._connection(ask, self._addresses[number % len(self._addresses)]))

    def end(self) -> None:
        """Ask for nothing more."""
        self._over = True

    async def _connection(self, ask: Ask, address: str) -> None:
        while not self._over:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(address, 0))
                try:
                    while not self._over:
                        await self._exchange(reader, writer, *ask())
                finally:
                    writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: dict[str, Any]
    ) -> None:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: server\r\nContent-Type: application/json\r\nContent-Length: "
        writer.write(head.encode() + b"%d\r\n\r\n" % len(content) + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(answer)
        assert length is not None
        await reader.readexactly(int(length[1]))
        self.statuses[int(answer[9:12])] += 1


@contextmanager
def flooded(server: Server, asks: list[Ask], addresses: int) -> Iterator[Flood]:
    """A server under a flood from so many addresses, once as much as it has places was asked for."""
    flood = Flood(server.port, asks, [fresh_address() for _ in range(addresses)])
    thread = threading.Thread(target=lambda: asyncio.run(flood.run()))
    thread.start()
    try:
        until(lambda: flood.statuses.total() > len(asks) // 2, "responses to the flood")
        yield flood
    finally:
        flood.end()
        thread.join()


def logins(server: Server) -> list[Ask]:
    """Logins with the right password: sixteen accounts, ten connections each."""
    emails = [ApiUser.register(server).email for _ in range(ACCOUNTS)]
    return [
        lambda email=email: ("/auth/email/login", {"email": email, "password": PASSWORD})  # type: ignore[misc]
        for email in emails * CONNECTIONS_EACH
    ]


def registrations(_server: Server) -> list[Ask]:
    """Registrations, each with another email."""
    return [
        lambda: ("/auth/email/register", {"email": f"{uuid.uuid4().hex}@example.com", "password": PASSWORD})
        for _ in range(REGISTERING)
    ]


def honest(server: Server, emails: list[str], people: int) -> list[Login]:
    """Log in with each of these emails from an address of its own, so many people at a time."""

    def log_in(email: str) -> Login:
        with server.connect(address=fresh_address()) as http:
            began = time.monotonic()
            answer = http.post("/auth/email/login", json={"email": email, "password": PASSWORD})
            return Login(answer.status_code, time.monotonic() - began)

    with ThreadPoolExecutor(people) as pool:
        return list(pool.map(log_in, emails))


def registered(server: Server, count: int) -> list[str]:
    """The emails of so many accounts."""
    return [ApiUser.register(server).email for _ in range(count)]
