"""The greedy account: connections that each send the next request once they have their response, or never read it.

Raw sockets on one event loop: the load must not take the processor from the server that it is to measure.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

SMALL_BUFFER: Final = 4_096  # bytes that the sockets of connections which do not read take
STREAMED: Final = 256 * 1024  # bytes of an endless response after which it is requested again
STREAM_SECONDS: Final = 0.2  # the same, where fewer come
PATIENCE: Final = 60.0  # seconds for a first response on each connection
REMEMBERED: Final = 4_096  # bytes of a response that are looked at
_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Ask(NamedTuple):
    """A request of the greedy account."""

    method: str
    path: str
    body: bytes = b""
    token: str = ""
    media: str = "application/json"

    @property
    def raw(self) -> list[bytes]:
        """Its bytes, the body apart: it may be long and the same each time."""
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: server\r\n"
        if self.token:
            head += f"Authorization: Bearer {self.token}\r\n"
        if self.body:
            head += f"Content-Type: {self.media}\r\nContent-Length: {len(self.body)}\r\n"
        return [head.encode() + b"\r\n", self.body] if self.body else [head.encode() + b"\r\n"]


class Load:
    """What the greedy account has sent, and what it got."""

    def __init__(self) -> None:
        self.requests = 0
        self.sent = 0
        self.received = 0
        self.lost = 0  # connections that the server closed
        self.statuses: Counter[int] = Counter()


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, greedy: Greedy, *, reads: bool) -> None:
        self._greedy = greedy
        self._reads = reads
        self._transport: asyncio.Transport
        self._closed = False
        self._answered = False
        self._began()

    def _began(self) -> None:
        self._start = b""
        self._left: int | None = None  # bytes of the response that are missing; None is unknown
        self._got = 0
        self._tail = b""
        self._status = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._reads:
            transport.pause_reading()
        self._send()

    def _send(self) -> None:
        self._began()
        raw = self._greedy.next()
        self._transport.writelines(raw)

    def data_received(self, data: bytes) -> None:
        self._got += len(data)
        self._greedy.load.received += len(data)
        if len(self._start) < REMEMBERED:
            self._start += data[:REMEMBERED]
        if not self._status:
            if b"\r\n\r\n" not in self._start:
                return
            head, _, _ = self._start.partition(b"\r\n\r\n")
            self._status = int(head[9:12])
            length = _LENGTH.search(head)
            self._left = None if length is None else len(head) + 4 + int(length[1])
            if length is None and self._status in {204, 304}:
                self._left = len(head) + 4
            if self._greedy.streams:
                self._greedy.load.statuses[self._status] += 1
                self._note_first()
                asyncio.get_running_loop().call_later(STREAM_SECONDS, self.close)
        self._tail = (self._tail + data[-5:])[-5:]
        if self._greedy.streams and self._status == 200:
            if self._got > STREAMED:
                self.close()
        elif self._got == self._left if self._left is not None else self._tail == b"0\r\n\r\n":
            self._greedy.answered(self._status, self._start)
            self._note_first()
            if self._greedy.over:
                self.close()
            elif not self._greedy.once:
                self._send()

    def _note_first(self) -> None:
        """Tell once that this connection has had a response."""
        if not self._answered:
            self._answered = True
            self._greedy.first_answered()

    def close(self) -> None:
        """Close at once."""
        self._closed = True
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._note_first()
        self._greedy.gone(self, early=not self._closed)


class Greedy:
    """So many connections that make an attack, of which some never read."""

    def __init__(
        self,
        port: int,
        address: str,
        make: Callable[[int], Ask],
        learn: Callable[[int, bytes], None],
        *,
        streams: bool,
    ) -> None:
        self.load = Load()
        self.streams = streams  # whether responses have no end
        self.over = False
        self.once = False  # each connection sends one request
        self._port = port
        self._address = address
        self._make = make
        self._learn = learn
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._first = asyncio.Event()
        self._awaited = 0

    def next(self) -> list[bytes]:
        """The bytes of the next request."""
        raw = self._make(self.load.requests).raw
        self.load.requests += 1
        self.load.sent += sum(map(len, raw))
        return raw

    def answered(self, status: int, start: bytes) -> None:
        """Note a response."""
        if not self.streams:
            self.load.statuses[status] += 1
        self._learn(status, start)

    def gone(self, connection: _Connection, *, early: bool) -> None:
        """Connect again, unless it is over."""
        self._open.discard(connection)
        self.load.lost += early and not self.over
        if not self.over and not self.once and connection._reads:
            self._connect_later(reads=True)

    def first_answered(self) -> None:
        """Note that one more connection has had a response, or none will come."""
        self._awaited -= 1
        if self._awaited <= 0:
            self._first.set()

    def _connect_later(self, *, reads: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(reads=reads))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, *, reads: bool) -> None:
        loop = asyncio.get_running_loop()
        wire = socket.socket()
        wire.setblocking(False)  # noqa: FBT003
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not reads:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        wire.bind((self._address, 0))
        with contextlib.suppress(OSError):
            await loop.sock_connect(wire, ("127.0.0.1", self._port))
            _, connection = await loop.create_connection(lambda: _Connection(self, reads=reads), sock=wire)
            self._open.add(connection)
            return
        wire.close()

    async def run(self, connections: int, silent: int, seconds: float) -> Load:
        """Attack for so long, and until each connection that reads has had a response; `silent` ones never read.

        With no seconds, each sends one request.
        """
        self.once = not seconds
        self._awaited = connections - silent
        for number in range(connections):
            self._connect_later(reads=number >= silent)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await asyncio.sleep(seconds)
                await self._first.wait()
        self.over = True
        for connection in list(self._open):
            connection.close()
        await asyncio.sleep(0)
        return self.load
