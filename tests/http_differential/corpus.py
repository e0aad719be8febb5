"""Streams with tricks of framing, by name."""

from __future__ import annotations

from typing import Final

_SMUGGLED: Final = b"GET /echo HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n"
_CHUNKED_BODY: Final = b"%x\r\n%b\r\n0\r\n\r\n" % (len(_SMUGGLED), _SMUGGLED)


def _post(lines: str, body: bytes, target: str = "/echo", first: str = "POST {} HTTP/1.1") -> bytes:
    head = f"{first.format(target)}\r\nHost: x\r\nX-Request-Id: first\r\n{lines}\r\n"
    return head.encode("latin-1") + body


_LENGTH: Final = f"Content-Length: {len(_SMUGGLED)}\r\n"
_TE: Final = "Transfer-Encoding: chunked\r\n"
CORPUS: Final[dict[str, bytes]] = {
    "two requests": _post(_LENGTH, _SMUGGLED) + _post("", b"", "/slow", "GET {} HTTP/1.1"),
    "chunks": _post(_TE, b"3\r\nabc\r\n" + _CHUNKED_BODY),
    "chunk extension": _post(_TE, b'3;a="b";c\r\nabc\r\n0;d\r\n\r\n'),
    "trailers": _post(_TE, b"3\r\nabc\r\n0\r\nX-Request-Id: evil\r\nContent-Length: 9\r\n\r\n"),
    "an early answer": _post(_LENGTH, _SMUGGLED, "/early") + _post("", b"", "/stream", "GET {} HTTP/1.1"),
    "an early answer to chunks": _post(_TE, _CHUNKED_BODY, "/early"),
    "an early answer to chunks with a forbidden trailer": _post(_TE, b"0\r\nContent-Length: 9\r\n\r\n", "/early"),
    "upgrade": _post("Connection: Upgrade\r\nUpgrade: x\r\n" + _LENGTH, _SMUGGLED),
    "upgrade without a body": _post("Connection: Upgrade\r\nUpgrade: websocket\r\n", b"", first="GET {} HTTP/1.1"),
    "upgrade to h2c": _post("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + _TE, _CHUNKED_BODY),
    "upgrade after another": _post("", b"", "/slow", "GET {} HTTP/1.1")
    + _post("Upgrade: x\r\nConnection: keep-alive, upgrade\r\n" + _LENGTH, _SMUGGLED, "/slow"),
    "upgrade that the connection does not name": _post("Upgrade: x\r\n" + _LENGTH, _SMUGGLED),
    "connect": _post(_LENGTH, _SMUGGLED, "x:443", "CONNECT {} HTTP/1.1"),
    "connect with chunks": _post(_TE, _CHUNKED_BODY, "/echo", "CONNECT {} HTTP/1.1"),
    "expect": _post("Expect: 100-continue\r\n" + _LENGTH, _SMUGGLED),
    "expect and an early answer": _post("Expect: 100-continue\r\n" + _LENGTH, _SMUGGLED, "/early"),
    "expect, chunks and an early answer": _post("Expect: 100-continue\r\n" + _TE, _CHUNKED_BODY, "/early"),
    "expect with a space after it": _post("Expect: 100-continue \r\n" + _LENGTH, _SMUGGLED, "/early"),
    "expect, unauthorised": _post("Expect: 100-continue\r\n" + _LENGTH, _SMUGGLED, "/vault"),
    "expect in a list": _post("Expect: 100-continue, x\r\n" + _LENGTH, _SMUGGLED, "/early"),
    "expect twice": _post("Expect: x\r\nExpect: 100-continue\r\n" + _LENGTH, _SMUGGLED, "/early"),
    "expect of HTTP/1.0": _post("Expect: 100-continue\r\n" + _LENGTH, _SMUGGLED, first="POST {} HTTP/1.0"),
    "length and chunks": _post(_LENGTH + _TE, _CHUNKED_BODY),
    "chunks and length": _post(_TE + "Content-Length: 4\r\n", _CHUNKED_BODY),
    "two lengths": _post("Content-Length: 0\r\n" + _LENGTH, _SMUGGLED),
    "a list of lengths": _post(f"Content-Length: {len(_SMUGGLED)}, 0\r\n", _SMUGGLED),
    "a signed length": _post(f"Content-Length: +{len(_SMUGGLED)}\r\n", _SMUGGLED),
    "a length with a space before its colon": _post(f"Content-Length : {len(_SMUGGLED)}\r\n", _SMUGGLED),
    "a length beyond all numbers": _post("Content-Length: 18446744073709551616\r\n", _SMUGGLED),
    "an empty coding before chunked": _post("Transfer-Encoding: ,chunked\r\n", _CHUNKED_BODY),
    "gzip and chunked": _post("Transfer-Encoding: gzip, chunked\r\n", _CHUNKED_BODY),
    "identity and chunked": _post("Transfer-Encoding: identity\r\n" + _TE, _CHUNKED_BODY),
    "chunked and identity": _post(_TE + "Transfer-Encoding: identity\r\n", _CHUNKED_BODY),
    "a coding after a vertical tab": _post("Transfer-Encoding: \x0bchunked\r\n", _CHUNKED_BODY),
    "a folded coding": _post("Transfer-Encoding:\r\n chunked\r\n", _CHUNKED_BODY),
    "chunks of HTTP/1.0": _post(_TE, _CHUNKED_BODY, first="POST {} HTTP/1.0"),
    "a chunk without its end": _post(_TE, b"3\r\nabc0\r\n\r\n" + _SMUGGLED),
    "a chunk that is too long": _post(_TE, b"3\r\nabcdef\r\n0\r\n\r\n" + _SMUGGLED),
    "a chunk size that is none": _post(_TE, b"0x3\r\nabc\r\n0\r\n\r\n"),
    "a chunk size beyond all numbers": _post(_TE, b"fffffffffffffffff1\r\nabc\r\n0\r\n\r\n"),
    "a line feed in a chunk extension": _post(_TE, b"3;a\nabc\r\n0\r\n\r\n" + _SMUGGLED),
    "line feeds only": _post("", b"", first="GET {} HTTP/1.1").replace(b"\r\n", b"\n"),
    "a carriage return in a header": _post("X: a\rb\r\n", b""),
    "a NUL in a header": _post("X: a\0b\r\n", b""),
    "a folded header": _post("X: a\r\n " + _LENGTH, _SMUGGLED),
    "HTTP/1.0 that keeps alive": _post("Connection: keep-alive\r\n", b"", first="GET {} HTTP/1.0"),
    "HTTP/0.9": b"GET /echo\r\n",
    "HTTP/2.0": _post("", b"", first="GET {} HTTP/2.0"),
    "no host": b"GET /echo HTTP/1.1\r\nX-Request-Id: first\r\n\r\n",
    "two hosts": _post("Host: x\r\n", b"", first="GET {} HTTP/1.1"),
    "close, and more": _post("Connection: close\r\n", b"", first="GET {} HTTP/1.1"),
    "an absolute target": _post("", b"", "http://x/echo", "GET {} HTTP/1.1"),
    "HEAD with a body": _post(_LENGTH, _SMUGGLED, first="HEAD {} HTTP/1.1"),
    "GET and DELETE with bodies": _post(_LENGTH, _SMUGGLED, first="GET {} HTTP/1.1")
    + _post(_LENGTH, _SMUGGLED, first="DELETE {} HTTP/1.1"),
    "garbage in a slow answer": _post("", b"", "/slow", "GET {} HTTP/1.1") + b"\0\0\0\0",
    "garbage in a stream": _post("", b"", "/stream", "GET {} HTTP/1.1") + b"\0\0\0\0",
    "empty lines": b"\r\n\r\n" + _post("", b"", first="GET {} HTTP/1.1") + b"\r\n",
    "a body that is too short": _post(f"Content-Length: {len(_SMUGGLED) + 500}\r\n", _SMUGGLED),
    "a body that is too long": _post("Content-Length: 0\r\n", _SMUGGLED),
}
