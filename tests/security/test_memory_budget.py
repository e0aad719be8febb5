"""The memory budget of docs/operating.md: what a process takes at the most, and what it gives back afterwards."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest

from tests.kit.network.raw_http import connected, request
from tests.kit.samples import LONG
from tests.kit.servers.memory import resident
from tests.kit.waiting import until
from tests.security.measured_server import MIB, SMALL, MeasuredServer, measured_server

ROUNDS = 40 if LONG else 1
BUFFERS = 48 * MIB
PAGE = Path(__file__).parents[2] / "docs" / "operating.md"


def stated(row: str) -> int:
    """A figure of the table in the page, in bytes."""
    found = re.search(rf"^\| {re.escape(row)}[^|]*\| (\d+) (MiB|KiB)", PAGE.read_text(), re.MULTILINE)
    assert found is not None, row
    return int(found[1]) * {"MiB": MIB, "KiB": 1024}[found[2]]


def limit(connections: int, streams: int) -> int:
    """What the table allows a process to grow by, with these many connections."""
    parts = ("caches of the database", "passwords that are being checked", "requests that are being processed")
    return sum(map(stated, parts)) + BUFFERS + connections * stated("each open connection") + streams * 256 * 1024


class Attacker:
    """Opens connections that do their worst, and keeps them open."""

    def __init__(self, server: MeasuredServer, stack: ExitStack) -> None:
        self._server = server
        self._stack = stack
        self._http, self._token = server.registered(f"{os.urandom(8).hex()}@b.c")
        self.vault = self._http.post("/vault", json={"name": "v"}).json()["uid"]
        self.documents = f"/vaults/{self.vault}/documents"
        made = [self._document("A" * 4 * MIB) for _ in range(6)]
        self.large = f"{self.documents}/{made[0]}"
        self.connections = self.streams = 0

    def _document(self, data: str) -> str:
        made = self._http.post(self.documents, json={"collection": "c", "data": data})
        assert made.status_code == 201, made.text
        uid: str = made.json()["uid"]
        return uid

    def _send(self, *pieces: bytes) -> socket.socket:
        wire = self._stack.enter_context(connected(self._server.port, receive_buffer=SMALL))
        wire.settimeout(2.0)
        self.connections += 1
        with suppress(TimeoutError, ConnectionError):  # it may be made to wait, or be cut off
            for piece in pieces:
                wire.sendall(piece)
        return wire

    def _authorised(self, method: str, path: str, *headers: str) -> bytes:
        return request(method, path, *headers, token=self._token)

    def unread_documents(self) -> None:
        for _ in range(40):
            self._send(self._authorised("GET", self.large) * 20)

    def unread_lists(self) -> None:
        for _ in range(20):
            self._send(self._authorised("GET", self.documents))

    def unread_pages(self) -> None:
        for _ in range(60):
            self._send(request("GET", "/openapi.json") * 200)

    def half_documents(self) -> None:
        head = self._authorised("POST", self.documents, "Content-Type: application/json", f"Content-Length: {6 * MIB}")
        for _ in range(30):
            self._send(head + b'{"collection": "c", "data": "', b"A" * (5 * MIB))

    def half_imports(self) -> None:
        head = self._authorised(
            "POST", "/auth/import", "Content-Type: application/x-ndjson", "Content-Length: 99999999"
        )
        for _ in range(10):
            self._send(head + b'{"kind": "header", "x": "', b"A" * (5 * MIB))

    def half_logins(self) -> None:
        head = request("POST", "/auth/email/register", "Content-Type: application/json", "Content-Length: 500000")
        for _ in range(100):
            self._send(head + b'{"email": "' + b"a" * 400_000)

    def half_headers(self) -> None:
        for _ in range(100):
            self._send(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 60_000)

    def tiny_requests(self) -> None:
        for _ in range(30):
            self._send(request("GET", "/x") * 8_000)

    def unread_streams(self) -> None:
        for _ in range(60):
            self._send(self._authorised("GET", f"/vaults/{self.vault}/events?since=0"))
            self.streams += 1
        create = {"op": "create", "collection": "\N{GRINNING FACE}" * 128, "data": "AAAA"}
        for _ in range(6):
            with suppress(httpx2.TransportError):  # so many bytes of this account wait that it may be cut off
                self._http.post(f"/vaults/{self.vault}/batch", json={"operations": [create] * 500})

    def malformed_bodies(self) -> None:
        paths = itertools.cycle((f"/vaults/{self.vault}/batch", self.documents, "/auth/api-keys"))
        for shape in (b'{"op":"create"},', b"{},", b"[" * 400 + b"]" * 400 + b",", b'"\\u0041",', b"1e5,"):
            body = b'{"operations": [' + shape * (5 * MIB // len(shape)) + b"{}]}"
            headers = ("Content-Type: application/json", f"Content-Length: {len(body)}")
            self._send(self._authorised("POST", next(paths), *headers) + body)

    def many_passwords(self) -> None:
        body = json.dumps({"email": "nobody@b.c", "password": "x" * 1_000}).encode()
        for _ in range(60):
            self._send(request("POST", "/auth/email/login", body=body))


ATTACKS: list[Callable[[Attacker], None]] = [
    method for name, method in vars(Attacker).items() if callable(method) and not name.startswith("_")
]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_process_keeps_to_its_memory_budget(tmp_path: Path) -> None:
    """Every attack at once: the peak is within the table, others are served, and then the memory is given back."""
    with measured_server(tmp_path, subprocess.Popen, BUFFER_BYTES=str(BUFFERS)) as server:
        for _ in range(50):
            server.http.get("/vault")
        rest = server.memory
        assert rest < stated("the process at rest")
        peak, slowest = 0, 0.0
        for _ in range(ROUNDS):
            with ExitStack() as stack:
                attacker = Attacker(server, stack)
                for attack in ATTACKS:
                    attack(attacker)
                    began = time.monotonic()
                    assert server.http.get("/vault").status_code == 200, attack.__name__
                    slowest = max(slowest, time.monotonic() - began)
                peak = resident(server.pid, "VmHWM")
                allowed = limit(attacker.connections, attacker.streams)
                assert peak - rest < allowed, f"{(peak - rest) / MIB:.0f} MiB of {allowed / MIB:.0f}"
        until(lambda: server.memory - rest < 40 * MIB, "the return of the memory", 60)
        print(  # noqa: T201
            f"\nmemory: rest {rest / MIB:.0f}, peak {peak / MIB:.0f} of {(rest + allowed) / MIB:.0f} allowed, "
            f"afterwards {server.memory / MIB:.0f} MiB; slowest request beside it {slowest:.2f} s"
        )
