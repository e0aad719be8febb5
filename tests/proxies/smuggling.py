"""Request smuggling: requests for which a proxy and the server might disagree on where one ends."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.http_differential.corpus import CORPUS
from tests.http_differential.generator import Generator
from tests.proxies.processes import HOST

HALF_CLOSE: Final = -1.0  # in the place of a pause: the client sends no more, and still reads
BURST: Final = 24  # a proxy that is busy is late to send a body that was refused meanwhile
_SOON: Final = 0.01  # between two pieces, so that they are two for the server as well


@dataclass(frozen=True)
class Trick:
    """Pieces to send, with pauses in seconds between them, and how long a silence is waited for."""

    name: str
    pieces: tuple[bytes | float, ...]
    patience: float = 0.05
    times: int = 1  # on so many connections at once
    status: int = 0  # which its answer must have, and with which it is left; 0 where it may be anything


class Tricks:
    """All tricks of an attacker who has an account."""

    def __init__(self, seed: int, token: str, vault: str) -> None:
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311
        self._token = token.encode()
        self._poll = f"/vaults/{vault}/documents?since=99999999999999&wait=1"  # which is answered after a second
        self._number = 0
        self._all = [*self._made()]

    def one(self) -> Trick:
        """Any of them; now and then a stream of the differential test."""
        self._number += 1
        r = self._random
        if r.random() < 0.1:
            generator = Generator(self._seed, self._number)
            cut = generator.cut(generator.stream().replace(b"Host: x", b"Host: " + HOST.encode()))
            return Trick("a generated stream", _apart(*cut.pieces))
        return r.choice(self._all)

    def by(self, name: str) -> list[Trick]:
        """Those whose name begins so."""
        return [trick for trick in self._all if trick.name.startswith(name)]

    # The requests

    def _begun(self) -> bytes:
        """A request whose last header is not at its end: what the next client sends would become part of it."""
        return (
            b"GET /auth/me HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\nAuthorization: Bearer %b\r\nX-Rest: "
            % self._token
        )

    def _complete(self) -> bytes:
        return b"GET /auth/me HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\nAuthorization: Bearer %b\r\n\r\n" % (
            self._token
        )

    def _head(self, first: str, *lines: str) -> bytes:
        return "\r\n".join([first, f"Host: {HOST}", "X-Request-Id: attack", *lines, "", ""]).encode("latin-1")

    def _made(self) -> Iterator[Trick]:
        yield from self._upgrades()
        yield from self._expectations()
        yield from self._framings()
        yield from self._manners()
        for name, stream in CORPUS.items():
            ours = stream.replace(b"Host: x", b"Host: " + HOST.encode())
            at = ours.find(b"\r\n\r\n") + 4
            yield Trick(f"corpus: {name}", _apart(ours))
            yield Trick(f"corpus: {name}, in two", _apart(ours[:at], ours[at:]))

    def _upgrades(self) -> Iterator[Trick]:
        """A body that the server does not read as one."""
        hidden = [self._begun(), self._complete(), self._complete() * 3]
        asked = ("GET /health HTTP/1.1", "GET /nothing HTTP/1.1", "POST /auth/email/login HTTP/1.1")
        for first in asked:
            for kind in ("x", "websocket", "h2c"):
                for body in hidden:
                    lines = ["Connection: Upgrade", f"Upgrade: {kind}", f"Content-Length: {len(body) + 1}"]
                    yield Trick(f"upgrade to {kind}", _apart(self._head(first, *lines) + b"x", body))
                    yield Trick(f"upgrade to {kind}, in three", _apart(self._head(first, *lines), b"x", body))
        for body in hidden:
            chunks = ["Connection: Upgrade", "Upgrade: x", "Transfer-Encoding: chunked"]
            head = self._head(asked[0], *chunks)
            yield Trick(
                "upgrade with chunks", _apart(head + b"1\r\nx\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
            )
            authority = f"Authorization: Bearer {self._token.decode()}"
            lines = ["Connection: Upgrade", "Upgrade: x", authority, f"Content-Length: {len(body) + 1}"]
            slow = self._head(f"GET {self._poll} HTTP/1.1", *lines)
            yield Trick("upgrade before a slow answer", _apart(slow + b"x", body), 1.2)
            for target in (f"{HOST}:443", "/health"):
                head = self._head(f"CONNECT {target} HTTP/1.1", f"Content-Length: {len(body) + 1}")
                yield Trick("connect", _apart(head + b"x", body))

    def _expectations(self) -> Iterator[Trick]:
        """A body that is announced, refused before it is asked for, and then sent late, in part or never."""
        refused = {
            "401": ("POST /vault HTTP/1.1", "Content-Type: application/json"),
            "404": ("POST /nothing HTTP/1.1", "Content-Type: application/json"),
            "405": ("PUT /health HTTP/1.1", "Content-Type: application/json"),
            "415": ("POST /auth/email/login HTTP/1.1", "Content-Type: text/plain"),
        }
        for status, (first, kind) in refused.items():
            for body in (self._begun(), self._complete()):
                head = self._head(first, kind, "Expect: 100-continue", f"Content-Length: {len(body)}")
                yield Trick(f"expect, {status}, never sent", (head, 0.03))
                yield Trick(f"expect, {status}, sent late", (head, 0.03, body))
                yield Trick(f"expect, {status}, sent in part", (head, _SOON, body[:20]))
            chunked = self._head(first, kind, "Expect: 100-continue", "Transfer-Encoding: chunked")
            yield Trick(f"expect, {status}, chunks never sent", (chunked, 0.03))
            many = self._head(first, kind, "Expect: 100-continue", "Content-Length: 50")
            yield Trick(f"burst, {status}", (many,), 0.3, BURST, int(status))
            many = self._head(first, kind, "Expect: 100-continue, x", "Content-Length: 50")
            yield Trick(f"burst in a list, {status}", (many,), 0.3, BURST, int(status))
        large = self._head("POST /auth/email/login HTTP/1.1", "Expect: 100-continue", "Content-Length: 7000000")
        yield Trick("expect, 413, never sent", (large, 0.03))
        yield Trick("expect, 413, sent late", (large, 0.03, self._begun()))
        asked = self._head(
            "POST /auth/email/login HTTP/1.1",
            "Content-Type: application/json",
            "Expect: 100-continue",
            "Content-Length: 2",
        )
        yield Trick("expect, asked for and sent", (asked, 0.03, b"{}"))
        yield Trick("expect, asked for and never sent", (asked, 0.03))

    def _framings(self) -> Iterator[Trick]:
        """Two lengths, a length and chunks, chunks under another name."""
        first, hidden = "POST /nothing HTTP/1.1", self._complete()
        chunked = b"0\r\n\r\n" + hidden
        length = f"Content-Length: {len(chunked)}"
        codings = (
            "Transfer-Encoding: chunked",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding : chunked",
            "Transfer-Encoding:\tchunked",
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding: identity, chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: ,chunked",
            "Transfer-Encoding: \x0bchunked",
            "Transfer-Encoding: CHUNKED",
            "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
            "X: y\r\n Transfer-Encoding: chunked",
            "X: y\nTransfer-Encoding: chunked",
            "Transfer_Encoding: chunked",
            "Transfer-Encoding:\r\n chunked",
        )
        for coding in codings:
            yield Trick("length, then chunks", _apart(self._head(first, length, coding) + chunked))
            yield Trick("chunks, then a short length", _apart(self._head(first, coding, "Content-Length: 4"), chunked))
        size = len(hidden)
        for lengths in (
            ("Content-Length: 0", f"Content-Length: {size}"),
            (f"Content-Length: {size}", "Content-Length: 0"),
            (f"Content-Length: {size}, 0",),
            (f"Content-Length: {size}, {size}",),
            (f"Content-Length: +{size}",),
            (f"Content-Length: 0x{size:x}",),
            (f"Content-Length : {size}",),
            (f" Content-Length: {size}",),
            (f"Content-Length: {size}a",),
            ("Content-Length: -1",),
            ("Content-Length: 18446744073709551616",),
        ):
            yield Trick("odd lengths", _apart(self._head(first, *lengths), hidden))
        bodies = {
            "extensions": b'1;a="b"\r\nx\r\n0;c\r\n\r\n' + hidden,
            "a line feed in an extension": b"1;a\nx\r\n0\r\n\r\n" + hidden,
            "a bad size": b"0x1\r\nx\r\n0\r\n\r\n" + hidden,
            "a huge size": b"ffffffffffffffff0\r\nx\r\n0\r\n\r\n" + hidden,
            "no end": b"1\r\nx0\r\n\r\n" + hidden,
            "trailers": b"1\r\nx\r\n0\r\nContent-Length: 5\r\nHost: y\r\nX: " + hidden,
            "line feeds": b"1\nx\n0\n\n" + hidden,
        }
        for name, body in bodies.items():
            yield Trick(f"chunks: {name}", _apart(self._head(first, "Transfer-Encoding: chunked"), body))

    def _manners(self) -> Iterator[Trick]:
        """What is legal or nearly so, and wears out patience."""
        hidden = self._complete()
        length = f"Content-Length: {len(hidden)}"
        get = self._head("GET /health HTTP/1.1")
        yield Trick("line feeds only", _apart(get.replace(b"\r\n", b"\n") + hidden))
        yield Trick(
            "HTTP/1.0 that keeps alive", _apart(self._head("GET /health HTTP/1.0", "Connection: keep-alive"), hidden)
        )
        yield Trick("an absolute target", _apart(self._head(f"GET http://{HOST}/health HTTP/1.1") + hidden))
        yield Trick("two hosts", _apart(self._head("GET /health HTTP/1.1", "Host: x"), hidden))
        yield Trick("a pipeline", _apart(get * 20 + hidden))
        yield Trick("a pipeline that is cut off", (get * 20 + hidden[:30],), 0.0)
        yield Trick("an early close", (get,), 0.0)
        yield Trick("an early close in a body", (self._head("POST /auth/email/login HTTP/1.1", length) + b"{",), 0.0)
        yield Trick("HEAD with a body", _apart(self._head("HEAD /docs HTTP/1.1", length), hidden))
        yield Trick("GET with a body", _apart(self._head("GET /health HTTP/1.1", length), hidden))
        yield Trick("DELETE with a body", _apart(self._head("DELETE /auth/me HTTP/1.1", length), hidden))
        yield Trick("304 to a body", _apart(self._head("GET /docs HTTP/1.1", "If-None-Match: *", length), hidden))
        yield Trick("204 to a body", _apart(self._head("OPTIONS /health HTTP/1.1", length), hidden))
        yield Trick("a huge header", _apart(self._head("GET /health HTTP/1.1", "X: " + "a" * 70_000), hidden))
        yield Trick("a half-closed socket", (get, HALF_CLOSE), 0.5)
        yield Trick(
            "half of a body, half-closed", (self._head("POST /nothing HTTP/1.1", length) + hidden[:9], HALF_CLOSE)
        )
        yield Trick(
            "an early answer to a long body", _apart(self._head("POST /nothing HTTP/1.1", length), *([hidden[:1]] * 3))
        )


def _apart(*pieces: bytes) -> tuple[bytes | float, ...]:
    """Pieces with a short pause between them."""
    return tuple(part for piece in pieces for part in (piece, _SOON))
