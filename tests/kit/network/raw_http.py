"""HTTP over raw sockets: bytes are sent as a test says, and responses are read one by one."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import strongroom
from tests.kit.servers.internals import is_started
from tests.kit.waiting import until

SECONDS = 10.0  # without a byte, and the test has failed


class Response(NamedTuple):
    """One response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether it says that the connection ends."""
        return self.headers.get("connection") == "close"

    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def listening(server: strongroom.Server) -> Iterator[int]:
    """Run a server on a thread; the port that it listens on."""
    thread = threading.Thread(target=server.listen, args=(0,))
    thread.start()
    try:
        until(lambda: is_started(server), "the server's start")
        yield int((server.url or "").rpartition(":")[2])
    finally:
        server.close()
        thread.join(40)
        assert not thread.is_alive()


@contextmanager
def connected(port: int, *, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A connection that does not wait for ever."""
    with socket.socket() as wire:
        if receive_buffer is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        wire.settimeout(SECONDS)
        wire.connect(("127.0.0.1", port))
        yield wire


def responses(wire: socket.socket, count: int) -> list[Response]:
    """So many responses, read to their ends; more than that have not come with them."""
    found, raw = [], b""
    for _ in range(count):
        while b"\r\n\r\n" not in raw:
            raw += _some(wire)
        response, raw = _first(raw, wire)
        found.append(response)
    assert not raw, raw[:300]
    return found


def refusal(wire: socket.socket) -> Response | None:
    """The response that has begun to come, read to its end; None if it is no refusal, which may have no end."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += _some(wire)
    if raw.split(b" ", 2)[1] < b"400":
        return None
    response, raw = _first(raw, wire)
    assert not raw, raw[:300]
    return response


def until_closed(wire: socket.socket) -> list[Response]:
    """All responses until the server closes the connection; fails if it does not."""
    raw = rest(wire)
    found = []
    while raw:
        response, raw = _first(raw, None)
        found.append(response)
    return found


def _first(raw: bytes, wire: socket.socket | None) -> tuple[Response, bytes]:
    head, separator, raw = raw.partition(b"\r\n\r\n")
    assert separator, head[:300]
    first, *lines = head.decode().split("\r\n")
    assert first.startswith("HTTP/1.1 "), head[:300]
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    length = int(headers.get("content-length", 0))
    body = bytearray(raw)
    while len(body) < length:
        assert wire is not None, "the connection ended too soon"
        body += _some(wire)
    return Response(int(first.split()[1]), headers, bytes(body[:length])), bytes(body[length:])


def _some(wire: socket.socket) -> bytes:
    more = wire.recv(65_536)
    assert more, "the connection ended too soon"
    return more


def rest(wire: socket.socket) -> bytes:
    """All that comes until the server closes."""
    raw = bytearray()
    try:
        while more := wire.recv(65_536):
            raw += more
    except ConnectionResetError:
        pass
    return bytes(raw)


def request(method: str, path: str, *headers: str, body: bytes | None = None, token: str = "") -> bytes:
    """A request as it is written, with a Host; a JSON body has its length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")
