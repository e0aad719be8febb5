"""A connection: requests are parsed, queued and answered in order, and nobody may starve the others.

httptools parses; what a connection may take is bounded here: how long its headers and its silence may last, how long
its headers may be, how many connections there may be, how long a client may take nothing of its answer, and how far
ahead of the answers requests are parsed.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import httptools

from strongroom import wire
from strongroom.server.request import Request
from strongroom.server.transport.batching import RequestBatcher
from strongroom.server.transport.exchange import NOT_HTTP, Exchange, State

if TYPE_CHECKING:
    from strongroom.server.app import App
    from strongroom.server.buffers import BufferBudget
    from strongroom.server.monitoring.log import Log

HEADER_SECONDS: Final = 10.0  # from the first byte of a request to the end of its headers
HEADER_BYTES: Final = 64 * 1024
IDLE_SECONDS: Final = 75.0  # between two requests
LEFTOVER_SECONDS: Final = 10.0  # to go on sending a body that was answered before it was read
STALL_SECONDS: Final = 60.0  # without taking a byte of an answer
PARTING_SECONDS: Final = 2.0  # the same, while the server stops; and for a request that has begun to arrive by then
PARTING_IDLE: Final = 0.5  # that an idle connection is kept while the server stops: a request may be on its way
LINGER_SECONDS: Final = 2.0  # to take the last answer while more is sent: closing at once would reset the connection
PARSE_AHEAD: Final = 4 * 1024  # bytes that are parsed at once outside of bodies: what bounds the requests that wait
PARSE_CHUNKS: Final = 16 * 1024  # the same within a body whose length is not known
_NEVER: Final = float("inf")
_SWEEP_SECONDS: Final = 0.25
_WARN_SECONDS: Final = 60.0
_ENCODER_OVERHEAD: Final = 1.5  # times as much memory as it has bytes is taken by what the JSON encoder makes
_UNFRAMED: Final = -1  # the body is chunked, or there is none
_FRAMING: Final = (b"content-length", b"transfer-encoding")
_HOST: Final = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
_STATUS: Final = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


def protocol(app: App, most_connections: int) -> type[Connection]:
    """The protocol that serves this application, with so many connections at most."""
    return type("Limited", (Connection,), {"app": app, "most_connections": most_connections})


async def sweep(connections: Iterable[Connection], buffers: BufferBudget, log: Log) -> None:
    """Check the time limits of all connections, and their buffers, a few times a second."""
    loop = asyncio.get_running_loop()
    cut, next_warning = 0, 0.0
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        now = loop.time()
        for connection in list(connections):
            connection.check_deadline(now)
        buffers.enforce()
        if buffers.cut > cut and now >= next_warning:
            log.say(
                "warning",
                f"Cut {buffers.cut - cut} connections whose answers were not taken or requests not finished: "
                f"together they held more than {buffers.limit} bytes (BUFFER_BYTES).",
            )
            cut, next_warning = buffers.cut, now + _WARN_SECONDS


class ServerState:
    """What all connections of a server share: who they are, what is still to be finished, the Date header."""

    def __init__(self) -> None:
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Future[None]] = set()
        self.renew_date()

    def renew_date(self) -> None:
        """Set the Date header to the time of now."""
        self.date = b"date: %b\r\n" % formatdate(usegmt=True).encode()


class Connection(asyncio.Protocol):
    """One connection."""

    app: App
    most_connections = 0
    batcher: RequestBatcher | None = None
    write: Callable[[bytes | bytearray], None]  # the transport's own
    write_all: Callable[[Iterable[bytes | bytearray | memoryview]], None]

    def __init__(self, *, server_state: ServerState) -> None:
        self._state = server_state
        self._loop = asyncio.get_running_loop()
        self._batcher = self._batcher_of(self._loop)
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._parser = _parser(self)
        self._client: str | None = None
        self._exchange: Exchange | None = None  # the one that arrives, or arrived last
        self._in_hand: Exchange | None = None  # the one that is answered, or was last
        self._queue: deque[Exchange] = deque()  # those that came before the answers ahead of them were out
        self._new: Exchange | None = None
        self._unparsed = b""  # what came behind requests that are still to be answered
        self._body_left = _UNFRAMED  # bytes of the body that are still to come, where its length was announced
        self._last = False  # the last request of this connection has begun: nothing that follows it is served
        self._upgrade_with_body = False  # the parser is about to hand back the body of a request for an upgrade
        self._excess = False  # something came after it
        self._lingering = False
        self._paused = False
        self._drain: asyncio.Future[None] | None = None
        self._due = _NEVER
        self._answer_late = True
        self._stall: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._patience = STALL_SECONDS
        self._head = 0  # bytes of the headers so far; -1 once they are complete
        self._tail: int | None = None  # bytes since a chunk began and gave no body: trailers, which count for nothing
        self._target = b""
        self._headers: dict[bytes, bytes] = {}

    @classmethod
    def _batcher_of(cls, loop: asyncio.AbstractEventLoop) -> RequestBatcher:
        """All connections of a server have one batcher."""
        if cls.batcher is None:
            cls.batcher = RequestBatcher(loop)
        return cls.batcher

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        self._transport = transport
        self.write = transport.write
        self.write_all = transport.writelines
        peer = transport.get_extra_info("peername")
        self._client = peer[0] if isinstance(peer, tuple) else "unix"
        self._state.connections.add(self)
        self.app.context.buffers.add(self)
        self.app.context.metrics.connections += 1
        if len(self._state.connections) > self.most_connections:
            self._refuse(503, "unavailable", "The server has as many connections as it takes; try again shortly.")
        else:
            self._expect(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Tell those who still write to it, or read from it."""
        self._state.connections.discard(self)
        self.app.context.buffers.remove(self)
        self.app.context.metrics.connections -= 1
        self._due = _NEVER
        for exchange in (self._in_hand, self._exchange, *self._queue):
            if exchange is not None:
                exchange.lost()
        self._queue.clear()
        self._unparsed = b""
        self._stop_stall_timer()
        self._release_writers()
        # Each of these holds this connection, and with it a transport that may hold an answer that was never taken.
        self._exchange = self._in_hand = self._new = None
        self._parser = None  # type: ignore[assignment]

    def expect_close(self) -> None:
        """The server stops: the request that came last is the last one, if its answer can still say so."""
        exchange = self._exchange
        if exchange is not None and exchange.state in {State.QUEUED, State.RUNNING}:
            exchange.keep_alive = False
            self._last = True

    def shutdown(self) -> None:
        """Finish the answer in hand, but not for a reader who has stopped reading; then close.

        An idle connection stays open for a moment: a proxy may just be sending a request on it, and a close would be a
        reset. That request is answered, and told that the connection ends.
        """
        self._patience = PARTING_SECONDS
        if self._stall is not None:
            self._stop_stall_timer()
            self._start_stall_timer()
        self._loop.call_later(PARTING_IDLE, self._part, self._loop.time() + PARTING_SECONDS)

    def _part(self, deadline: float) -> None:
        """Close if nothing is in hand, or look again in a moment."""
        transport, late = self._transport, self._loop.time() >= deadline
        if self not in self._state.connections:
            return
        if transport.is_closing():
            if late and not transport.get_write_buffer_size():
                transport.abort()  # nobody answers the end of TLS
        elif (self._exchange is None or self._exchange.complete) and (self._head <= 0 or late):
            transport.close()
        self._loop.call_later(PARTING_IDLE / 2, self._part, deadline)

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what came, or keep it until the answers before it are out."""
        if self.is_closing:
            return
        if self._unparsed:
            self._unparsed += data
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Parse in small pieces: a client that sends requests faster than it is answered waits with them.

        The requests of one piece may wait, parsed, for their turn; whatever lies behind them stays as it came.
        """
        while data and not (self._last and self._last_is_here):
            if self._queue or self._drain is not None:
                self._unparsed = data
                self.app.context.buffers.grow(len(data))
                break
            piece = data
            if len(data) > PARSE_AHEAD:
                in_chunks = self._exchange is not None and self._exchange.more_body
                piece = data[: max(PARSE_CHUNKS if in_chunks else PARSE_AHEAD, self._body_left)]
            data = data[len(piece) :]
            if not self._feed(piece):
                self._excess = True
                break
        if data and self._last:
            self._excess = True
        if self._new is not None:
            exchange, self._new = self._new, None
            self._take(exchange)
        self.adjust_reading()

    @property
    def _last_is_here(self) -> bool:
        """Whether all of the last request has come, so that nothing more is parsed."""
        return self._last and not (self._exchange is not None and self._exchange.more_body)

    def _feed(self, data: bytes) -> bool:
        """Give a piece to the parser; False if nothing more may follow it."""
        if self._head >= 0:
            self._head += len(data)
            if self._head > HEADER_BYTES and not self._in_body(data):
                self._refuse(431, "headers_too_large", f"The headers are larger than {HEADER_BYTES} bytes.")
                return False
        elif self._tail is not None:
            self._tail += len(data)
            if self._tail > HEADER_BYTES:
                self._transport.abort()
                return False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return self._parse_body_apart(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            if not isinstance(error.__context__, _AfterLast):
                self._refuse(400, "validation_error", NOT_HTTP)
            return False
        return True

    def _parse_body_apart(self, data: bytes) -> bool:
        """Parse the body of a request that asks for an upgrade, which the parser hands back unread.

        Such a request is answered as if it had not asked, and is the last one of its connection. Its body is given to a
        parser that sees nothing but the framing.
        """
        if not self._upgrade_with_body:
            return False
        self._upgrade_with_body = False
        framing = [b"%b: %b\r\n" % (name, self._headers[name]) for name in _FRAMING if name in self._headers]
        self._parser = _parser(_BodyParser(self))
        self._parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n")
        return not data or self._feed(data)

    def eof_received(self) -> None:
        """The client sends no more; it may still be waiting for its answer."""

    def pause_writing(self) -> None:
        """The client does not read as fast as we send: nothing more is read from it, and nothing begun for it."""
        self._drain = self._loop.create_future()
        self._start_stall_timer()
        self.app.context.buffers.grow(
            self._unsent if self._in_hand is None else int(self._in_hand.written * _ENCODER_OVERHEAD)
        )
        self.adjust_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._stop_stall_timer()
        self._release_writers()
        if self._in_hand is None or self._in_hand.complete:
            self._go_on()
            return
        if self._unparsed and not self._queue:
            data, self._unparsed = self._unparsed, b""
            self._parse(data)
        self.adjust_reading()

    def _release_writers(self) -> None:
        if self._drain is not None:
            if not self._drain.done():
                self._drain.set_result(None)
            self._drain = None

    # The parser

    def on_message_begin(self) -> None:
        """A request begins: its headers have a time to arrive, once the answers before it are out."""
        if self._last:
            raise _AfterLast
        self._head = max(1, self._head)  # its first bytes may have come with the request before
        self._tail = None
        self._target = b""
        self._headers = {}
        if self._exchange is None or self._exchange.complete:
            self._expect(HEADER_SECONDS)

    def on_url(self, url: bytes) -> None:
        """A piece of the address."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, several of one name joined as HTTP says; what comes after the body under that name is none."""
        if self._head >= 0:
            name, value = name.lower(), value.strip(b" \t")
            headers = self._headers
            if name not in headers:
                headers[name] = value
            elif name == b"host":
                raise ValueError("two Host headers")
            else:
                headers[name] += b", " + value

    def on_headers_complete(self) -> None:
        """A request: it is answered at once, or after those before it."""
        self._head = -1
        self._due = _NEVER
        path, query = _split(self._target)
        parser, headers = self._parser, self._headers
        version = parser.get_http_version()
        _check(version, headers.get(b"host"), headers.get(b"transfer-encoding"))
        method = parser.get_method().decode()
        length = headers.get(b"content-length")
        self._body_left = _UNFRAMED if length is None else int(length)
        upgrade = b"upgrade" in headers or method == "CONNECT"
        self._upgrade_with_body = method != "CONNECT" and parser.should_upgrade() and _announces_body(headers)
        exchange = Exchange(
            self,
            self.app,
            self._batcher,
            Request(self.app.context, method, path, query, headers, self._client),
            keep_alive=(
                version != "1.0" and not upgrade and parser.should_keep_alive() and not self.app.context.stopping
            ),
            oldest=version == "1.0",
            wants_continue=version != "1.0" and _expects_continue(headers.get(b"expect")),
        )
        self._last = not exchange.keep_alive
        before, self._exchange = self._exchange, exchange
        if before is None or before.complete:
            self._new = exchange  # begun once all that came with it is read, its body most of all
        else:
            if self._new is not None:
                earlier, self._new = self._new, None
                self._take(earlier)
            self._queue.append(exchange)

    def on_chunk_header(self) -> None:
        """A chunk begins, perhaps the last one."""
        self._tail = 0

    def on_body(self, body: bytes) -> None:
        """A piece of the body; what comes after the answer counts for nothing."""
        self._tail = None
        self._body_left = max(_UNFRAMED, self._body_left - len(body))
        exchange = self._exchange
        if exchange is not None and not exchange.complete:
            exchange.feed(body)
            self.app.context.buffers.grow(len(body))

    def on_message_complete(self) -> None:
        """The whole request is here."""
        if self._upgrade_with_body:
            return
        self._head = 0  # what comes next belongs to the next request
        self._body_left = _UNFRAMED
        exchange = self._exchange
        if exchange is not None:
            exchange.end()
            self._expect(IDLE_SECONDS, answer=False) if exchange.complete else self._cancel()

    def _in_body(self, data: bytes) -> bool:
        """Whether the headers end within these bytes, so that what follows is a body."""
        return b"\r\n\r\n" in data[: max(0, HEADER_BYTES - (self._head - len(data))) + 4]

    # What it holds

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept in memory for it: a response that is not taken, requests that are not answered."""
        if self._transport.is_closing():
            return 0
        held = self._transport.get_write_buffer_size()
        exchange, running = self._exchange, self._in_hand
        if self._drain is not None and running is not None:
            held = max(held, int(running.written * _ENCODER_OVERHEAD))
        held += len(self._unparsed)
        if exchange is not None:
            held += exchange.held_bytes
        return held if running is None or running is exchange else held + running.held_bytes

    @property
    def owner(self) -> str:
        """The account, or else the address, that they are kept for."""
        exchange = self._in_hand or self._exchange
        return self._client or "" if exchange is None else exchange.request.owner

    @property
    def is_busy(self) -> bool:
        """Whether its request is being carried out: to cut it would free nothing."""
        running = self._in_hand
        return running is not None and not running.complete and not running.more_body and not running.request.streaming

    # Answers

    def _take(self, exchange: Exchange) -> None:
        self._in_hand = exchange
        self._batcher.submit(exchange)

    def awaited(self) -> asyncio.Future[None]:
        """Something that the server waits for before it ends, as it waits for tasks."""
        future = self._loop.create_future()
        tasks = self._state.tasks
        tasks.add(future)
        future.add_done_callback(tasks.discard)
        return future

    @property
    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._lingering or self._transport.is_closing()

    def task(self, running: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task, which the server waits for before it ends."""
        task = self._loop.create_task(running)
        tasks = self._state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    def answered(self, exchange: Exchange) -> None:
        """An answer is out: the next request's turn, or the client's."""
        if not exchange.keep_alive:
            self._close(linger=exchange.more_body or self._excess or self._paused)
        elif not self.is_closing:
            self._go_on()

    def _go_on(self) -> None:
        """Begin the next request, or wait for one; while the client takes no answers, neither."""
        if self._drain is not None:
            return
        if self._queue:
            self._take(self._queue.popleft())
        if self._unparsed and not self._queue:
            data, self._unparsed = self._unparsed, b""
            self._parse(data)
        self.adjust_reading()
        if self._exchange is None or not self._exchange.complete:
            return
        if self._exchange.more_body:  # a client that still sends the body has a little time to finish
            self._expect(LEFTOVER_SECONDS, answer=False)
        elif self._head > 0:
            self._expect(HEADER_SECONDS)
        else:
            self._expect(IDLE_SECONDS, answer=False)

    def _close(self, *, linger: bool) -> None:
        """Close. A client that may still be sending is given the time to read its answer first.

        To close a socket with unread bytes resets the connection, and a reset can take the answer with it.
        """
        if self._lingering:
            return
        if not linger or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._lingering = True
        self._transport.write_eof()
        self._expect(LINGER_SECONDS, answer=False)
        self.adjust_reading()

    async def drained(self) -> None:
        """Wait until the client has taken enough."""
        if self._drain is not None:
            await self._drain

    def date(self) -> bytes:
        """The Date header."""
        return self._state.date

    def adjust_reading(self) -> None:
        """Read, unless the client must wait: with its next requests, with its body, or to take its answers first."""
        if self._drain is None and not self._unparsed and not self._queue:
            pause = self._exchange is not None and self._exchange.is_full and not self._lingering
        else:
            pause = not self._lingering
        if pause == self._paused or self._transport.is_closing():
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Time

    def _expect(self, seconds: float, *, answer: bool = True) -> None:
        self._due = self._loop.time() + seconds
        self._answer_late = answer

    def _cancel(self) -> None:
        self._due = _NEVER

    def check_deadline(self, now: float) -> None:
        """End what should have come by now and has not."""
        if now < self._due or self._transport.is_closing():
            return
        self._cancel()
        if self._head == 0 or not self._answer_late:
            self._transport.close()  # it never said a word: nothing to answer
        elif self._exchange is not None and not self._exchange.complete:
            self._transport.abort()  # an answer is under way: nothing can be said in the middle of it
        else:
            self._refuse(408, "request_timeout", "The request took too long to arrive.")

    def _start_stall_timer(self) -> None:
        self._unsent = self._transport.get_write_buffer_size()
        self._stall = self._loop.call_later(self._patience, self._stalled)

    def _stop_stall_timer(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _stalled(self) -> None:
        """Cut a reader that has taken nothing; one that is only slow may go on."""
        if self._transport.get_write_buffer_size() < self._unsent:
            self._start_stall_timer()
        else:
            self._transport.abort()

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Refuse what cannot be parsed as a request, and close.

        The refusal is written only where no answer is under way or due, and none was given to the same request. An
        exchange whose own body is malformed is told so; those before it are answered, and then the connection closes.
        """
        self._last = True
        self._unparsed = b""
        exchange, running = self._exchange, self._in_hand
        if exchange is not None and exchange.more_body and exchange.complete:
            self._close(linger=True)
        elif exchange is not None and not exchange.complete:
            exchange.keep_alive = False
            if running is not None and running.request.streaming:
                self._transport.abort()
            elif exchange.more_body:
                exchange.fail()
        else:
            self.app.context.metrics.turn_away(status)
            body = wire.encode(wire.responses.Failure(wire.responses.Fault(code, message, "-")))
            head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
            retry = b"retry-after: 1\r\n" if status == 503 else b""
            self._transport.write(head % (status, _STATUS[status], len(body)) + retry + b"\r\n" + body)
            self._close(linger=True)


class _AfterLast(Exception):  # noqa: N818 - nothing is wrong: what follows the last request is not parsed
    """Bytes follow the last request of a connection."""


class _BodyParser:
    """What a parser calls that is given the framing and the body of a request, and nothing else of it."""

    def __init__(self, connection: Connection) -> None:
        self.on_chunk_header = connection.on_chunk_header
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete
        self._begun = False

    def on_message_begin(self) -> None:
        """Refuse to parse what follows the body."""
        if self._begun:
            raise _AfterLast
        self._begun = True


def _parser(protocol: object) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # we close by ourselves, after the answer
    return parser


@lru_cache(maxsize=256)
def _check(version: str, host: bytes | None, coding: bytes | None) -> None:
    """Refuse what RFC 9112 refuses and the parser lets through."""
    if version not in {"1.1", "1.0"}:
        raise ValueError("not HTTP/1.1")
    if _HOST.fullmatch(host or b"") is None or (host is None and version == "1.1"):
        raise ValueError("not one Host header")
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        raise ValueError("not a known transfer coding")


def _expects_continue(expect: bytes | None) -> bool:
    """Whether 100-continue is among what a client expects; proxies look for it in a list as well."""
    return expect is not None and b"100-continue" in [one.strip(b" \t") for one in expect.lower().split(b",")]


def _announces_body(headers: dict[bytes, bytes]) -> bool:
    return b"transfer-encoding" in headers or int(headers.get(b"content-length", 0)) > 0


def _split(target: bytes) -> tuple[bytes, bytes]:
    """Path and query of an address, in any of the forms in which HTTP writes it."""
    if target.startswith(b"/") and b"#" not in target:
        path, _, query = target.partition(b"?")
        return path, query
    if target == b"*":
        return b"/*", b""
    try:
        parsed = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError:
        return b"/" + target, b""
    return parsed.path or b"/", parsed.query or b""
