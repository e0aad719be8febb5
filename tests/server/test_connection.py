"""HTTP's corners, over real sockets: the connection is our own, so its manners are ours to keep."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest

import strongroom
from strongroom import store
from strongroom.server.live import follower
from strongroom.server.response import Response
from strongroom.server.transport.exchange import Exchange
from strongroom.store import Database, open_database
from tests.kit.network.raw_http import connected, listening, responses, rest
from tests.kit.servers.internals import context_of, is_started, unfinished
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[strongroom.Server]:
    """A server that listens."""
    folder: Path = tmp_path_factory.mktemp("connection")
    made = strongroom.create_server(jwt_secret=SECRET, db_path=folder / "vault.db")
    with listening(made):
        yield made


@pytest.fixture(scope="module")
def port(server: strongroom.Server) -> int:
    """Where it listens."""
    return int((server.url or "").rpartition(":")[2])


def test_requests_that_come_together_are_answered_in_order(port: int) -> None:
    """Three in one piece, then a thousand: each gets its own answer, and nothing overflows."""
    with connected(port) as wire:
        asked = b"".join(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: n%d\r\n\r\n" % n for n in range(1_000))
        wire.sendall(asked)
        assert [headers["x-request-id"] for _, headers, _ in responses(wire, 1_000)] == [f"n{n}" for n in range(1_000)]


def test_a_slow_request_holds_its_place_before_a_quick_one(port: int) -> None:
    """A registration takes its time; the question that came with it waits for its turn."""
    body = json.dumps({"email": "slow@example.com", "password": "correct horse"}).encode()
    head = b"POST /auth/email/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with connected(port) as wire:
        slow = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        wire.sendall(slow + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [status for status, _, _ in responses(wire, 2)] == [201, 200]


def test_a_client_that_asks_first_is_told_to_go_on(port: int) -> None:
    """Expect: 100-continue, as curl sends it before a large body."""
    with connected(port) as wire:
        wire.sendall(
            b"POST /auth/email/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert wire.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(b"{}")
        assert responses(wire, 1)[0][0] == 400


def test_a_body_in_chunks_is_put_together(port: int) -> None:
    """Each byte a chunk of its own."""
    with connected(port) as wire:
        wire.sendall(b"POST /auth/email/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        wire.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        for sign in b'{"email": "a@b.c", "password": "x"}':
            wire.sendall(b"1\r\n%c\r\n" % sign)
        wire.sendall(b"0\r\n\r\n")
        assert responses(wire, 1)[0][0] == 401


@pytest.mark.parametrize("how", [b"HTTP/1.0\r\n", b"HTTP/1.1\r\nConnection: close\r\n"])
def test_a_connection_that_is_not_to_be_kept_is_closed(port: int, how: bytes) -> None:
    """After the answer, with a word about it."""
    with connected(port) as wire:
        wire.sendall(b"GET /health " + how + b"Host: x\r\n\r\n")
        raw = rest(wire)
        assert raw.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"connection: close\r\n" in raw


def test_head_has_the_headers_of_get_and_no_body(port: int) -> None:
    """The length is told, the next answer follows at once."""
    with connected(port) as wire:
        wire.sendall(b"HEAD /docs HTTP/1.1\r\nHost: x\r\n\r\n")
        wire.sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        first, _, second = rest(wire).partition(b"\r\n\r\n")
        assert int(next(line for line in first.split(b"\r\n") if line.startswith(b"content-length")).split()[1]) > 1_000
        assert second.startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize("target", [b"http://elsewhere.example/health", b"/health?x=1#part", b"//health", b"*"])
def test_addresses_in_other_forms_are_read(port: int, target: bytes) -> None:
    """Absolute ones, ones with a fragment; what names nothing is 404 and not a fault."""
    with connected(port) as wire:
        wire.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert responses(wire, 1)[0][0] == (404 if target in {b"//health", b"*"} else 200)


def test_what_is_not_http_is_refused_in_the_usual_shape(port: int) -> None:
    """400 with JSON, and the connection ends."""
    with connected(port) as wire:
        wire.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
        raw = rest(wire)
        assert raw.startswith(b"HTTP/1.1 400 ")
        assert json.loads(raw.partition(b"\r\n\r\n")[2])["error"]["code"] == "validation_error"


def test_a_client_that_goes_away_in_the_middle_of_a_body_is_noted_and_forgotten(
    server: strongroom.Server, port: int
) -> None:
    """No answer, no fault, no connection left over."""
    with connected(port) as wire:
        wire.sendall(
            b"POST /auth/email/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99\r\n\r\n{"
        )
    until(lambda: not unfinished(server), "the end of what nobody waits for")
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http:
        assert http.get("/health").status_code == 200


def test_an_answer_that_is_out_is_not_kept(port: int) -> None:
    """A connection may be kept for long after it, and an answer may be a megabyte."""
    with connected(port) as wire:
        wire.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: not-kept\r\n\r\n")
        [(status, _, _)] = responses(wire, 1)
        assert status == 200
        until(lambda: not any(_is_answer(thing, "not-kept") for thing in gc.get_objects()), "the answer's end")


def _is_answer(thing: object, request_id: str) -> bool:
    return isinstance(thing, Response) and thing.request_id == request_id


def test_requests_that_were_never_begun_are_freed_when_their_connection_ends(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait behind answers that their client does not take. Reference counts free them: a collection is rare."""
    monkeypatch.setattr(gc, "collect", lambda: 0)
    gc.disable()
    try:
        with connected(port, receive_buffer=4_096) as wire:
            wire.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nX-Request-Id: never-begun\r\n\r\n" * 50)
            until(lambda: _requests("never-begun") > 1, "requests that wait")
        until(lambda: not _requests("never-begun"), "their end", 10)
    finally:
        gc.enable()


def _requests(request_id: str) -> int:
    return sum(isinstance(thing, Exchange) and thing.request.request_id == request_id for thing in gc.get_objects())


def test_one_that_waits_holds_up_none_that_came_with_it(port: int) -> None:
    """A registration takes its time; those who ask at the same moment on other connections do not wait for it."""
    body = json.dumps({"email": "beside@example.com", "password": "correct horse"}).encode()
    slow = b"POST /auth/email/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        wires = [stack.enter_context(connected(port)) for _ in range(40)]
        first, *others = wires
        first.sendall(slow + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        for wire in others:
            wire.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert {status for wire in others for status, _, _ in responses(wire, 1)} == {200}
        assert [status for status, _, _ in responses(first, 1)] == [201]


def _registration(email: str) -> bytes:
    body = json.dumps({"email": email, "password": "correct horse"}).encode()
    head = b"POST /auth/email/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_a_connection_that_ends_while_its_first_request_is_answered_is_no_fault(port: int, faults: list[str]) -> None:
    """A slow request, one behind it, and the client has gone before the first answer is made: it is finished."""
    with connected(port) as wire:
        wire.sendall(_registration("first@example.com") + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a farewell
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http:
        body = {"email": "first@example.com", "password": "correct horse"}
        until(lambda: http.post("/auth/email/login", json=body).status_code == 200, "what was begun")
    assert faults == []


@pytest.mark.parametrize("step", ["begin", "send", "record"])
def test_a_fault_in_one_request_is_not_the_others(
    port: int, faults: list[str], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Forty come together, and one of them breaks in our own hands: its connection is cut, the others are answered."""
    real = getattr(Exchange, step)

    def breaks(exchange: Exchange) -> None:
        if exchange.request.request_id == "bad":
            raise RuntimeError("planted")
        real(exchange)

    monkeypatch.setattr(Exchange, step, breaks)
    with ExitStack() as stack:
        wires = [stack.enter_context(connected(port)) for _ in range(40)]
        for number, wire in enumerate(wires):
            name = b"bad" if number == 7 else b"good"
            wire.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: %b\r\n\r\n" % name)
        bad = wires.pop(7)
        assert {status for wire in wires for status, _, _ in responses(wire, 1)} == {200}
        with suppress(ConnectionResetError):
            assert rest(bad).startswith(b"HTTP/1.1 200 ") == (step == "record")
    until(lambda: faults == ["RuntimeError"], "the fault in the log")


@pytest.mark.parametrize("how", ["orderly", "reset"])
def test_a_stream_ends_when_its_client_goes(
    server: strongroom.Server, port: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, not when there is something to send: nothing is left that takes memory and counts as a stream."""
    monkeypatch.setattr(follower, "COMMENT_SECONDS", 3_600.0)
    body = {"email": f"{how}@example.com", "password": "correct horse"}
    token = httpx2.post(f"{server.url}/auth/email/register", json=body).json()["accessToken"]
    with connected(port) as wire:
        wire.sendall(f"GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        seen = b""
        while b"event: ready" not in seen:
            seen += wire.recv(65_536)
        assert server.app.context.live.streams == 1
        if how == "reset":
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: server.app.context.live.streams == 0, "the stream's end")


def test_who_has_logged_out_is_not_asked_for_a_body(port: int) -> None:
    """The refusal comes before the invitation, and before a byte of what would not be believed."""
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http, connected(port) as wire:
        signed = http.post(
            "/auth/email/register", json={"email": "left@example.com", "password": "correct horse"}
        ).json()
        http.headers["authorization"] = f"Bearer {signed['accessToken']}"
        vault = http.post("/vault", json={"name": "v"}).json()["uid"]
        assert http.get(f"/vaults/{vault}/documents").status_code == 200
        assert http.post("/auth/logout", json={"refreshToken": signed["refreshToken"]}).status_code in {200, 204}
        wire.sendall(
            b"POST /vaults/%b/documents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\nExpect: 100-continue\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
            % (vault.encode(), signed["accessToken"].encode())
        )
        assert responses(wire, 1)[0][0] == 401


@pytest.fixture
def faults(server: strongroom.Server, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the server notes as faults of its own."""
    found: list[str] = []
    monkeypatch.setattr(server.log, "fault", lambda error, _id: found.append(type(error).__name__))
    return found


def test_a_request_under_way_when_the_server_is_told_to_stop_is_the_last(tmp_path: Path) -> None:
    """Half of it has come by then: it is answered, and the answer says that the connection ends."""
    made = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "vault.db")
    thread = threading.Thread(target=made.listen, args=(0,))
    thread.start()
    until(lambda: is_started(made), "the server's start")
    whole = _registration("half@example.com")
    with connected(int((made.url or "").rpartition(":")[2])) as wire:
        wire.sendall(whole[:-5])
        until(lambda: bool(unfinished(made)), "the head of the request")
        made.close()
        until(lambda: context_of(made).stopping, "the server's end")
        wire.sendall(whole[-5:])
        [answer] = responses(wire, 1)
        assert answer.status == 201
        assert answer.closes
        assert wire.recv(1) == b""
    thread.join(40)


@pytest.mark.production_hashing  # which takes long enough for the client to leave
def test_what_was_begun_is_finished_before_the_server_ends(tmp_path: Path) -> None:
    """Its client has left, and the server is told to stop: the account is there all the same."""
    made = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "vault.db")
    thread = threading.Thread(target=made.listen, args=(0,))
    thread.start()
    until(lambda: is_started(made), "the server's start")
    with connected(int((made.url or "").rpartition(":")[2])) as wire:
        wire.sendall(_registration("left@example.com"))
    until(lambda: bool(unfinished(made)), "the server's notice that the client has left")
    made.close()
    thread.join(40)
    db = open_database(str(tmp_path / "vault.db"), lambda: 1)
    assert asyncio.run(_login(db, "left@example.com")) is not None


async def _login(db: Database, email: str) -> object:
    try:
        return await db.read(store.accounts.by_email, email)
    finally:
        await db.close()
