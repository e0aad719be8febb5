"""Streams made by a grammar, with everything wrong that framing can be."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Final

from tests.http_differential.cut import PROBE, Cut


class Generator:
    """Streams of one to four requests, mostly right, with everything wrong that framing can be; by seed and number."""

    def __init__(self, seed: int, number: int) -> None:
        self._r = random.Random(f"{seed} {number}")  # noqa: S311 - to be repeated
        self._id = 0

    def stream(self) -> bytes:
        """One stream."""
        r = self._r
        parts = [self._request(r.choice((0.0, 0.3, 1.0))) for _ in range(r.choice((1, 1, 2, 2, 3, 4)))]
        if r.random() < 0.06:
            parts.insert(r.randrange(len(parts) + 1), r.choice(_GARBAGE))
        if r.random() < 0.04:
            parts[-1] = parts[-1][: r.randrange(len(parts[-1]) + 1)]
        if r.random() < 0.01:
            parts[:1] = [self._request(0.0) for _ in range(r.randrange(20, 50))]  # more than is parsed ahead
        raw = b"".join(parts)
        if r.random() < 0.05 and raw:
            at = r.randrange(len(raw))
            raw = raw[:at] + r.choice((b"", b"\0", b"\r", b"\n", b" ", b"\t", b"\x80", b":", b"\x7f")) + raw[at + 1 :]
        return raw + PROBE

    def cut(self, stream: bytes) -> Cut:
        """A stream in pieces."""
        r = self._r
        places = sorted({r.randrange(1, len(stream)) for _ in range(r.choice((1, 1, 2, 3, 6)))})
        for mark in (b"\r\n\r\n", b"\r\n"):
            at = stream.find(mark)
            if at >= 0 and r.random() < 0.4:
                places.append(at + r.randrange(len(mark) + 1))
        edges = [0, *sorted(set(places) - {0, len(stream)}), len(stream)]
        pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
        return Cut(pieces, [r.random() < 0.8 for _ in pieces], stalls=r.random() < 0.3)

    def _name(self, letter: str) -> bytes:
        self._id += 1
        return f"{letter}{self._id}".encode()

    def _often(self, usual: bytes, others: Sequence[bytes], wild: float, chance: float = 0.12) -> bytes:
        return self._r.choice(others) if self._r.random() < chance * wild else usual

    def _request(self, wild: float) -> bytes:
        r = self._r
        method = self._often(r.choice((b"GET", b"GET", b"POST", b"POST", b"PUT", b"DELETE", b"HEAD")), _METHODS, wild)
        target = self._often(r.choice((b"/echo", b"/echo", b"/early", b"/slow", b"/stream")), _TARGETS, wild, 0.3)
        version = self._often(b"HTTP/1.1", _VERSIONS, wild)
        lines = [self._often(b"Host: x", _HOSTS, wild), self._often(b"X-Request-Id: ", _IDS, wild, 0.03)]
        lines[1] += self._name("r")
        body = b""
        if method not in {b"GET", b"HEAD", b"CONNECT"} or r.random() < 0.25:
            framing, body = self._framed(wild)
            lines += framing
        if r.random() < 0.25 * wild:
            lines.append(b"Connection: " + r.choice(_CONNECTIONS))
        if r.random() < 0.15 * wild:
            lines += r.choice(_UPGRADES)
        if r.random() < 0.15 * wild:
            lines.append(b"Expect: " + r.choice(_EXPECTS))
        if r.random() < 0.2 * wild:
            lines.append(r.choice(_ODD))
        if r.random() < 0.3:
            lines.append(b"Content-Type: application/json")
        r.shuffle(lines)
        first = b" ".join((method, target, version)) if version else b" ".join((method, target))
        ends = [self._often(b"\r\n", (b"\n", b"\r", b"\r\r\n", b" \r\n"), wild, 0.02) for _ in range(len(lines) + 2)]
        head = b"".join(line + end for line, end in zip([first, *lines, b""], ends, strict=True))
        return self._often(b"", (b"\r\n", b"\n", b"\r\n\r\n", b" "), wild, 0.08) + head + body

    def _content(self) -> bytes:
        """A body, often one that would be a request if it were taken for one."""
        r = self._r
        if r.random() < 0.6:
            return b"GET /echo HTTP/1.1\r\nHost: x\r\nX-Request-Id: %b\r\n\r\n" % self._name("s")
        return r.choice((b"", b"{}", b"hello", b"0\r\n\r\n", b"\r\n", b"x" * r.randrange(300)))

    def _framed(self, wild: float) -> tuple[list[bytes], bytes]:
        r = self._r
        body = self._content()
        length = b"Content-Length: %d" % len(body)
        if r.random() < 0.5:
            if r.random() < 0.35 * wild:
                return self._odd_length(body)
            return [length], body
        coding = self._often(b"Transfer-Encoding: chunked", _CODINGS, wild, 0.35)
        lines = [coding]
        if r.random() < 0.12 * wild:
            lines.append(r.choice((length, b"Content-Length: 0", b"Transfer-Encoding: chunked", b"Content-Length: 3")))
        return lines, self._chunked(body, wild)

    def _odd_length(self, body: bytes) -> tuple[list[bytes], bytes]:
        size = len(body)
        spelled = self._r.choice(
            (
                [b"Content-Length: %d" % (size + self._r.choice((-1, 1, 5, 40, -size, 10**6)))],
                [b"Content-Length: %d" % size] * 2,
                [b"Content-Length: %d" % size, b"Content-Length: %d" % (size + 1)],
                [b"Content-Length: %d, %d" % (size, size)],
                [b"Content-Length: %d, %d" % (size, size + 1)],
                [b"Content-Length: +%d" % size],
                [b"Content-Length: -%d" % size],
                [b"Content-Length: 0x%x" % size],
                [b"Content-Length: 00%d" % size],
                [b"Content-Length:%d" % size],
                [b"Content-Length: \t%d \t" % size],
                [b"Content-Length: %d_0" % size],
                [b"Content-Length: %d 0" % size],
                [b"Content-Length:"],
                [b"Content-Length: %d;" % size],
                [b"Content-Length : %d" % size],
                [b" Content-Length: %d" % size],
                [b"Content_Length: %d" % size],
                [b"content-length: %d" % size],
                [b"Content-Length: 99999999999999999999999"],
                [b"Content-Length: 18446744073709551616"],
                [b"Content-Length: %d.0" % size],
            )
        )
        return list(spelled), body

    def _chunked(self, body: bytes, wild: float) -> bytes:
        r, out = self._r, b""
        while body:
            size = r.randrange(1, len(body) + 1)
            piece, body = body[:size], body[size:]
            head = self._often(b"%x" % size, (b"%X" % size, b"00%x" % size), wild, 0.2)
            head += self._often(b"", _EXTENSIONS, wild, 0.1)
            end = self._often(b"\r\n", (b"\n", b"", b"\r", b"\r\r\n", b" \r\n", b"x\r\n"), wild, 0.03)
            out += head + self._often(b"\r\n", (b"\n", b" \r\n", b"\r"), wild, 0.03) + piece + end
        last = self._often(b"0\r\n", (b"0;x\r\n", b"00\r\n", b"0 \r\n", b"0\n", b"", b"-0\r\n"), wild, 0.08)
        return out + last + self._often(b"", _TRAILERS, wild, 0.2) + self._often(b"\r\n", (b"\n", b""), wild, 0.03)


_METHODS: Final = (
    b"PATCH",
    b"OPTIONS",
    b"CONNECT",
    b"CONNECT",
    b"CONNECT",
    b"TRACE",
    b"get",
    b"PRI",
    b"FOO",
    b"G\0T",
    b"",
)
_TARGETS: Final = (
    b"/health",
    b"/nothing",
    b"/auth/me",
    b"/auth/email/login",
    b"http://x/echo",
    b"*",
    b"x:443",
    b"/echo?a=1",
    b"/echo#part",
    b"/ec ho",
    b"//echo",
    b"/echo/",
    b"/e%63ho",
    b"/echo\x80",
    b"",
)
_VERSIONS: Final = (
    b"HTTP/1.0",
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.2",
    b"HTTP/1.10",
    b"http/1.1",
    b"HTTP/11",
    b"",
)
_HOSTS: Final = (
    b"Host: y",
    b"X-Host: none",
    b"Host: x\r\nHost: x",
    b"Host: x\r\nHost: y",
    b"Host:",
    b"Host : x",
    b"host: x",
    b"Host: x y",
    b"Host: x/y",
)
_IDS: Final = (b"X-Request-Id: a b", b"X-Request-Id: twice\r\nX-Request-Id: ", b"X-Request-Id : ", b"x-request-id:")
_CONNECTIONS: Final = (b"close", b"keep-alive", b"Upgrade", b"close, Upgrade", b"keep-alive, Upgrade", b"Close", b"x")
_UPGRADES: Final = (
    [b"Connection: Upgrade", b"Upgrade: websocket"],
    [b"Connection: upgrade", b"Upgrade: x"],
    [b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"],
    [b"Upgrade: websocket"],
    [b"Connection: keep-alive", b"Connection: Upgrade", b"Upgrade: x"],
)
_EXPECTS: Final = (b"100-continue", b"100-continue", b"100-Continue", b"100-continue, x", b"x", b"")
_ODD: Final = (
    b"X-Folded: a\r\n b",
    b"X-Folded: a\r\n\tTransfer-Encoding: chunked",
    b" X-Leading: a",
    b"X-Nul: a\0b",
    b"X-Bell: a\x07b",
    b"X-High: \xff\xfe",
    b"X-Cr: a\rb",
    b"X-Lf: a\nX-Second: b",
    b"no colon",
    b": no name",
    b"X-Space : a",
    b"X(Odd): a",
    b"X\x80: a",
    b"X-Empty:",
    b"TE: trailers",
    b"Trailer: X-Request-Id",
    b"X-Long: " + b"a" * 5_000,
)
_CODINGS: Final = (
    b"Transfer-Encoding: Chunked",
    b"transfer-encoding:chunked",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, gzip",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunkedx",
    b"Transfer-Encoding: \tchunked",
    b"Transfer-Encoding: \x0bchunked",
    b"Transfer-Encoding: chunked\x0b",
    b"Transfer-Encoding : chunked",
    b" Transfer-Encoding: chunked",
    b"Transfer_Encoding: chunked",
    b"Transfer-Encoding:\r\n chunked",
    b'Transfer-Encoding: "chunked"',
    b"Transfer-Encoding: chunked;q=1",
    b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: chunked,",
    b"Transfer-Encoding:",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
)
_EXTENSIONS: Final = (b";a", b";a=b", b';a="b c"', b" ;a=b", b";", b";a=\0", b" ", b"\t", b"x", b";a\n", b";\r", b"_0")
_TRAILERS: Final = (
    b"X-Trailer: a\r\n",
    b"Content-Length: 5\r\n",
    b"X-Request-Id: evil\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"X-Trailer: a\nX-Second: b\r\n",
    b"no colon\r\n",
    b" X-Folded: a\r\n",
    b"X-Trailer : a\r\n",
    b"X-Nul: \0\r\n",
)
_GARBAGE: Final = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\0\0\0\0",
    b"hello\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"GET /echo\r\n",
    b"0\r\n\r\n",
)
