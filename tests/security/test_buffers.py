"""Memory that clients make the server hold: answers that they do not take, requests that they do not finish."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.kit.network.raw_http import connected, request, responses, until_closed
from tests.kit.waiting import until
from tests.security.measured_server import MIB, SMALL, MeasuredServer, measured_server

DOCUMENT = 4 * MIB


@pytest.fixture
def large_document() -> Callable[[MeasuredServer], str]:
    """Stores a document of 4 MiB; its path."""

    def store(server: MeasuredServer) -> str:
        vault = server.http.post("/vault", json={"name": "v"}).json()["uid"]
        body = {"collection": "c", "data": "A" * DOCUMENT}
        made = server.http.post(f"/vaults/{vault}/documents", json=body).json()
        return f"/vaults/{vault}/documents/{made['uid']}"

    return store


ROUTE = "/vaults/{vaultUid}/documents/{uid}"


def test_no_request_is_begun_while_its_client_takes_no_answers(
    tmp_path: Path, large_document: Callable[[MeasuredServer], str]
) -> None:
    """99 KB of pipelined GETs of a large document: one answer is kept in memory, and the rest come when it is taken."""
    with measured_server(tmp_path) as server, connected(server.port, receive_buffer=SMALL) as wire:
        path = large_document(server)
        server.http.get(path)
        before, memory = server.answered(ROUTE), server.memory
        one = request("GET", path, token=server.token)
        count = 99_000 // len(one)
        wire.sendall(one * count)
        until(lambda: server.answered(ROUTE) > before, "the first answer")
        for _ in range(50):
            server.http.get("/vault")  # the server has had its turns to go on, and did not
        assert server.answered(ROUTE) - before <= 4, "what the kernel takes, and one more"
        assert server.memory - memory < 8 * DOCUMENT
        taken = 0
        while taken < 6 * DOCUMENT:  # whoever takes again is answered again
            taken += len(wire.recv(MIB))


def test_requests_sent_one_by_one_wait_likewise(
    tmp_path: Path, large_document: Callable[[MeasuredServer], str]
) -> None:
    """The same where each request is sent by itself, and without an account, for a page that anybody may read."""
    with measured_server(tmp_path) as server:
        path = large_document(server)
        for asked, route in ((request("GET", path, token=server.token), ROUTE), (request("GET", "/docs"), "/docs")):
            before = server.answered(route)
            size = len(server.http.get(asked.split()[1].decode()).content)
            with connected(server.port, receive_buffer=SMALL) as wire:
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                wire.settimeout(1.0)
                most = 10 + 8 * MIB // size  # as many as the buffers of the kernel may hold, generously
                with suppress(TimeoutError):  # the server reads no more requests, as it should
                    for _ in range(3 * most):
                        wire.sendall(asked)
                        server.http.get("/vault")
                assert server.answered(route) - before < most


def test_unread_answers_of_many_connections_fit_a_budget(
    tmp_path: Path, large_document: Callable[[MeasuredServer], str]
) -> None:
    """Sixty connections that take nothing of 4 MiB each: those who hold the most are cut, others are served."""
    with measured_server(tmp_path, BUFFER_BYTES=str(32 * MIB)) as server, ExitStack() as stack:
        path = large_document(server)
        server.http.get(path)
        memory = server.memory
        other, token = server.registered("b@b.c")
        vault = other.post("/vault", json={"name": "v"}).json()["uid"]
        slow = stack.enter_context(connected(server.port, receive_buffer=SMALL))
        body = {"collection": "c", "data": "B" * DOCUMENT}
        kept = other.post(f"/vaults/{vault}/documents", json=body).json()["uid"]
        slow.sendall(request("GET", f"/vaults/{vault}/documents/{kept}", token=token))
        wires = [stack.enter_context(connected(server.port, receive_buffer=SMALL)) for _ in range(60)]
        for wire in wires:
            wire.sendall(request("GET", path, token=server.token))
            assert other.get("/vault").status_code == 200
        until(lambda: server.figure("strongroom_buffer_cuts_total") > 5, "the end of those who hold the most")
        assert server.figure("strongroom_buffered_bytes") <= 32 * MIB
        assert server.memory - memory < 32 * MIB + 4 * DOCUMENT
        [answer] = responses(slow, 1)
        assert len(answer.body) > DOCUMENT, "whoever holds little is not cut for those who hold much"


def _readable(wires: list[socket.socket]) -> list[socket.socket]:
    """Those on which something has arrived."""
    poll = select.poll()  # select() takes no descriptor beyond 1,023
    for wire in wires:
        poll.register(wire, select.POLLIN)
    ready = {descriptor for descriptor, _ in poll.poll(0)}
    return [wire for wire in wires if wire.fileno() in ready]


LOGIN = ("POST", "/auth/email/login", "Content-Type: application/json")


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("path", ["/auth/email/login", "/auth/email/prelogin", "/auth/refresh"])
def test_little_is_read_of_callers_without_a_token(tmp_path: Path, path: str, *, chunked: bool) -> None:
    """More than 64 KiB: 413, before it is read."""
    with measured_server(tmp_path) as server, connected(server.port) as wire:
        head = request("POST", path, "Content-Type: application/json", "Connection: close")[:-2]
        if chunked:
            with suppress(BrokenPipeError, ConnectionResetError):
                wire.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + (b"8000\r\n" + b" " * 0x8000 + b"\r\n") * 3)
        else:
            wire.sendall(head + b"Content-Length: 65537\r\n\r\n")
        [response] = until_closed(wire)
        assert response.status == 413
        assert response.json()["error"]["code"] == "payload_too_large"
        assert "65536" in response.json()["error"]["message"]


def test_a_registration_may_carry_a_keyring(tmp_path: Path) -> None:
    """The largest keyring passes, and more than 512 KiB do not."""
    with measured_server(tmp_path) as server:
        body: dict[str, Any] = {"email": "k@b.c", "password": "correct horse", "kdf": {"salt": "AAAA"}}
        made = server.http.post("/auth/email/register", json={**body, "keyring": "A" * 262_144})
        assert made.status_code == 201, made.text
        assert server.http.post("/auth/email/register", json={**body, "x": "A" * 600_000}).status_code == 413


def test_unfinished_bodies_of_strangers_fit_a_budget_and_keep_nobody_out(tmp_path: Path) -> None:
    """400 half registrations of 300 KB: some are refused, memory is bounded, and a login in two pieces passes."""
    with measured_server(tmp_path) as server, ExitStack() as stack:
        memory = server.memory
        head = request("POST", "/auth/email/register", "Content-Type: application/json", "Content-Length: 500000")
        wires = [stack.enter_context(connected(server.port)) for _ in range(400)]
        for wire in wires:
            wire.sendall(head + b'{"x": "' + b"a" * 300_000)
        until(lambda: len(_readable(wires)) > 350, "the refusal of what is over the budget")
        for wire in _readable(wires):
            [response] = responses(wire, 1)
            assert response.status == 503
            assert "retry-after" in response.headers
        until(lambda: server.memory - memory < 48 * MIB, "a memory of 8 MiB of bodies, and what each connection takes")
        body = json.dumps({"email": "a@b.c", "password": "correct horse"}).encode()
        with connected(server.port) as wire:
            wire.sendall(request(*LOGIN, f"Content-Length: {len(body)}") + body[:20])
            server.http.get("/vault")
            wire.sendall(body[20:])
            assert [response.status for response in responses(wire, 1)] == [200]


def test_unfinished_bodies_of_an_account_fit_the_budget(tmp_path: Path) -> None:
    """Thirty half documents of 5 MiB against 32 MiB of buffers: another account's document is taken at once."""
    with measured_server(tmp_path, BUFFER_BYTES=str(32 * MIB)) as server, ExitStack() as stack:
        vault = server.http.post("/vault", json={"name": "v"}).json()["uid"]
        memory = server.memory
        head = request(
            "POST",
            f"/vaults/{vault}/documents",
            "Content-Type: application/json",
            f"Content-Length: {6 * MIB}",
            token=server.token,
        )
        for _ in range(30):
            wire = stack.enter_context(connected(server.port))
            with suppress(BrokenPipeError, ConnectionResetError):
                wire.sendall(head + b'{"collection": "c", "data": "' + b"A" * (5 * MIB))
        other, _ = server.registered("b@b.c")
        vault = other.post("/vault", json={"name": "v"}).json()["uid"]
        body = {"collection": "c", "data": "B" * DOCUMENT}
        assert other.post(f"/vaults/{vault}/documents", json=body).status_code == 201
        assert server.memory - memory < 32 * MIB + 40 * MIB
