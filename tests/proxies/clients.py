"""Those who use a server through a proxy: honest clients, each with marks of its own, and an attacker beside them."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from tests.proxies.processes import HOST
from tests.proxies.smuggling import HALF_CLOSE, Trick

ANSWER_SECONDS: Final = 20.0  # whoever waits longer for an answer hangs
ENOUGH: Final = 20  # faults, after which a run ends
PASSWORD: Final = "correct horse"
_SECRET: Final = base64.b64encode(b"secret of honest")[:20]  # with which what honest clients keep begins
_INTERIM = re.compile(rb"^(?:HTTP/1\.1 100 [^\r]*\r\n(?:[^\r\n]+\r\n)*\r\n)+")


@dataclass
class Tally:
    """What happened in a run."""

    requests: int = 0  # of honest clients
    checked: int = 0  # answers that were the client's own
    attacks: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        self.faults.append(text[:600])

    def __str__(self) -> str:
        return (
            f"{self.requests} honest requests, {self.checked} answers checked, "
            f"{self.attacks.total()} attacks in {len(self.attacks)} ways, mix-ups {len(self.faults)}"
        )


@dataclass
class Account:
    """An account whose every answer shows whose it is."""

    number: int
    address: str  # where it calls from
    email: str
    id: str = ""
    token: str = ""
    vault: str = ""
    document: str = ""
    version: int = 1

    @property
    def mark(self) -> str:
        """What its documents hold, and nobody else's."""
        return base64.b64encode(f"secret of {self.email};".encode() * 20).decode()


def open_account(http: httpx2.Client, number: int, address: str, email: str) -> Account:
    """Register, and keep a document."""

    def made(path: str, body: Any, token: str = "") -> Any:
        answer = http.post(path, json=body, headers={"authorization": f"Bearer {token}"} if token else {})
        assert answer.status_code == 201, answer.text
        return answer.json()

    account = Account(number, address, email)
    signed = made("/auth/email/register", {"email": account.email, "password": PASSWORD})
    account.id, account.token = signed["user"]["id"], signed["accessToken"]
    account.vault = made("/vault", {"name": f"vault of {email}"}, account.token)["uid"]
    path = f"/vaults/{account.vault}/documents"
    account.document = made(path, {"collection": "c", "data": account.mark}, account.token)["uid"]
    return account


@dataclass
class Received:
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """A connection to a proxy, kept for as long as it lasts."""

    def __init__(self, port: int, address: str) -> None:
        self._port = port
        self.address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Received:
        """Send a request and read its answer to the end."""
        if self._streams is None:
            local = (self.address, 0)
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, local_addr=local)
        reader, writer = self._streams
        lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *(f"{name}: {value}" for name, value in headers.items())]
        if body or method in {"POST", "PUT"}:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        received = await read_answer(reader, method)
        if received.headers.get("connection", "").lower() == "close":
            await self.close()
        return received

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            streams, self._streams = self._streams, None
            await let_go(streams[1])


async def let_go(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def read_head(reader: asyncio.StreamReader) -> Received:
    """The head of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    match = re.match(r"HTTP/1\.[01] (\d{3})", head[0])
    assert match is not None, f"an answer begins with {head[0]!r}"
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
    return Received(int(match[1]), headers, b"")


async def read_answer(reader: asyncio.StreamReader, method: str) -> Received:
    """An answer to its end."""
    received = await read_head(reader)
    headers = received.headers
    if method == "HEAD" or received.status in {204, 304}:
        return received
    if headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            received.body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    elif "content-length" in headers:
        received.body = await reader.readexactly(int(headers["content-length"]))
    else:
        received.body = await reader.read()
    return received


def _same(got: object, own: object) -> None:
    assert got == own, f"{got} in the place of {own}"


class Honest:
    """A client that asks for what it alone owns, and looks whether the answer is its own."""

    _numbers = itertools.count(1)

    def __init__(self, account: Account, port: int, tally: Tally, habit: str = "reads") -> None:
        self._account = account
        self._wire = Wire(port, account.address)
        self._tally = tally
        self._random = random.Random(account.number)  # noqa: S311
        reads = (self._get, self._list, self._me, self._unchanged, self._head, self._nothing)
        self._kinds: tuple[Callable[[], Any], ...] = {
            "reads": reads,
            "writes": (*reads, self._put, self._put),
            "logs in": (self._log_in, self._get),
        }[habit]

    async def run(self, go_on: Callable[[], bool]) -> None:
        """Ask until told to stop; whatever is not as it should be is a fault of the run."""
        while go_on() and len(self._tally.faults) < ENOUGH:
            await self.once()
            await asyncio.sleep(self._random.random() * 0.004)
        await self.leave()

    async def once(self) -> None:
        """Ask for something."""
        self._tally.requests += 1
        kind = self._random.choice(self._kinds)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await kind()
        except TimeoutError:
            await self._broken(f"{kind.__name__} hangs for {ANSWER_SECONDS:.0f} s")
        except (OSError, asyncio.IncompleteReadError, ValueError, AssertionError, KeyError, TypeError) as error:
            await self._broken(f"{kind.__name__} got {type(error).__name__}: {error}")
        else:
            self._tally.checked += 1

    async def leave(self) -> None:
        """Close the connection."""
        await self._wire.close()

    async def _broken(self, text: str) -> None:
        self._tally.fault(f"honest{self._account.number}: {text}")
        await self._wire.close()

    async def _own(self, status: int, method: str, path: str, body: Any = None, **headers: str) -> Received:
        """The answer to a request, which must be to this very request."""
        given = f"honest{self._account.number}-{next(self._numbers)}"
        headers = {"Authorization": f"Bearer {self._account.token}", "X-Request-Id": given, **headers}
        sent = b"" if body is None else json.dumps(body).encode()
        answer = await self._wire.ask(method, path, headers, sent)
        told = answer.headers.get("x-request-id")
        assert (answer.status, told) == (status, given), (
            f"{answer.status} for the request {told} in the place of {status} for {given}: {answer.body[:200]!r}"
        )
        return answer

    async def _get(self) -> None:
        account = self._account
        answer = await self._own(200, "GET", f"/vaults/{account.vault}/documents/{account.document}")
        document = json.loads(answer.body)
        _same((document["uid"], document["data"]), (account.document, account.mark))

    async def _list(self) -> None:
        account = self._account
        listed = json.loads((await self._own(200, "GET", f"/vaults/{account.vault}/documents")).body)
        _same([document["data"] for document in listed["documents"]], [account.mark])

    async def _put(self) -> None:
        account = self._account
        path = f"/vaults/{account.vault}/documents/{account.document}"
        put = {"data": account.mark, "version": account.version}
        document = json.loads((await self._own(200, "PUT", path, put)).body)
        _same((document["uid"], document["version"]), (account.document, account.version + 1))
        account.version += 1

    async def _me(self) -> None:
        me = json.loads((await self._own(200, "GET", "/auth/me")).body)["user"]
        _same((me["id"], me["email"]), (self._account.id, self._account.email))

    async def _unchanged(self) -> None:
        account = self._account
        path = f"/vaults/{account.vault}/documents/{account.document}"
        await self._own(304, "GET", path, **{"If-None-Match": f'"{account.version}"'})

    async def _head(self) -> None:
        answer = await self._own(200, "HEAD", f"/vaults/{self._account.vault}/documents/{self._account.document}")
        _same(answer.headers["etag"], f'"{self._account.version}"')

    async def _nothing(self) -> None:
        await self._own(404, "GET", f"/vaults/{self._account.vault}/documents/{self._account.vault}")

    async def _log_in(self) -> None:
        account = self._account
        body = {"email": account.email, "password": PASSWORD}
        signed = json.loads((await self._own(200, "POST", "/auth/email/login", body)).body)
        _same((signed["user"]["id"], signed["user"]["email"]), (account.id, account.email))
        account.token = signed["accessToken"]


class Attacker:
    """Plays tricks through the proxy, and keeps an eye on what comes back: nothing of it may be another's."""

    def __init__(self, port: int, address: str, tally: Tally, tricks: Callable[[], Trick]) -> None:
        self._port = port
        self._address = address
        self._tally = tally
        self._tricks = tricks

    async def run(self, go_on: Callable[[], bool]) -> None:
        """Play tricks until told to stop."""
        while go_on() and len(self._tally.faults) < ENOUGH:
            await self.once()

    async def once(self) -> None:
        """Play a trick."""
        trick = self._tricks()
        self._tally.attacks[trick.name] += trick.times
        connecting = [self._connect() for _ in range(trick.times)]
        connected = [streams for streams in await asyncio.gather(*connecting) if streams is not None]
        for got in await asyncio.gather(*(_play(trick, *streams) for streams in connected)):
            if stolen := re.search(rb"honest\d+|" + _SECRET, got):
                self._tally.fault(f"the attacker got something of {stolen[0]!r} by {trick.name}: {got[:300]!r}")
            final = _INTERIM.sub(b"", got)  # caddy asks for the body itself where the server takes more than a second
            if trick.status and final and not final.startswith(b"HTTP/1.1 %d " % trick.status):
                self._tally.fault(f"{trick.name} was answered by {got[:300]!r}")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        try:
            return await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._address, 0))
        except OSError:
            return None


async def _play(trick: Trick, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Send the pieces of a trick; what came back."""
    reading = asyncio.create_task(_until_silent(reader, trick.patience, once=trick.status > 0))
    try:
        with suppress(OSError):
            for piece in trick.pieces:
                if isinstance(piece, bytes):
                    writer.write(piece)
                    await writer.drain()
                elif piece == HALF_CLOSE:
                    writer.write_eof()
                else:
                    await asyncio.sleep(piece)
        return await reading
    finally:
        await let_go(writer)


async def _until_silent(reader: asyncio.StreamReader, patience: float, *, once: bool) -> bytes:
    """What comes until the connection ends or nothing has come for a while; or the beginning of one final answer."""
    got = b""
    with suppress(OSError, TimeoutError):
        while not (once and got):
            async with asyncio.timeout(patience):
                more = await reader.read(65_536)
            if not more:
                break
            got += more
            if once:
                got = got.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    return got
