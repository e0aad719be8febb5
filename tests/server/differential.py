"""The HTTP layer beside a strict reference, h11: the same bytes into both, and what each makes of them.

The connection is the server's own protocol class on a real event loop, with a real application on SQLite and a few
routes of its own. Only the socket is a recording transport, so that a test decides where the bytes are cut and when the
loop turns; `test_http_differential.py` holds it to real sockets.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import h11

from strongroom import Server, create_server
from strongroom.server import routes
from strongroom.server.app import App
from strongroom.server.context import AppContext
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Chunks, Response
from strongroom.server.routing import Router
from strongroom.server.transport import connection as transport
from tests.kit.servers.internals import context_of
from tests.kit.servers.secret import SECRET

PROBE: Final = b"GET /echo?probe HTTP/1.1\r\nHost: x\r\nX-Request-Id: probe\r\n\r\n"  # the end of every stream
_SANE_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_OUR_ID: Final = re.compile(r"[0-9a-f]{16}-[0-9a-f]+")  # what the server gives a request that brings none
_APART: Final = re.compile(rb"^([A-Z]+) +(\S+) +(HTTP/)")
_TURNS: Final = 3  # of the loop, which the slow routes wait for


# The reference


@dataclass
class Seen:
    """A request as the reference reads it."""

    method: str
    target: str
    request_id: str
    expects: bool
    switches: bool  # CONNECT, whose body is none, or an upgrade: nothing that follows it is HTTP
    body: bytes = b""
    end: int | None = None  # where in the stream it ends; None where it is not complete


@dataclass
class Reading:
    """What the reference makes of a stream."""

    requests: list[Seen] = field(default_factory=list)
    end: str = "open"  # or "refused", "closed" by the client's own wish, "switched" to another protocol
    why: str = ""


def reference(stream: bytes) -> Reading:
    """Let h11 read a stream: a connection for each request, until one is refused, incomplete or the last."""
    reading, rest = Reading(), stream
    while rest := _prepared(rest):
        conn = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        conn.receive_data(rest)
        try:
            seen = _head(conn)
            if seen is None:
                return reading
            reading.requests.append(seen)
            if seen.method != "CONNECT" and not _read_body(conn, seen):
                return reading
        except h11.RemoteProtocolError as error:
            reading.end, reading.why = "refused", str(error)
            return reading
        rest = conn.trailing_data[0]
        seen.end = len(stream) - len(rest)
        if seen.switches or conn.their_state is h11.MUST_CLOSE:
            reading.end = "switched" if seen.switches else "closed"
            return reading
    return reading


def _prepared(rest: bytes) -> bytes:
    """A stream as h11 takes it, where RFC 9112 lets a server be more lenient than h11 is.

    Empty lines before a request are ignored (2.2), and the parts of its first line may stand further apart (3).
    """
    rest = rest.lstrip(b"\r\n")
    first, end, more = rest.partition(b"\n")
    return _APART.sub(rb"\1 \2 \3", first) + end + more


def _head(conn: h11.Connection) -> Seen | None:
    """The head of the next request; None if it is not complete. What RFC 9112 lets a server refuse is refused."""
    event = conn.next_event()
    if not isinstance(event, h11.Request):
        return None
    told = {name for name, _ in event.headers}
    if event.http_version not in {b"1.1", b"1.0"}:
        raise h11.RemoteProtocolError("another version of HTTP")
    if b"transfer-encoding" in told and (b"content-length" in told or event.http_version == b"1.0"):
        raise h11.RemoteProtocolError("chunks with a length, or of HTTP/1.0")
    ids = [value.decode("latin-1") for name, value in event.headers if name == b"x-request-id"]
    expects = conn.they_are_waiting_for_100_continue
    return Seen(event.method.decode(), event.target.decode("latin-1"), ", ".join(ids), expects, _switches(event))


def _switches(request: h11.Request) -> bool:
    told = {name for name, _ in request.headers}
    options = b",".join(value for name, value in request.headers if name == b"connection").lower().split(b",")
    upgrades = b"upgrade" in told and b"upgrade" in {option.strip() for option in options}
    return request.method == b"CONNECT" or upgrades


def _read_body(conn: h11.Connection, seen: Seen) -> bool:
    """Read the body as far as it is here; whether it is complete."""
    while True:
        event = conn.next_event()
        if isinstance(event, h11.Data):
            seen.body += event.data
        else:
            return isinstance(event, h11.EndOfMessage)


# Our side


@dataclass
class FinalAnswer:
    """One final answer that we sent."""

    status: int
    request_id: str | None  # None where the connection itself refuses
    body: bytes
    closes: bool
    fed: int  # how much of the stream was delivered by then
    continued: int  # how many "100 Continue" came before it


@dataclass
class Outcome:
    """What our connection made of a stream."""

    answers: list[FinalAnswer]
    carried_out: list[tuple[str, str, str]]  # method, target and id of every request that reached the application
    had_body: set[str]  # ids of those that had all of the body that they asked for
    closed: bool
    unreadable: bytes  # what was sent and is no answer
    continued: int  # how many "100 Continue" came after the last answer
    size: int = 0  # bytes that were sent

    @property
    def done(self) -> list[tuple[str, str, str]]:
        """What was carried out."""
        return [(method, target, _given(request_id)) for method, target, request_id in self.carried_out]

    @property
    def told(self) -> list[tuple[int, str]]:
        """The answers by status and id, without a refusal by the connection, in whose place a cut may stand."""
        return [(one.status, _given(one.request_id or "")) for one in self.finals]

    @property
    def finals(self) -> list[FinalAnswer]:
        """The answers to requests, without a refusal by the connection."""
        return [one for one in self.answers if one.request_id is not None]


def _given(request_id: str) -> str:
    """The id that the client gave; none where the server made one."""
    return "" if _OUR_ID.fullmatch(request_id) else request_id


@dataclass(frozen=True)
class Cut:
    """A stream in pieces."""

    pieces: Sequence[bytes]
    turns: Sequence[bool]  # whether the loop turns after a piece until nothing moves
    stalls: bool = False  # whether the client takes an answer only when all is sent

    def __str__(self) -> str:
        return f"cut as {[len(piece) for piece in self.pieces]}, turns {list(map(int, self.turns))}, {self.stalls=}"


class RecordingTransport(asyncio.Transport):
    """A transport that keeps what is written, and delivers nothing while reading is paused.

    One that stalls is full after every write, until `drain`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, stalls: bool) -> None:
        super().__init__()
        self._loop = loop
        self.stalls = stalls
        self.full = False
        self.writes: list[tuple[int, bytes]] = []
        self.fed = 0
        self.closing = False
        self.ended = False  # nothing more is sent, though something may still be read and thrown away
        self.paused = False
        self.pending: list[bytes] = []
        self.connection: asyncio.Protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not self.closing:
            self.writes.append((self.fed, bytes(data)))
            if self.stalls and not self.full:
                self.full = True
                self.connection.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            self.pending.clear()
            self._loop.call_soon(self.connection.connection_lost, None)

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        self._loop.call_soon(self.deliver)

    def is_reading(self) -> bool:
        return not self.paused and not self.closing

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 5) if name == "peername" else default

    def drain(self) -> bool:
        """Let the client take what was written; whether there was anything."""
        was_full, self.full = self.full, False
        if was_full and not self.closing:
            self.connection.resume_writing()
        return was_full

    def deliver(self) -> None:
        """Hand over what has come, as far as it is taken."""
        while self.pending and self.is_reading():
            piece = self.pending.pop(0)
            self.fed += len(piece)
            self.connection.data_received(piece)


def _echoed(body: bytes) -> bytes:
    return json.dumps({"body": body.decode("latin-1")}).encode()


class _RecordingApp(App):
    """The application with a few routes of the tests beside its own; it remembers what reached it."""

    def __init__(self, context: AppContext) -> None:
        own = {"/echo": self._echo, "/early": self._early, "/slow": self._slow, "/stream": self._stream}
        beside = [
            Endpoint(method=method, path=path, handler=handler, summary="", access=Access.PUBLIC)
            for path, handler in own.items()
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        ]
        super().__init__(context, Router([*routes.router(context.variant).endpoints, *beside]))
        self.carried_out: list[tuple[str, str, str]] = []
        self.had_body: set[str] = set()

    async def handle(self, request: Request) -> Response | None:
        target = request.path + (b"?" + request.query_string if request.query_string else b"")
        self.carried_out.append((request.method, target.decode("latin-1"), request.request_id))
        return await super().handle(request)

    async def _body(self, request: Request) -> bytes:
        gathered = request.body.whole
        more = gathered is None
        gathered = gathered or b""
        while more:
            piece, more = await request.body.more()
            gathered += piece
        self.had_body.add(request.request_id)
        return gathered

    async def _echo(self, request: Request) -> Response:
        """Read the body to its end and show it."""
        return Response(_echoed(await self._body(request)))

    async def _early(self, request: Request) -> Response:
        """Response without a look at the body."""
        self.had_body.add(request.request_id)
        return Response(b'{"early": true}', 403)

    async def _slow(self, request: Request) -> Response:
        """Read the body, and take a few turns of the loop."""
        body = await self._body(request)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return Response(_echoed(body))

    async def _stream(self, request: Request) -> Response:
        """Response in chunks, with turns of the loop between them."""
        self.had_body.add(request.request_id)

        async def chunks() -> Chunks:
            for _ in range(_TURNS):
                yield b'{"chunk": true}\n'
                await asyncio.sleep(0)

        return Response(chunks=chunks())


class Layer:
    """Our HTTP layer, ready to be fed."""

    def __init__(self, app: _RecordingApp, wrap: Callable[[type[Any]], type[Any]] | None) -> None:
        self.app = app
        self._state = transport.ServerState()
        kind: type[Any] = transport.protocol(app, 1_000)
        self._kind = wrap(kind) if wrap else kind
        self._loop: Any = asyncio.get_running_loop()

    async def play(self, stream: Cut, methods: Sequence[str]) -> Outcome:
        """Feed a stream as it is cut.

        `methods` are those of the requests as the reference reads them: an answer to HEAD has no body.
        """
        wire = RecordingTransport(self._loop, stalls=stream.stalls)
        self.app.carried_out, self.app.had_body = [], set()
        wire.connection = self._kind(server_state=self._state)
        wire.connection.connection_made(wire)
        for piece, turn in zip(stream.pieces, stream.turns, strict=True):
            wire.pending.append(piece)
            wire.deliver()
            if turn:
                await self._settle()
        await self._settle()
        while wire.drain():
            await self._settle()
        closed = wire.closing or wire.ended
        answers, rest, continued = read_answers(wire.writes, methods)
        done = self.app.carried_out, self.app.had_body
        wire.close()
        await self._settle()
        return Outcome(answers, *done, closed, rest, continued, sum(len(piece) for _, piece in wire.writes))

    async def _settle(self) -> None:
        """Let the loop turn until there is nothing left to do at once."""
        await asyncio.sleep(0)
        while self._loop._ready:  # noqa: ASYNC110 - nothing tells when a loop has nothing to do
            await asyncio.sleep(0)


def with_routes(server: Server) -> _RecordingApp:
    """The application of a server, with the routes of these tests beside its own."""
    return _RecordingApp(context_of(server))


@asynccontextmanager
async def layer(folder: Path, wrap: Callable[[type[Any]], type[Any]] | None = None) -> AsyncIterator[Layer]:
    """Our HTTP layer over the database in a folder; `wrap` may plant a fault in its connection."""
    server = create_server(jwt_secret=SECRET, db_path=folder / "vault.db")
    try:
        yield Layer(with_routes(server), wrap)
    finally:
        await server.release()


def read_answers(writes: Sequence[tuple[int, bytes]], methods: Sequence[str]) -> tuple[list[FinalAnswer], bytes, int]:
    """The answers in what was written, what is left and is none, and how many 100 Continue came last."""
    raw = b"".join(piece for _, piece in writes)
    answers: list[FinalAnswer] = []
    at, continued = 0, 0
    while at < len(raw):
        end = raw.find(b"\r\n\r\n", at)
        match = re.match(rb"HTTP/1\.1 (\d{3}) ", raw[at : at + 13])
        if end < 0 or match is None:
            return answers, raw[at:], continued
        begun, status = at, int(match[1])
        lines = raw[at:end].decode("latin-1").split("\r\n")[1:]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        at = end + 4
        if status == 100:
            continued += 1
            continue
        bare = len(answers) < len(methods) and methods[len(answers)] == "HEAD" and "x-request-id" in headers
        if bare or status in {204, 304}:
            body: bytes | None = b""
        elif headers.get("transfer-encoding") == "chunked":
            body, at = _unchunked(raw, at)
        elif "content-length" in headers:
            length = int(headers["content-length"])
            body, at = raw[at : at + length], at + length
        else:
            body, at = raw[at:], len(raw)
        if body is None or at > len(raw):
            return answers, raw[begun:], continued
        answers.append(
            FinalAnswer(
                status,
                headers.get("x-request-id"),
                body,
                headers.get("connection") == "close",
                _fed_at(writes, begun),
                continued,
            )
        )
        continued = 0
    return answers, b"", continued


def _fed_at(writes: Sequence[tuple[int, bytes]], offset: int) -> int:
    for fed, piece in writes:
        if offset < len(piece):
            return fed
        offset -= len(piece)
    return 0


def _unchunked(raw: bytes, at: int) -> tuple[bytes | None, int]:
    body = b""
    while match := re.compile(rb"([0-9a-f]+)\r\n").match(raw, at):
        length = int(match[1], 16)
        body += raw[match.end() : match.end() + length]
        at = match.end() + length + 2
        if not length:
            return body, at
    return None, at


# The rule


def judge(reading: Reading, ours: Outcome) -> list[str]:
    """What is wrong with our answers, held against the reference. We may be stricter than it, never looser."""
    wrong: list[str] = []
    known = {seen.request_id for seen in reading.requests}
    if ours.unreadable and (not ours.closed or b"HTTP/1.1 " in ours.unreadable[1:]):  # but an answer may be cut
        wrong.append(f"sent what is no answer: {ours.unreadable[-80:]!r}")
    for at, (method, target, request_id) in enumerate(ours.carried_out):
        if at >= len(reading.requests):
            wrong.append(f"carried out {method} {target} ({request_id}), of which the reference knows nothing")
            break
        wrong += _compared(f"carried out request {at}", reading.requests[at], method, target, request_id)
    finals = ours.finals
    if any(answer.request_id is None for answer in ours.answers[:-1]):
        wrong.append("answered after a refusal by the connection")
    if ours.answers and ours.answers[-1].request_id is None:
        if not (ours.answers[-1].closes and ours.closed):
            wrong.append("refused, and did not close")
        if any(request_id in ours.had_body for _, _, request_id in ours.carried_out[len(finals) :]):
            wrong.append("refused in the place of an answer to what was carried out")
    if len(finals) > len(reading.requests):
        wrong.append(f"{len(finals)} answers for {len(reading.requests)} requests")
    for at, (answer, seen) in enumerate(zip(finals, reading.requests, strict=False)):
        wrong += _answered(at, answer, seen, known, last=at == len(finals) - 1, closed=ours.closed)
    announced = not finals or finals[-1].closes or finals[-1] is not ours.answers[-1] or bool(ours.unreadable)
    if ours.closed and not announced and _before_its_end(reading, finals):
        wrong.append("answered before the end of a body, kept the connection, and closed it after that")
    following = reading.requests[len(finals) : len(finals) + 1]
    if ours.continued > sum(seen.expects for seen in following):
        wrong.append(f"{ours.continued} times 100 Continue that nobody waits for")
    if reading.end != "open" and not ours.closed:
        wrong.append(f"left open where the reference is {reading.end} ({reading.why})")
    complete = sum(seen.end is not None for seen in reading.requests)
    if not ours.closed and len(finals) < complete:
        wrong.append(f"open, and owes {complete - len(finals)} answers")
    return wrong


def _compared(what: str, seen: Seen, method: str, target: str, request_id: str) -> Iterator[str]:
    if method != seen.method:
        yield f"{what} as {method}, and the reference reads {seen.method}"
    if seen.target.startswith("/") and "#" not in seen.target and target.rstrip("?") != seen.target.rstrip("?"):
        yield f"{what} to {target}, and the reference reads {seen.target}"
    if _SANE_ID.fullmatch(seen.request_id):
        if request_id != seen.request_id:
            yield f"{what} with the id {request_id}, and the reference reads {seen.request_id}"
    elif not _OUR_ID.fullmatch(request_id):
        yield f"{what} with the id {request_id}, and the reference reads {seen.request_id!r}"


def _answered(at: int, answer: FinalAnswer, seen: Seen, known: set[str], *, last: bool, closed: bool) -> Iterator[str]:
    request_id = answer.request_id or ""
    if request_id != seen.request_id and (request_id in known or not _OUR_ID.fullmatch(request_id)):
        yield f"answer {at} has the id {request_id}, and the reference reads {seen.request_id!r}"
    if answer.closes and not (last and closed):
        yield f"answer {at} says that it closes, and the connection goes on"
    if answer.continued > int(seen.expects):
        yield f"answer {at} comes after {answer.continued} times 100 Continue"
    path = seen.target.partition("?")[0]
    if answer.status == 200 and path in {"/echo", "/slow"} and seen.method not in {"HEAD", "CONNECT"}:
        if seen.end is None:
            yield f"answer {at} is to a body that the reference still waits for"
        elif answer.body != _echoed(seen.body):
            yield f"answer {at} is to the body {answer.body!r}, and the reference reads {seen.body!r}"
    unread = seen.end is None or answer.fed < seen.end
    if seen.expects and unread and not answer.continued and not (last and closed):
        yield f"answer {at} came before a body that was never asked for, and the connection goes on"


def agree(reading: Reading, first: Outcome, other: Outcome) -> str | None:
    """What differs where one stream was cut in two ways.

    A connection that ended may have ended earlier. It may end in one way and stay open in another only by an answer
    that came before the end of a body and said that it closes: whether it did so depends on when the body came.
    """
    one: list[Any]
    two: list[Any]
    for what, one, two in (("carried out", first.done, other.done), ("answered", first.told, other.told)):
        shorter, longer = sorted((one, two), key=len)
        if longer[: len(shorter)] != shorter:
            return f"{what} {one} cut in one way, {two} in another"
        sooner = first if shorter is one else other
        early = sooner.closed and bool(sooner.finals) and sooner.finals[-1].closes
        ended = (first.closed and other.closed) or (early and _before_its_end(reading, sooner.finals))
        if len(shorter) < len(longer) and not ended:
            return f"{what} {one} cut in one way, {two} in another, and a connection is still open"
    return None


def _before_its_end(reading: Reading, finals: Sequence[FinalAnswer]) -> bool:
    """Whether the last answer came before the end of the body of its request."""
    if not finals or len(finals) > len(reading.requests):
        return False
    end = reading.requests[len(finals) - 1].end
    return end is None or finals[-1].fed < end


# Streams


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


async def fewest(stream: bytes, fails: Callable[[bytes], Awaitable[bool]]) -> bytes:
    """The stream with whole lines left out for as long as it still fails."""
    lines, at = stream.split(b"\r\n"), 0
    while at < len(lines):
        fewer = lines[:at] + lines[at + 1 :]
        if await fails(b"\r\n".join(fewer)):
            lines = fewer
        else:
            at += 1
    return b"\r\n".join(lines)
