"""How large a body may be, and what kind it must be."""

import contextlib
import gzip
import socket
from collections.abc import Iterator

import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, made, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import Server

from .checks import clean

LIMIT = 20_000
DEFAULT = 6 * 1024 * 1024


def sized(total: int) -> bytes:
    """A good document whose body has exactly this many bytes."""
    frame = b'{"collection":"a","data":"%s"}'
    return frame % (b"A" * (total - len(frame) + 2))


def in_pieces(body: bytes) -> Iterator[bytes]:
    """The body in pieces, as a client sends it who does not know its length."""
    for start in range(0, len(body), 1000):
        yield body[start : start + 1000]


@pytest.fixture(scope="module")
def shelf(tess: ApiUser) -> Json:
    """A vault on the server with the small limit."""
    return tess.vault()


@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "chunked"])
def test_limit(tess: ApiUser, shelf: Json, *, pieces: bool) -> None:
    """A body of the limit passes, one of a byte more does not, whether its length is announced or not."""
    headers = {"Content-Type": "application/json"}
    for size in (LIMIT, LIMIT + 1, 3 * LIMIT):
        body = sized(size)
        assert len(body) == size
        answer = tess.http.post(docs(shelf), content=in_pieces(body) if pieces else body, headers=headers)
        if size <= LIMIT:
            made(answer)
        else:
            refused(answer, 413, "payload_too_large")


def test_default_limit(ann: ApiUser, vault: Json) -> None:
    """By default a body may have 6 MiB, and not a byte more."""
    headers = {"Content-Type": "application/json"}
    document = made(ann.http.post(docs(vault), content=sized(DEFAULT), headers=headers))
    assert len(ann.read(vault, document)["data"]) > DEFAULT - 100
    refused(ann.http.post(docs(vault), content=sized(DEFAULT + 1), headers=headers), 413, "payload_too_large")


def test_announced_body_is_not_awaited(tight: Server, tess: ApiUser) -> None:
    """A body that is announced too large is refused before any of it is sent."""
    head = (
        f"POST /vault HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tess.access}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n"
    )
    refused(tight.exchange(head.encode()), 413, "payload_too_large")


def test_endless_body_is_cut_off(tight: Server, tess: ApiUser) -> None:
    """A body without announced length is refused once it is too large, though it never ends."""
    head = (
        f"POST /vault HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tess.access}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    refused(tight.exchange(head.encode(), *[piece] * 21), 413, "payload_too_large")


@pytest.mark.parametrize("size", [0, 10 * LIMIT], ids=["small", "too large"])
def test_refused_body_is_not_the_next_request(tight: Server, size: int) -> None:
    """A body that was refused unread is never taken for a request of its own."""
    body = b"GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n" + b"x" * size
    head = f"POST /vault HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    heard = b""
    with socket.create_connection(("127.0.0.1", tight.port), timeout=20) as wire:
        with contextlib.suppress(ConnectionError):
            wire.sendall(head + body + last)
        with contextlib.suppress(ConnectionError):
            while piece := wire.recv(65_536):
                heard += piece
    assert heard.startswith(b"HTTP/1.1 401 ")
    assert b"smuggled" not in heard
    assert heard.count(b"HTTP/1.1 ") <= 2


def test_compressed(tess: ApiUser, shelf: Json) -> None:
    """A compressed body is not unpacked behind the limit's back."""
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = tess.http.post(docs(shelf), content=gzip.compress(sized(10 * LIMIT)), headers=headers)
    clean(answer)
    assert answer.status_code in (400, 413, 415)
