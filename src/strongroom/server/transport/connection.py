"""HTTP/1.1 connections: parsing, pipelining, timeouts, backpressure and limits.

httptools parses; the limits are here: the time for headers and between requests, the size of headers, the number of
connections, how long a client may read nothing of its response, and how far ahead of the responses requests are parsed.
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
HEADERS: Final = 100  # more are refused: each costs as much as many bytes
IDLE_SECONDS: Final = 75.0  # between two requests
LEFTOVER_SECONDS: Final = 10.0  # to finish a body after an early response
STALL_SECONDS: Final = 60.0  # without reading a byte of a response
SHUTDOWN_SECONDS: Final = 2.0  # the same, while the server stops; and for a request that has begun to arrive by then
SHUTDOWN_IDLE: Final = (
    0.5  # an idle connection stays open for this long while the server stops: a request may be on its way
)
LINGER_SECONDS: Final = (
    2.0  # to read the last response while the client still sends: closing at once would reset the connection
)
PARSE_AHEAD: Final = 4 * 1024  # bytes that are parsed at once outside of bodies: bounds the queue of parsed requests
PARSE_CHUNKS: Final = 16 * 1024  # the same within a body whose length is not known
_NEVER: Final = float("inf")
_SWEEP_SECONDS: Final = 0.25
_WARN_SECONDS: Final = 60.0
_ENCODER_OVERHEAD: Final = 1.5  # memory of a response of the JSON encoder, as a multiple of its bytes
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
    """A connection class for this application, with a limit of connections."""
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
    """What all connections of a server share: their set, unfinished requests, the Date header."""

    def __init__(self) -> None:
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Future[None]] = set()
        self.renew_date()

    def renew_date(self) -> None:
        """Set the Date header to the current time."""
        self.date = b"date: %b\r\n" % formatdate(usegmt=True).encode()


class Connection(asyncio.Protocol):
    """One connection of a client."""

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
        self._exchange: Exchange | None = None  # the request that is arriving, or arrived last
        self._running: Exchange | None = None  # the request that is being handled, or was last
        self._queue: deque[Exchange] = deque()  # pipelined requests, parsed and not begun
        self._new: Exchange | None = None
        self._unparsed = b""  # bytes behind the queued requests
        self._body_left = _UNFRAMED  # bytes of the body that are missing, where there is a Content-Length
        self._last = False  # the last request of this connection has begun: nothing after it is served
        self._upgrade_with_body = False  # the parser is about to hand back the body of a request for an upgrade
        self._excess = False  # something came after it
        self._lingering = False
        self._paused = False
        self._drain: asyncio.Future[None] | None = None
        self._deadline = _NEVER
        self._respond_when_late = True
        self._stall: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._stall_seconds = STALL_SECONDS
        self._head = 0  # bytes of the headers so far; -1 once they are complete
        self._tail: int | None = None  # bytes since a chunk began and gave no body: trailers, which count for nothing
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._repeated: dict[bytes, list[bytes]] = {}  # the values of headers that came more than once
        self._header_count = 0

    @classmethod
    def _batcher_of(cls, loop: asyncio.AbstractEventLoop) -> RequestBatcher:
        """The batcher, which all connections of a server share."""
        if cls.batcher is None:
            cls.batcher = RequestBatcher(loop)
        return cls.batcher

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it with 503 if there are too many."""
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
            self._set_deadline(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Disconnect the exchanges, and release what they hold."""
        self._state.connections.discard(self)
        self.app.context.buffers.remove(self)
        self.app.context.metrics.connections -= 1
        self._deadline = _NEVER
        for exchange in (self._running, self._exchange, *self._queue):
            if exchange is not None:
                exchange.disconnect()
        self._queue.clear()
        self._unparsed = b""
        self._stop_stall_timer()
        self._release_writers()
        # Each of these references this connection, and so a transport that may hold a response that was never read.
        self._exchange = self._running = self._new = None
        self._parser = None  # type: ignore[assignment]

    def expect_close(self) -> None:
        """Announce `Connection: close` with the current response, if its headers are not sent: the server stops."""
        exchange = self._exchange
        if exchange is not None and exchange.state in {State.QUEUED, State.RUNNING}:
            exchange.keep_alive = False
            self._last = True

    def shutdown(self) -> None:
        """Finish the current response, unless the client has stopped reading; then close.

        An idle connection stays open for a moment: a proxy may just be sending a request on it, and a close would be a
        reset. That request is served, with `Connection: close`.
        """
        self._stall_seconds = SHUTDOWN_SECONDS
        if self._stall is not None:
            self._stop_stall_timer()
            self._start_stall_timer()
        self._loop.call_later(SHUTDOWN_IDLE, self._close_when_idle, self._loop.time() + SHUTDOWN_SECONDS)

    def _close_when_idle(self, deadline: float) -> None:
        """Close if no request is under way, or check again in a moment."""
        transport, late = self._transport, self._loop.time() >= deadline
        if self not in self._state.connections:
            return
        if transport.is_closing():
            if late and not transport.get_write_buffer_size():
                transport.abort()  # the client does not answer the TLS shutdown
        elif (self._exchange is None or self._exchange.complete) and (self._head <= 0 or late):
            transport.close()
        self._loop.call_later(SHUTDOWN_IDLE / 2, self._close_when_idle, deadline)

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, or hold it until the responses before it are sent."""
        if self.is_closing:
            return
        if self._unparsed:
            self._unparsed += data
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Parse in small pieces: backpressure for a client that pipelines faster than it is served.

        The requests of one piece may be queued, parsed; the bytes behind them stay unparsed.
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
            self._submit(exchange)
        self.adjust_reading()

    @property
    def _last_is_here(self) -> bool:
        """Whether the last request has arrived completely, so that nothing more is parsed."""
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
            if isinstance(error.__context__, _TooManyHeaders):
                self._refuse(431, "headers_too_large", f"There are more than {HEADERS} headers.")
            elif not isinstance(error.__context__, _AfterLast):
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
        """Ignore a half-close: the client may still wait for its response."""

    def pause_writing(self) -> None:
        """Stop reading and start no request, because the client does not read its response."""
        self._drain = self._loop.create_future()
        self._start_stall_timer()
        self.app.context.buffers.grow(
            self._unsent if self._running is None else int(self._running.written * _ENCODER_OVERHEAD)
        )
        self.adjust_reading()

    def resume_writing(self) -> None:
        """Go on, because the client reads again."""
        self._stop_stall_timer()
        self._release_writers()
        if self._running is None or self._running.complete:
            self._next_request()
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
        """Start the header timeout, once the responses before it are sent."""
        if self._last:
            raise _AfterLast
        self._head = max(1, self._head)  # its first bytes may have come with the request before
        self._tail = None
        self._target = b""
        self._headers = {}
        self._repeated = {}
        self._header_count = 0
        if self._exchange is None or self._exchange.complete:
            self._set_deadline(HEADER_SECONDS)

    def on_url(self, url: bytes) -> None:
        """Collect the request target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; repeated ones are joined with a comma. Trailers are ignored."""
        if self._head >= 0:
            name, value = name.lower(), value.strip(b" \t")
            headers = self._headers
            self._header_count += 1
            if self._header_count > HEADERS:
                raise _TooManyHeaders
            if name not in headers:
                headers[name] = value
            elif name == b"host":
                raise ValueError("two Host headers")
            else:
                self._repeated.setdefault(name, [headers[name]]).append(value)

    def on_headers_complete(self) -> None:
        """Start the request, or queue it behind those before it."""
        self._head = -1
        self._deadline = _NEVER
        for name, values in self._repeated.items():
            self._headers[name] = b", ".join(values)
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
            http_1_0=version == "1.0",
            wants_continue=version != "1.0" and _expects_continue(headers.get(b"expect")),
        )
        self._last = not exchange.keep_alive
        before, self._exchange = self._exchange, exchange
        if before is None or before.complete:
            self._new = exchange  # begun once all that arrived with it is parsed, above all its body
        else:
            if self._new is not None:
                earlier, self._new = self._new, None
                self._submit(earlier)
            self._queue.append(exchange)

    def on_chunk_header(self) -> None:
        """Count from the beginning of a chunk, which may be the last one."""
        self._tail = 0

    def on_body(self, body: bytes) -> None:
        """Pass a piece of the body on; what arrives after the response is discarded."""
        self._tail = None
        self._body_left = max(_UNFRAMED, self._body_left - len(body))
        exchange = self._exchange
        if exchange is not None and not exchange.complete:
            exchange.feed(body)
            self.app.context.buffers.grow(len(body))

    def on_message_complete(self) -> None:
        """Finish the request: all of it has arrived."""
        if self._upgrade_with_body:
            return
        self._head = 0  # what comes next belongs to the next request
        self._body_left = _UNFRAMED
        exchange = self._exchange
        if exchange is not None:
            exchange.end()
            self._set_deadline(IDLE_SECONDS, answer=False) if exchange.complete else self._clear_deadline()

    def _in_body(self, data: bytes) -> bool:
        """Whether the headers end within these bytes, so that what follows is a body."""
        return b"\r\n\r\n" in data[: max(0, HEADER_BYTES - (self._head - len(data))) + 4]

    # Buffers

    @property
    def held_bytes(self) -> int:
        """The bytes in memory: a response that is not read, requests that are not handled."""
        if self._transport.is_closing():
            return 0
        held = self._transport.get_write_buffer_size()
        exchange, running = self._exchange, self._running
        if self._drain is not None and running is not None:
            held = max(held, int(running.written * _ENCODER_OVERHEAD))
        held += len(self._unparsed)
        if exchange is not None:
            held += exchange.held_bytes
        return held if running is None or running is exchange else held + running.held_bytes

    @property
    def owner(self) -> str:
        """The account, or else the address, that the buffers belong to."""
        exchange = self._running or self._exchange
        return self._client or "" if exchange is None else exchange.request.owner

    @property
    def is_busy(self) -> bool:
        """Whether its request is running: to cut it would free nothing."""
        running = self._running
        return running is not None and not running.complete and not running.more_body and not running.request.streaming

    # Responses

    def _submit(self, exchange: Exchange) -> None:
        self._running = exchange
        self._batcher.submit(exchange)

    def awaited(self) -> asyncio.Future[None]:
        """A future that the server waits for before it stops, as it waits for tasks."""
        future = self._loop.create_future()
        tasks = self._state.tasks
        tasks.add(future)
        future.add_done_callback(tasks.discard)
        return future

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._lingering or self._transport.is_closing()

    def task(self, running: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task, which the server waits for before it stops."""
        task = self._loop.create_task(running)
        tasks = self._state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    def response_sent(self, exchange: Exchange) -> None:
        """Go on after a response: close, start the next request, or wait for one."""
        if not exchange.keep_alive:
            self._close(linger=exchange.more_body or self._excess or self._paused)
        elif not self.is_closing:
            self._next_request()

    def _next_request(self) -> None:
        """Start the next request, or wait for one; neither while the client does not read."""
        if self._drain is not None:
            return
        if self._queue:
            self._submit(self._queue.popleft())
        if self._unparsed and not self._queue:
            data, self._unparsed = self._unparsed, b""
            self._parse(data)
        self.adjust_reading()
        if self._exchange is None or not self._exchange.complete:
            return
        if self._exchange.more_body:  # a client that still sends the body has a little time to finish
            self._set_deadline(LEFTOVER_SECONDS, answer=False)
        elif self._head > 0:
            self._set_deadline(HEADER_SECONDS)
        else:
            self._set_deadline(IDLE_SECONDS, answer=False)

    def _close(self, *, linger: bool) -> None:
        """Close; linger if the client may still be sending.

        To close a socket with unread bytes resets the connection, and a reset can discard the response.
        """
        if self._lingering:
            return
        if not linger or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._lingering = True
        self._transport.write_eof()
        self._set_deadline(LINGER_SECONDS, answer=False)
        self.adjust_reading()

    async def drained(self) -> None:
        """Wait until the write buffer has drained."""
        if self._drain is not None:
            await self._drain

    def date(self) -> bytes:
        """The Date header."""
        return self._state.date

    def adjust_reading(self) -> None:
        """Pause or resume reading: the client may have to wait with its requests, or to read its response first."""
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

    # Timeouts

    def _set_deadline(self, seconds: float, *, answer: bool = True) -> None:
        self._deadline = self._loop.time() + seconds
        self._respond_when_late = answer

    def _clear_deadline(self) -> None:
        self._deadline = _NEVER

    def check_deadline(self, now: float) -> None:
        """Close or refuse if the deadline has passed."""
        if now < self._deadline or self._transport.is_closing():
            return
        self._clear_deadline()
        if self._head == 0 or not self._respond_when_late:
            self._transport.close()  # it sent nothing: there is nothing to respond to
        elif self._exchange is not None and not self._exchange.complete:
            self._transport.abort()  # a response is under way: a refusal cannot be sent in the middle of it
        else:
            self._refuse(408, "request_timeout", "The request took too long to arrive.")

    def _start_stall_timer(self) -> None:
        self._unsent = self._transport.get_write_buffer_size()
        self._stall = self._loop.call_later(self._stall_seconds, self._stalled)

    def _stop_stall_timer(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _stalled(self) -> None:
        """Cut a client that has read nothing; one that is only slow may go on."""
        if self._transport.get_write_buffer_size() < self._unsent:
            self._start_stall_timer()
        else:
            self._transport.abort()

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Refuse what cannot be parsed as a request, and close.

        The refusal is written only where no response is under way or due, and none was sent for the same request. An
        exchange whose own body is malformed fails; those before it are served, and then the connection closes.
        """
        self._last = True
        self._unparsed = b""
        exchange, running = self._exchange, self._running
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


class _TooManyHeaders(Exception):  # noqa: N818 - a refusal, not a fault
    """The request has more headers than are accepted."""


class _BodyParser:
    """Parser callbacks for the framing and the body of a request, without its other headers."""

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
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # the connection closes after the response
    return parser


@lru_cache(maxsize=256)
def _check(version: str, host: bytes | None, coding: bytes | None) -> None:
    """Raise ValueError for what RFC 9112 forbids and the parser accepts."""
    if version not in {"1.1", "1.0"}:
        raise ValueError("not HTTP/1.1")
    if _HOST.fullmatch(host or b"") is None or (host is None and version == "1.1"):
        raise ValueError("not one Host header")
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        raise ValueError("not a known transfer coding")


def _expects_continue(expect: bytes | None) -> bool:
    """Whether 100-continue is among the expectations; proxies accept it in a list as well."""
    return expect is not None and b"100-continue" in [one.strip(b" \t") for one in expect.lower().split(b",")]


def _announces_body(headers: dict[bytes, bytes]) -> bool:
    return b"transfer-encoding" in headers or int(headers.get(b"content-length", 0)) > 0


def _split(target: bytes) -> tuple[bytes, bytes]:
    """Path and query of a request target, in any form of HTTP."""
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
