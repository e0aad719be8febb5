"""The strict reader of HTTP responses, compared with h11: it reads the same, or refuses."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strongroom.cli.strict_http import AmbiguousResponse, Connection, Host, Response, Unreachable

HOST = Host("http", "127.0.0.1", "127.0.0.1", 80)
REQUEST = (("Accept", "*/*"),)


class SplitSocket:
    """A connection on which a response arrives in these parts, and then ends."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts = [part for part in parts if part]
        self._is_blocking = True

    def settimeout(self, seconds: float) -> None:
        self._is_blocking = seconds > 0

    def sendall(self, _: bytes) -> None:
        """Send nothing: the response is there already."""

    def recv(self, size: int) -> bytes:
        if not self.parts and not self._is_blocking:
            raise BlockingIOError
        part = self.parts.pop(0) if self.parts else b""
        if len(part) > size:
            self.parts.insert(0, part[size:])
        return part[:size]

    def close(self) -> None:
        """Close nothing."""


@contextmanager
def connection(*parts: bytes) -> Iterator[tuple[Connection, SplitSocket]]:
    """A connection on which these parts arrive."""
    found = SplitSocket(parts)
    with patch.object(Connection, "_opened", lambda _: found):
        yield Connection(HOST, "127.0.0.1"), found


def read(*parts: bytes) -> Response:
    """What the strict reader reads of a response; bytes after it are refused with the next request at the latest."""
    with connection(*parts) as (strict, server):
        response = strict.get("/", REQUEST)
        closes = any("close" in value.lower() for value in response.all("connection"))
        if server.parts and not closes:
            strict.get("/", REQUEST)  # must refuse
            pytest.fail("bytes after a response were taken for the next one")
        return response


def reference(content: bytes) -> Response:
    """What h11 reads of it; raises h11.RemoteProtocolError."""
    reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=70_000)
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "127.0.0.1")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(content)
    reader.receive_data(b"")
    head, body = None, b""
    while not isinstance(event := reader.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif event in (h11.NEED_DATA, h11.PAUSED):
            raise h11.RemoteProtocolError("no whole response")
    assert head is not None
    headers = [(name.decode().lower(), value.decode("latin-1")) for name, value in head.headers]
    return Response(head.status_code, headers, body)


def split(content: bytes, places: Sequence[int]) -> list[bytes]:
    """A response in parts, which end at these places."""
    ends = sorted({place % (len(content) + 1) for place in places})
    return [content[first:last] for first, last in zip([0, *ends], [*ends, len(content)], strict=True)]


TOKENS = st.text("abcXYZ019-_.!~", min_size=1, max_size=12).map(lambda text: f"x-{text}".encode())
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20).map(str.encode)
HEADERS = st.lists(st.tuples(TOKENS, VALUES), max_size=4)
PLACES = st.lists(st.integers(0, 4_000), max_size=8)
STATUSES = st.sampled_from([200, 204, 206, 301, 304, 404, 500, 599])


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Well-formed responses, in every way that a server can say how long its content is."""
    status = draw(STATUSES)
    headers = draw(HEADERS)
    content = draw(st.binary(max_size=300))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if status in {204, 304}:
        body = b""
    elif framing == "length":
        headers.append((draw(st.sampled_from([b"Content-Length", b"content-length"])), b"%d" % len(content)))
        body = content
    elif framing == "chunked":
        headers.append((b"Transfer-Encoding", b"chunked"))
        body = chunked(draw, content)
    else:
        body = content
    interim = draw(st.sampled_from([b"", b"", b"", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"]))
    lines = b"".join(b"%s:%s%s\r\n" % (name, draw(st.sampled_from([b" ", b"", b"\t"])), one) for name, one in headers)
    return interim + b"HTTP/1.1 %d Reason\r\n%s\r\n%s" % (status, lines, body)


def chunked(draw: st.DrawFn, content: bytes) -> bytes:
    """The content in chunks, perhaps with extensions and trailers."""
    extension = draw(st.sampled_from([b"", b"", b";name=value", b'; name="a b"']))
    parts = [part for part in split(content, draw(PLACES)) if part]
    trailer = draw(st.sampled_from([b"", b"", b"x-trailer: 1\r\n"]))
    sized = [b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts]
    return b"".join([*sized, b"0", extension, b"\r\n", trailer, b"\r\n"])


def is_plain(content: bytes) -> bool:
    """Whether a response has nothing that the strict reader refuses although it is well-formed."""
    return not any(word in content for word in (b"HTTP/1.1 103", b"name=", b"x-trailer: 1"))


@given(content=responses(), places=PLACES)
def test_well_formed_responses_are_read_as_h11_reads_them(content: bytes, places: list[int]) -> None:
    """However they are split; interim responses, extensions and trailers may be refused."""
    try:
        found = read(*split(content, places))
    except AmbiguousResponse:
        assert not is_plain(content)
        return
    expected = reference(content)
    assert (found.status, list(found.headers), found.content) == (expected.status, expected.headers, expected.content)


MUTATIONS = (
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"\0",
    b"+",
    b"-",
    b"_",
    b"0x",
    b"0",
    b"5",
    b";",
    b",",
    b"\x0b",
    b"x",
)


@given(
    content=responses(),
    changes=st.lists(
        st.tuples(st.integers(0, 4_000), st.integers(0, 3), st.sampled_from([b"", *MUTATIONS])), min_size=1, max_size=4
    ),
    places=PLACES,
)
@example(b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nab", [(999, 0, b"x")], [38])
def test_what_is_read_of_any_response_is_what_h11_reads(
    content: bytes, changes: list[tuple[int, int, bytes]], places: list[int]
) -> None:
    """Of responses with any mistake, however they are split: nothing is accepted that h11 reads in another way."""
    for place, gone, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + gone :]
    try:
        found = read(*split(content, places))
    except (AmbiguousResponse, Unreachable):
        return
    expected = reference(content)
    assert (found.status, list(found.headers), found.content) == (expected.status, expected.headers, expected.content)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
AMBIGUOUS = {
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "one length twice": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "two lengths in a list": OK + b"Content-Length: 2, 2\r\n\r\nab",
    "a length with a sign": OK + b"Content-Length: +2\r\n\r\nab",
    "a length with an underscore": OK + b"Content-Length: 0_2\r\n\r\nab",
    "an empty length": OK + b"Content-Length:\r\n\r\nab",
    "a length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "chunks and another coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "chunks twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "chunks of HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"2\r\nab\r\n0\r\n\r\n",
    "a coding of HTTP/1.0 without content": b"HTTP/1.0 304 X\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a bare line feed after the status": b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nab",
    "a bare line feed after a header": OK + b"Content-Length: 2\n\r\nab",
    "a bare line feed at the end of the head": OK + b"Content-Length: 2\r\n\nab",
    "a bare carriage return": OK + b"x: 1\rContent-Length: 2\r\n\r\nab",
    "a folded header": OK + b"x: 1\r\n  2\r\nContent-Length: 2\r\n\r\nab",
    "a fold before any header": OK + b" x: 1\r\nContent-Length: 2\r\n\r\nab",
    "a NUL in a value": OK + b"x: a\0b\r\nContent-Length: 2\r\n\r\nab",
    "a NUL in a name": OK + b"x\0: a\r\nContent-Length: 2\r\n\r\nab",
    "a header without a colon": OK + b"x\r\nContent-Length: 2\r\n\r\nab",
    "a header without a name": OK + b": x\r\nContent-Length: 2\r\n\r\nab",
    "a space before the colon": OK + b"Content-Length : 2\r\n\r\nab",
    "bytes after the end": OK + b"Content-Length: 2\r\n\r\nabc",
    "another response after the end": (OK + b"Content-Length: 2\r\n\r\nab") * 2,
    "bytes after the last chunk": CHUNKED + b"2\r\nab\r\n0\r\n\r\nx",
    "content of 204": b"HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\nab",
    "content of 304": b"HTTP/1.1 304 X\r\nContent-Length: 2\r\n\r\nab",
    "a content that ends too early": OK + b"Content-Length: 3\r\n\r\nab",
    "chunks that end too early": CHUNKED + b"2\r\nab\r\n",
    "a chunk that ends too late": CHUNKED + b"2\r\nabc\r\n0\r\n\r\n",
    "a chunk's bare line feed": CHUNKED + b"2\nab\r\n0\r\n\r\n",
    "an interim response": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nab",
    "another protocol": b"HTTP/2 200\r\nContent-Length: 2\r\n\r\nab",
    "two spaces before the status": b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nab",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nab",
    "no HTTP": b"<!doctype html>\r\n\r\n",
    **{
        f"a chunk's size as {size!r}": CHUNKED + size + b"\r\nab\r\n0\r\n\r\n"
        for size in (b"+2", b"-2", b"0_2", b" 2", b"2 ", b"\t2", b"0x2", b"", b"2;x", b"\xb2", b"000000002")
    },
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_refused(name: str) -> None:
    """In one part, in two that end anywhere, and byte by byte."""
    content = AMBIGUOUS[name]
    ways = [split(content, [end]) for end in range(len(content) + 1)]
    for parts in [*ways, [content[at : at + 1] for at in range(len(content))]]:
        with pytest.raises(AmbiguousResponse):
            read(*parts)


def test_bytes_that_come_later_are_no_response_to_the_next_request() -> None:
    """Over a real connection: they are refused, and the request after that has a new connection."""
    stray = OK + b"Content-Length: 5\r\n\r\nstray"
    server, client = socket.socketpair()
    again, fresh = socket.socketpair()
    clients = [fresh, client]
    with server, again, patch.object(Connection, "_opened", lambda _: clients.pop()):
        strict = Connection(HOST, "127.0.0.1")
        server.sendall(OK + b"Content-Length: 2\r\n\r\nab")
        assert strict.get("/", REQUEST).content == b"ab"
        server.sendall(stray)
        with pytest.raises(AmbiguousResponse, match="before it"):
            strict.get("/", REQUEST)
        again.sendall(OK + b"Content-Length: 2\r\n\r\ncd")
        assert strict.get("/", REQUEST).content == b"cd"
        strict.close()


def test_a_connection_that_the_server_has_closed_is_opened_again() -> None:
    """A server may close an idle connection: that is no fault of a response."""
    server, client = socket.socketpair()
    again, fresh = socket.socketpair()
    clients = [fresh, client]
    with again, patch.object(Connection, "_opened", lambda _: clients.pop()):
        strict = Connection(HOST, "127.0.0.1")
        with server:
            server.sendall(OK + b"Content-Length: 2\r\n\r\nab")
            assert strict.get("/", REQUEST).content == b"ab"
        again.sendall(OK + b"Content-Length: 2\r\n\r\ncd")
        assert strict.get("/", REQUEST).content == b"cd"
        strict.close()
