"""Where one request ends and the next begins: nothing that a client sends is served as another's request."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import NamedTuple

import httpx2
import pytest

import strongroom
from tests.kit.network.raw_http import Response, connected, listening, request, responses, rest, until_closed
from tests.kit.servers.secret import SECRET


class Target(NamedTuple):
    """A server, and an account on it."""

    port: int
    token: str
    vault: str


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server that listens, with one account and one vault."""
    server = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path_factory.mktemp("framing") / "vault.db")
    with listening(server) as port, httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http:
        made = http.post("/auth/email/register", json={"email": "a@b.c", "password": "correct horse"}).json()
        http.headers["authorization"] = f"Bearer {made['accessToken']}"
        yield Target(port, made["accessToken"], http.post("/vault", json={"name": "v"}).json()["uid"])


SMUGGLED = request("GET", "/nothing", "X-Request-Id: smuggled")


def only_response(wire: socket.socket) -> Response:
    """The one response of a connection that the server closes after it."""
    [response] = until_closed(wire)
    assert response.closes
    return response


def wait_for_head(wire: socket.socket) -> None:
    """Wait until a response begins, without taking a byte of it."""
    assert wire.recv(1, socket.MSG_PEEK)


UPGRADES = {
    "any protocol": ("Connection: Upgrade", "Upgrade: x"),
    "h2c, as curl and Java ask": ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    "websocket": ("Connection: keep-alive, upgrade", "Upgrade: websocket"),
    "spelled otherwise": ("cOnNeCtIoN: uPgRaDe", "uPgRaDe: x"),
    "several": ("Connection: Upgrade", "Upgrade: a", "Upgrade: b"),
    "without a connection option": ("Upgrade: x",),
}


@pytest.mark.parametrize("upgrade", UPGRADES)
@pytest.mark.parametrize("framing", ["length", "chunked", "none"])
def test_a_request_for_an_upgrade_is_the_last_of_its_connection(target: Target, upgrade: str, framing: str) -> None:
    """It is answered once and the connection closes; its body is not served as a request, however it is cut."""
    head = request("GET", "/health", *UPGRADES[upgrade], *_framing(framing, SMUGGLED))
    for pieces in ((head, SMUGGLED), (head + SMUGGLED,), (head + SMUGGLED[:9], SMUGGLED[9:] + SMUGGLED)):
        with connected(target.port) as wire:
            wire.sendall(pieces[0])
            wait_for_head(wire)
            _send_if_open(wire, *pieces[1:])
            assert only_response(wire).status == 200


def _framing(kind: str, body: bytes) -> tuple[str, ...]:
    return {"length": (f"Content-Length: {len(body)}",), "chunked": ("Transfer-Encoding: chunked",), "none": ()}[kind]


def _send_if_open(wire: socket.socket, *pieces: bytes) -> None:
    """Send to a connection that the server may have closed by now."""
    for piece in pieces:
        try:
            wire.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return


@pytest.mark.parametrize("framing", ["length", "chunked", "none"])
def test_connect_is_the_last_request_of_its_connection(target: Target, framing: str) -> None:
    """405 or 404 in its own place, and nothing behind it is served."""
    head = request("CONNECT", "x:80", *_framing(framing, SMUGGLED))
    with connected(target.port) as wire:
        wire.sendall(head)
        wait_for_head(wire)
        _send_if_open(wire, SMUGGLED, SMUGGLED)
        assert only_response(wire).status in {400, 404, 405}


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("cut", [0, 1, 7, 40])
def test_a_request_for_an_upgrade_has_its_body(target: Target, cut: int, *, chunked: bool) -> None:
    """Clients that offer h2c send bodies with the offer: the request is carried out with all of its body."""
    body = json.dumps({"name": f"upgraded {cut} {chunked}"}).encode()
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    head = request(
        "POST",
        "/vault",
        *UPGRADES["h2c, as curl and Java ask"],
        *_framing("chunked" if chunked else "length", body),
        "Content-Type: application/json",
        token=target.token,
    )
    with connected(target.port) as wire:
        wire.sendall(head + sent[:cut])
        wire.sendall(sent[cut:] + SMUGGLED)
        response = only_response(wire)
        assert (response.status, response.json()["name"]) == (201, f"upgraded {cut} {chunked}")


def test_a_body_behind_an_upgrade_is_never_taken_for_none(target: Target) -> None:
    """A delete of a stale version in chunks: without its body it would delete what it must not."""
    path = f"/vaults/{target.vault}/documents"
    with httpx2.Client(base_url=f"http://127.0.0.1:{target.port}") as http:
        http.headers["authorization"] = f"Bearer {target.token}"
        uid = http.post(path, json={"collection": "c", "data": "AAAA"}).json()["uid"]
        http.put(f"{path}/{uid}", json={"data": "BBBB", "version": 1})
        head = request(
            "DELETE",
            f"{path}/{uid}",
            *UPGRADES["any protocol"],
            "Content-Type: application/json",
            "Transfer-Encoding: chunked",
            token=target.token,
        )
        with connected(target.port) as wire:
            wire.sendall(head + b'e\r\n{"version": 1}\r\n0\r\n\r\n')
            assert only_response(wire).status == 409
        assert http.get(f"{path}/{uid}").json()["deletedAt"] is None


EARLY = {
    "no token": (401, "POST", "/vault", "Content-Length: 60", "Content-Type: application/json"),
    "no such route": (404, "POST", "/nothing", "Content-Length: 60", "Content-Type: application/json"),
    "no such method": (405, "PATCH", "/vault", "Content-Length: 60", "Content-Type: application/json"),
    "too large": (413, "POST", "/auth/email/login", "Content-Length: 99999999", "Content-Type: application/json"),
    "not JSON": (415, "POST", "/auth/email/login", "Content-Length: 60", "Content-Type: text/plain"),
    "no body needed": (200, "GET", "/health", "Content-Length: 60"),
    "in chunks": (401, "POST", "/vault", "Transfer-Encoding: chunked", "Content-Type: application/json"),
}


@pytest.mark.parametrize("case", EARLY)
@pytest.mark.parametrize("expect", ["100-continue", "100-Continue", "100-continue, x", "x"])
def test_an_announced_body_that_was_not_asked_for_ends_the_connection(target: Target, case: str, expect: str) -> None:
    """A client that expects 100 Continue may never send its body: what comes next could be read as it."""
    status, method, path, *headers = EARLY[case]
    with connected(target.port) as wire:
        wire.sendall(request(str(method), str(path), *map(str, headers), f"Expect: {expect}"))
        wait_for_head(wire)
        _send_if_open(wire, SMUGGLED, SMUGGLED)
        assert only_response(wire).status == status


def test_an_answer_before_the_end_of_a_chunked_body_ends_the_connection(target: Target) -> None:
    """Its rest may turn out malformed when the next client's request is on its way already."""
    with connected(target.port) as wire:
        wire.sendall(request("POST", "/nothing", "Transfer-Encoding: chunked"))
        wait_for_head(wire)
        _send_if_open(wire, b"3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n", SMUGGLED)
        assert only_response(wire).status == 404


def test_a_body_that_came_unasked_leaves_the_connection_open(target: Target) -> None:
    """A client that expects 100 Continue and does not wait for it: the end of its body is known."""
    with connected(target.port) as wire:
        wire.sendall(request("POST", "/vault", "Expect: 100-continue", body=b"{}") + request("GET", "/health"))
        assert [response.status for response in responses(wire, 2)] == [401, 200]


def test_a_body_that_was_asked_for_leaves_the_connection_open(target: Target) -> None:
    """100, then the answer, then the next request."""
    head = request("POST", "/auth/email/login", "Expect: 100-continue", "Content-Length: 2")
    with connected(target.port) as wire:
        wire.sendall(head.replace(b"Host: x", b"Host: x\r\nContent-Type: application/json"))
        assert wire.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(b"{}" + request("GET", "/health"))
        assert [response.status for response in responses(wire, 2)] == [400, 200]


GARBAGE = b"\x00\x01 this is not HTTP\r\n\r\n"


def test_a_request_that_was_carried_out_gets_its_own_answer(target: Target) -> None:
    """What is not HTTP comes behind it: the answer is that of the request, and then the connection closes."""
    body = json.dumps({"name": "before garbage"}).encode()
    with connected(target.port) as wire:
        wire.sendall(request("POST", "/vault", body=body, token=target.token) + GARBAGE)
        assert [response.status for response in until_closed(wire)] == [201]


@pytest.mark.parametrize("after", [GARBAGE, b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000], ids=["garbage", "long headers"])
def test_nothing_is_written_into_an_open_event_stream(target: Target, after: bytes) -> None:
    """The connection is cut: a refusal inside the stream would be read as events."""
    with connected(target.port) as wire:
        wire.sendall(request("GET", f"/vaults/{target.vault}/events", token=target.token))
        got = b""
        while b"event: ready" not in got:
            got += wire.recv(4_096)
        _send_if_open(wire, after)
        got += rest(wire)
        assert got.count(b"HTTP/1.1 ") == 1


def test_a_request_whose_body_is_malformed_is_refused_once(target: Target) -> None:
    """A chunk without a size: one 400, whether the body is read or not, and nothing after it."""
    for path, status in (("/auth/email/login", 400), ("/nothing", 404)):
        head = request("POST", path, "Content-Type: application/json", "Transfer-Encoding: chunked")
        for pieces in ((head + b"1\r\n{\r\nzz\r\n", SMUGGLED), (head, b"1\r\n{\r\nzz\r\n" + SMUGGLED)):
            with connected(target.port) as wire:
                for piece in pieces:
                    _send_if_open(wire, piece)
                [response] = until_closed(wire)
                assert response.status == status


def test_a_delete_that_was_carried_out_is_not_answered_by_its_malformed_body(target: Target) -> None:
    """The handler needs no body; that what it sends is no chunk changes nothing about what was done."""
    with httpx2.Client(base_url=f"http://127.0.0.1:{target.port}") as http:
        http.headers["authorization"] = f"Bearer {target.token}"
        uid = http.post("/vault", json={"name": "to be deleted"}).json()["uid"]
        with connected(target.port) as wire:
            wire.sendall(
                request("DELETE", f"/vault/{uid}", "Transfer-Encoding: chunked", token=target.token) + b"zz\r\n"
            )
            statuses = [response.status for response in until_closed(wire)]
        gone = http.get(f"/vault/{uid}").status_code == 404
        assert statuses == ([200] if gone else [400])


REFUSED = {
    "no Host": b"GET /health HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /health HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
    "two Hosts, one spelled otherwise": b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: b\r\nhOST: y\r\n\r\n",
    "a Host with a space": b"GET /health HTTP/1.1\r\nHost: x y\r\n\r\n",
    "a Host with a path": b"GET /health HTTP/1.1\r\nHost: x/y\r\n\r\n",
    "a Host with a user": b"GET /health HTTP/1.1\r\nHost: u@x\r\n\r\n",
    "HTTP/0.9": b"GET /health HTTP/0.9\r\nHost: x\r\n\r\n",
    "HTTP/2.0": b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n",
    "HTTP/1.2": b"GET /health HTTP/1.2\r\nHost: x\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown transfer coding": b"POST /vault HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a transfer coding twice": b"POST /vault HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /vault HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length and chunks": b"POST /vault HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /vault HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a signed length": b"POST /vault HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_http_1_1_is_refused_and_closed(target: Target, case: str) -> None:
    """400, once, and nothing behind it is served."""
    with connected(target.port) as wire:
        _send_if_open(wire, REFUSED[case] + SMUGGLED)
        assert only_response(wire).status == 400


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.0\r\n",
        b"GET /health HTTP/1.1\r\nHost:\r\n",
        b"GET /health HTTP/1.1\r\nHost: [::1]:3000\r\n",
    ],
)
def test_other_requests_that_http_allows_are_served(target: Target, head: bytes) -> None:
    """HTTP/1.0 needs no Host; a Host may be empty, or an address."""
    with connected(target.port) as wire:
        wire.sendall(head + b"\r\n")
        wire.shutdown(socket.SHUT_WR)
        assert [response.status for response in until_closed(wire)] == [200]


def test_what_follows_the_last_request_is_not_served(target: Target) -> None:
    """A client that says `Connection: close` and sends on."""
    with connected(target.port) as wire:
        _send_if_open(wire, request("GET", "/health", "Connection: close") + SMUGGLED + GARBAGE)
        assert only_response(wire).status == 200
