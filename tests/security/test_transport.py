"""Slow, silent, long-winded and many: clients that would take the server from the others, over real sockets."""

from __future__ import annotations

import itertools
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

import strongroom
from strongroom.server import request as http
from strongroom.server.transport import connection as transport
from strongroom.server.transport import runner
from tests.kit.network.raw_http import listening
from tests.kit.servers.internals import context_of, runner_of
from tests.kit.servers.memory import resident
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until

SOON = 0.4  # what the limits are shortened to, in seconds
PATIENCE = 60.0  # that a test waits at most for what a limit of that length does
LIMITS = [name for name in dir(transport) if name.endswith("_SECONDS") and name[0] != "_"]
HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"
Serve = Callable[..., Any]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Runs a server on a thread, with every time limit of the transport shortened."""
    for name in LIMITS:
        monkeypatch.setattr(transport, name, SOON)
    monkeypatch.setattr(http, "BODY_SECONDS", SOON)
    # A server that stops gives up on its connections after this time: longer than any test waits for the right reason.
    monkeypatch.setattr(runner, "_FINISH_SECONDS", 3 * PATIENCE)

    @contextmanager
    def run(opened: list[strongroom.Server] | None = None, **settings: Any) -> Iterator[int]:
        server = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "vault.db", **settings)
        if opened is not None:
            opened.append(server)
        with listening(server) as port:
            yield port

    return run


@contextmanager
def connected(port: int, *, small: bool = False) -> Iterator[socket.socket]:
    """A connection; a small one takes in no more than a little before it is read."""
    with socket.socket() as wire:
        if small:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.settimeout(PATIENCE)
        wire.connect(("127.0.0.1", port))
        yield wire


def rest(wire: socket.socket) -> bytes:
    """What comes until the server closes; fails if it does not."""
    wire.settimeout(PATIENCE)
    got = bytearray()
    try:
        while more := wire.recv(1 << 20):
            got += more
    except ConnectionResetError:
        pass
    except TimeoutError:
        pytest.fail(f"the server leaves the connection open after {bytes(got[:300])!r}")
    return bytes(got)


def drip(wire: socket.socket, sign: bytes) -> bytes:
    """Send a byte now and again, for as long as nothing comes back."""
    wire.settimeout(SOON / 8)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            wire.sendall(sign)
            got = wire.recv(65_536)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return b""
        return got + rest(wire)
    pytest.fail("the server goes on waiting")


def refusal(raw: bytes) -> tuple[int, str]:
    """Status and code of an answer, which must be JSON like every refusal, and end the connection."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert "content-type: application/json" in lines, raw
    assert "connection: close" in lines
    assert f"content-length: {len(body)}" in lines
    error = json.loads(body)["error"]
    assert {"code", "message", "requestId"} <= set(error)
    return int(lines[0].split()[1]), error["code"]


def healthy(port: int) -> bool:
    """Whether others are served, promptly."""
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=10) as http:
        return http.get("/health").status_code == 200


def kept_alive(wire: socket.socket) -> None:
    """Have one good request behind us on this connection."""
    wire.sendall(HEAD + b"\r\n")
    assert wire.recv(65_536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("again", [False, True], ids=["first request", "second request"])
def test_headers_that_come_a_byte_at_a_time_are_cut_off(serve: Serve, *, again: bool) -> None:
    """However steadily they drip: 408, and others are served meanwhile."""
    with serve() as port, connected(port) as wire:
        if again:
            kept_alive(wire)
        wire.sendall(HEAD + b"X-Slow: ")
        assert healthy(port)
        assert refusal(drip(wire, b"a")) == (408, "request_timeout")


def test_many_slow_clients_do_not_starve_the_others(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred half requests, and a whole one beside them."""
    monkeypatch.setattr(transport, "HEADER_SECONDS", 60.0)
    with serve() as port, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connected(port)).sendall(HEAD)
        assert all(healthy(port) for _ in range(5))


def test_a_connection_without_a_word_is_closed(serve: Serve) -> None:
    """In silence: there is nothing to answer."""
    with serve() as port, connected(port) as wire:
        assert rest(wire) == b""


@pytest.mark.parametrize("path", ["/auth/email/login", "/auth/email/register", "/vault"])
def test_a_body_that_comes_a_byte_at_a_time_is_cut_off(serve: Serve, path: str) -> None:
    """A client may not hold a connection for as long as it likes by sending its body slowly."""
    with serve() as port, connected(port) as wire:
        wire.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode())
        wire.sendall(b'Content-Length: 60000\r\n\r\n{"email": "')
        answer = drip(wire, b"a")
        assert not answer or int(answer.split()[1]) in {401, 408}
        assert healthy(port)


LONG = {
    "one header": [b"X-Long: " + b"a" * 66_000 + b"\r\n"],
    "many headers": [b"X-Long-%d: %s\r\n" % (n, b"a" * 60) for n in range(1_000)],
    "pieces": [b"X-Long: ", *[b"a" * 1_000] * 66, b"\r\n"],
    "the address": [],
}


@pytest.mark.parametrize("again", [False, True], ids=["first request", "second request"])
@pytest.mark.parametrize("how", LONG)
def test_headers_beyond_the_limit_are_refused(serve: Serve, how: str, *, again: bool) -> None:
    """More than 64 KiB: 431, in one piece or in many, on a fresh connection or on a used one."""
    with serve() as port, connected(port) as wire:
        if again:
            kept_alive(wire)
        head = b"GET /%s HTTP/1.1\r\nHost: x\r\n" % (b"a" * 66_000 if how == "the address" else b"health")
        with suppress(ConnectionResetError, BrokenPipeError):  # it may have been refused before it was all sent
            for piece in (head, *LONG[how]):
                wire.sendall(piece)
            wire.sendall(b"\r\n")
        assert refusal(rest(wire)) == (431, "headers_too_large")
        assert healthy(port)


@pytest.mark.parametrize("again", [False, True], ids=["first request", "second request"])
@pytest.mark.parametrize("name", [b"a", b"X-%d"], ids=["one name", "many names"])
def test_more_headers_than_a_hundred_are_refused(serve: Serve, name: bytes, *, again: bool) -> None:
    """With 431, however short they are; a hundred are served, and so are a hundred of the next request."""
    names = [name % number if b"%" in name else name for number in range(transport.HEADERS)]
    with serve() as port, connected(port) as wire:
        if again:
            kept_alive(wire)
        host, *rest_of_them = b"Host: x", *(b"%b:" % each for each in names[:-1])
        for _ in range(2):
            wire.sendall(b"GET /health HTTP/1.1\r\n" + b"\r\n".join([host, *rest_of_them]) + b"\r\n\r\n")
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200")
        wire.sendall(b"GET /health HTTP/1.1\r\n" + b"\r\n".join([host, *rest_of_them, b"one: more"]) + b"\r\n\r\n")
        assert refusal(rest(wire)) == (431, "headers_too_large")
        assert healthy(port)


def test_a_large_body_is_not_taken_for_headers(serve: Serve) -> None:
    """Headers and body in one piece, of 200 KB."""
    with serve() as port, connected(port) as wire:
        body = json.dumps({"email": "a" * 200_000, "password": "x"}).encode()
        head = b"POST /auth/email/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        wire.sendall(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert rest(wire).startswith(b"HTTP/1.1 400")


def test_more_connections_than_there_may_be_are_told_so(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with a time to come back, in JSON; a place that becomes free is given away."""
    monkeypatch.setattr(transport, "HEADER_SECONDS", 60.0)
    with serve(max_connections=3) as port, ExitStack() as stack:
        held = [stack.enter_context(connected(port)) for _ in range(3)]
        for wire in held:
            kept_alive(wire)
        with connected(port) as late:
            answer = rest(late)
        assert refusal(answer) == (503, "unavailable")
        assert b"retry-after: 1\r\n" in answer
        for wire in held:
            kept_alive(wire)
        held[0].close()

        def served() -> bool:
            with connected(port) as wire:
                wire.sendall(HEAD + b"Connection: close\r\n\r\n")
                return rest(wire).startswith(b"HTTP/1.1 200")

        until(served, "the place that became free", PATIENCE)


def _fill(path: Path, user_id: str, vault_uid: str, count: int) -> None:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    with connection:
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, 'c', ?, NULL, 1, ?, ?, NULL, NULL)",
            ((user_id, f"{n:036}", vault_uid, "A" * 100_000, n, n) for n in range(1, count + 1)),
        )
    connection.close()


def test_a_client_that_does_not_read_is_cut_off_and_holds_up_nobody(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of 30 MB to clients that take nothing of it: others read and write, and then the connections are gone."""
    for name in LIMITS:  # on a busy machine the other limits would cut off clients that are only slow
        monkeypatch.setattr(transport, name, SOON if name == "STALL_SECONDS" else 600.0)
    servers: list[strongroom.Server] = []

    def connections() -> set[Any]:
        running = runner_of(servers[0])
        assert running is not None
        return set(running._state.connections)

    with serve(servers) as port, ExitStack() as stack:
        http = stack.enter_context(httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20))
        made = http.post("/auth/email/register", json={"email": "a@b.c", "password": "correct horse"}).json()
        http.headers["authorization"] = f"Bearer {made['accessToken']}"
        path = f"/vaults/{http.post('/vault', json={'name': 'large'}).json()['uid']}/documents"
        _fill(tmp_path / "vault.db", made["user"]["id"], path.split("/")[2], 300)
        asked = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {made['accessToken']}\r\n\r\n".encode()
        stalled: list[socket.socket] = []
        for _ in range(8):
            wire = stack.enter_context(connected(port, small=True))
            wire.sendall(asked)
            assert wire.recv(12) == b"HTTP/1.1 200"
            stalled.append(wire)
        for _ in range(5):
            assert http.post(path, json={"collection": "c", "data": "AAAA"}).status_code == 201
            assert http.get("/vault").status_code == 200
            assert healthy(port)
        until(lambda: len(connections()) <= 2, "the end of those who do not read", PATIENCE)
        for wire in stalled:
            assert len(rest(wire)) < 25_000_000
        monkeypatch.setattr(transport, "STALL_SECONDS", 60.0)  # a busy machine reads slowly
        patient = stack.enter_context(httpx2.Client(base_url=http.base_url, headers=http.headers, timeout=60))
        assert len(patient.get(path).json()["documents"]) == 305


def signed_in(port: int, stack: ExitStack) -> tuple[httpx2.Client, str, str]:
    """A client of somebody with a vault, the token, and the vault's uid."""
    http = stack.enter_context(httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20))
    made = http.post("/auth/email/register", json={"email": "a@b.c", "password": "correct horse"}).json()
    http.headers["authorization"] = f"Bearer {made['accessToken']}"
    return http, made["accessToken"], http.post("/vault", json={"name": "v"}).json()["uid"]


def followed(wire: socket.socket, vault: str, token: str, query: str = "") -> None:
    """Ask for a stream, and wait for its beginning."""
    head = f"GET /vaults/{vault}/events{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    wire.sendall(head.encode())
    got = b""
    while b"event: ready" not in got:
        piece = wire.recv(4_096)
        assert piece, got  # it was closed instead
        got += piece


@pytest.mark.parametrize("query", ["", "?since=0"], ids=["live", "catching up"])
def test_a_follower_that_does_not_read_is_cut_off_and_costs_no_memory(serve: Serve, query: str) -> None:
    """Megabytes of events to clients that take nothing of them: they are gone, and who reads has them all."""
    servers: list[strongroom.Server] = []
    with serve(servers) as port, ExitStack() as stack:
        http, token, vault = signed_in(port, stack)
        create = {"op": "create", "collection": "\N{GRINNING FACE}" * 128, "data": "AAAA"}
        batch = json.dumps({"operations": [create] * 1_000}).encode()

        def written() -> None:
            answer = http.post(f"/vaults/{vault}/batch", content=batch, headers={"content-type": "application/json"})
            assert answer.status_code == 200

        if query:
            for _ in range(8):
                written()
        for _ in range(4):
            followed(stack.enter_context(connected(port, small=True)), vault, token, query)
        before = resident(os.getpid(), "VmRSS")
        for _ in range(8):
            written()
        hub = context_of(servers[0]).live
        until(lambda: not hub._accounts, "the end of those who do not read", PATIENCE * 3)
        assert resident(os.getpid(), "VmRSS") - before < 40 * 1024 * 1024
        with http.stream("GET", f"/vaults/{vault}/events?since=0") as reader:
            ids = (int(line.removeprefix("id: ")) for line in reader.iter_lines() if line.startswith("id: "))
            seen = list(itertools.islice(ids, 16_001 if query else 8_001))
        assert seen == sorted(set(seen))


def test_a_server_that_stops_does_not_wait_for_who_does_not_read(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it may be silent otherwise."""
    monkeypatch.setattr(transport, "STALL_SECONDS", 600.0)
    servers: list[strongroom.Server] = []
    with ExitStack() as stack:
        with serve(servers) as port:
            http, token, vault = signed_in(port, stack)
            followed(stack.enter_context(connected(port, small=True)), vault, token)
            create = {"op": "create", "collection": "\N{GRINNING FACE}" * 128, "data": "AAAA"}
            batch = json.dumps({"operations": [create] * 1_000}).encode()
            running = runner_of(servers[0])
            assert running is not None

            def stuck() -> bool:
                headers = {"content-type": "application/json"}
                answer = http.post(f"/vaults/{vault}/batch", content=batch, headers=headers)
                assert answer.status_code == 200
                connections: list[Any] = list(running._state.connections)
                return any(one._stall is not None for one in connections)

            until(stuck, "a connection that takes nothing", PATIENCE * 3)
            http.close()
            began = time.monotonic()
        assert time.monotonic() - began < PATIENCE


def test_a_server_that_stops_keeps_nobody_who_follows(serve: Serve) -> None:
    """Streams, long polls, and a follower that does not read: all are ended in a moment, with a word for it."""
    with ExitStack() as stack:
        servers: list[strongroom.Server] = []
        with serve(servers, max_connections=200) as port:
            _, token, vault = signed_in(port, stack)
            wires, waiting = [], []
            for _ in range(50):
                wires.append(stack.enter_context(connected(port)))
                followed(wires[-1], vault, token)
            path = f"/vaults/{vault}/documents?since=99999999999999&wait=60"
            for _ in range(5):
                waiting.append(stack.enter_context(connected(port)))
                waiting[-1].sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            [account] = context_of(servers[0]).live._accounts.values()
            until(lambda: len(account.waiters) == len(waiting), "all long polls")
            began = time.monotonic()
        assert time.monotonic() - began < PATIENCE
        for wire in wires:
            got = rest(wire)
            assert b'event: end\ndata: {"reason":"server_stopping"}\n\n' in got
            assert got.endswith(b"0\r\n\r\n")
        for wire in waiting:
            assert b'{"documents":[],"hasMore":false,"next":99999999999999}' in rest(wire)


@pytest.mark.parametrize("framing", ["Content-Length: 60000", "Transfer-Encoding: chunked"])
def test_the_refusal_of_a_slow_body_ends_the_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, framing: str
) -> None:
    """It says so, once, and does so at once: the rest of the body, which would have had its time, is not awaited."""
    monkeypatch.setattr(transport, "LEFTOVER_SECONDS", 3_600.0)
    monkeypatch.setattr(transport, "LINGER_SECONDS", 3_600.0)
    with serve() as port, connected(port) as wire:
        head = f"POST /auth/email/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
        wire.sendall(head.encode() + b"1\r\n{\r\n")
        answer = rest(wire)
        assert refusal(answer) == (408, "request_timeout")
        assert answer.lower().count(b"\r\nconnection: close\r\n") == 1
