"""An exchange: one request and its response on a connection."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from strongroom.errors import Invalid, Refusal
from strongroom.server.request import EMPTY_BODY, ClientDisconnected, Request
from strongroom.server.response import Response, StreamAborted, size_of
from strongroom.server.timeouts import become_task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from strongroom.server.app import App
    from strongroom.server.transport.batching import RequestBatcher

HIGH_WATER: Final = 64 * 1024  # bytes of a body that wait to be read before the client must pause
NOT_HTTP: Final = "The request is not valid HTTP/1.1."
_LINES: Final = {status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_END: Final = b"\r\n"
_CLOSE: Final = b"connection: close\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"


class State(Enum):
    """How far an exchange has come. Where it is `DISCONNECTED`, the request may still be running."""

    QUEUED = auto()  # it waits for the responses before its own
    RUNNING = auto()
    HEADERS_SENT = auto()  # they are written, or about to be: they say whether the connection ends
    COMPLETE = auto()  # all of the response is with the transport
    DISCONNECTED = auto()  # the client has gone before that


class BodyState(Enum):
    """How much of the request's body has arrived."""

    INCOMPLETE = auto()
    COMPLETE = auto()
    MALFORMED = auto()  # the rest will never come


class ExchangeConnection(Protocol):
    """The connection of a request, as the exchange uses it."""

    write: Callable[[bytes | bytearray], None]
    write_all: Callable[[Iterable[bytes | bytearray | memoryview]], None]

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""

    def abort(self) -> None:
        """Cut the connection."""

    def adjust_reading(self) -> None:
        """Pause or resume reading."""

    def awaited(self) -> asyncio.Future[None]:
        """A future that the server waits for before it stops, as it waits for tasks."""

    def task(self, running: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task, which the server waits for before it stops."""

    async def drained(self) -> None:
        """Wait until the write buffer has drained."""

    def date(self) -> bytes:
        """The Date header."""

    def response_sent(self, exchange: Exchange) -> None:
        """Go on after a response: close, start the next request, or wait for one."""


class Exchange:
    """A request from the end of its headers until its response is sent."""

    __slots__ = (
        "_app",
        "_batcher",
        "_body",
        "_body_state",
        "_connection",
        "_continue",
        "_ended",
        "_http_1_0",
        "_pieces",
        "_response",
        "_running",
        "_sent",
        "_waiter",
        "keep_alive",
        "request",
        "state",
        "task",
        "written",
    )

    def __init__(
        self,
        connection: ExchangeConnection,
        app: App,
        batcher: RequestBatcher,
        request: Request,
        *,
        keep_alive: bool,
        http_1_0: bool,
        wants_continue: bool,
    ) -> None:
        self._connection = connection
        self._app = app
        self._batcher = batcher
        self._body = b""
        self._body_state = BodyState.INCOMPLETE
        self._waiter: asyncio.Future[None] | None = None
        self._continue = wants_continue
        self._sent = 0
        self._http_1_0 = http_1_0  # which has no chunked coding
        self.request = request
        self.keep_alive = keep_alive
        self.state = State.QUEUED
        self.task: asyncio.Task[None] | None = None
        self.written = 0  # bytes of the last write, or prepared for the next: in memory until the client has read them
        self._running: Coroutine[Any, Any, None] | None = None
        self._response: Response | None = None
        self._ended: asyncio.Future[None] | None = None  # where the server waits for it without a task
        self._pieces: bytes | list[Any] | None = None  # of a complete response, until it is sent

    @property
    def complete(self) -> bool:
        """Whether all of the response is with the transport."""
        return self.state is State.COMPLETE

    @property
    def disconnected(self) -> bool:
        """Whether the client has gone before it had the response."""
        return self.state is State.DISCONNECTED

    @property
    def sender(self) -> str:
        """The account of the token, where that was verified before, or else the address."""
        return self.request.sender

    # The body

    @property
    def more_body(self) -> bool:
        """Whether the end of the body has not arrived."""
        return self._body_state is not BodyState.COMPLETE

    @property
    def whole(self) -> bytes | None:
        """The body, if all of it has arrived and none of it was read."""
        return None if self.more_body or self.disconnected else self._body

    async def more(self) -> tuple[bytes, bool]:
        """Read the next piece of the body, and whether there are more."""
        if self._continue and not self.disconnected:
            self._continue = False
            self._connection.write(_CONTINUE)
        while not self._body and self._body_state is BodyState.INCOMPLETE and not self.disconnected:
            self._connection.adjust_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.disconnected:
            raise ClientDisconnected
        if self._body_state is BodyState.MALFORMED:
            raise Invalid({}, NOT_HTTP)
        piece, self._body = self._body, b""
        return piece, self.more_body

    async def wait_disconnected(self) -> None:
        """Wait until the client has disconnected."""
        while not self.disconnected:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def feed(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._body = self._body + piece if self._body else piece
        self.wake()

    @property
    def is_full(self) -> bool:
        """Whether more of the body is buffered than should be."""
        return len(self._body) > HIGH_WATER and not self.complete

    @property
    def held_bytes(self) -> int:
        """The bytes of the body in memory."""
        return 0 if self.complete else len(self._body) + self.request.buffered

    def fail(self) -> None:
        """Mark the body as malformed: its rest will never arrive."""
        self._body_state = BodyState.MALFORMED
        self.wake()

    def end(self) -> None:
        """Mark the body as complete."""
        self._body_state = BodyState.COMPLETE
        self.wake()

    def wake(self) -> None:
        """Wake the reader of the body, if it waits."""
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
            self._waiter = None

    def disconnect(self) -> None:
        """Handle that the client has disconnected; a stream is cancelled."""
        if self.complete or self.disconnected:
            return
        was_running, self.state = self.state is not State.QUEUED, State.DISCONNECTED
        self.wake()
        if self.task is not None and self.request.streaming:
            self.task.cancel()
        elif was_running:
            self._register_unfinished()

    # The response

    def begin(self) -> None:
        """Handle the request, as far as it goes without waiting.

        Most requests wait for nothing, or for one commit, and a task is a tenth of what a read costs. So the coroutine
        is driven here, and becomes a task when it asks to (`become_task`). Where the database is always waited for, it
        is one from the beginning. See docs/decisions/0013-requests-are-not-tasks.md.
        """
        self.request.body = self  # not earlier: the two hold each other, and `record` comes only for what was begun
        self._running = self.run()
        if self.disconnected:
            self._register_unfinished()
        else:
            self.state = State.RUNNING
        if self._app.context.db.waits:
            self._become_a_task()
        else:
            self._step()

    def _step(self, _future: object = None) -> None:
        assert self._running is not None  # noqa: S101 - it is None only after its end
        try:
            awaited = self._running.send(None)
        except (StopIteration, asyncio.CancelledError):
            return
        if awaited is None:
            self._become_a_task()
        else:
            awaited._asyncio_future_blocking = False  # noqa: SLF001 - which a task would do
            awaited.add_done_callback(self._step)

    def _register_unfinished(self) -> None:
        """Let the server wait for this request before it stops, although its client has disconnected."""
        if self.task is None and self._running is not None:
            self._ended = self._connection.awaited()

    def _become_a_task(self) -> None:
        assert self._running is not None  # noqa: S101
        self.task = self._connection.task(self._running)

    async def run(self) -> None:
        """Make the response: complete, to be sent by the batcher, or streamed here."""
        try:
            response = self._response = await self._app.handle(self.request)
            if response is None or self.disconnected:
                return
            if response.chunks is None:
                self._sent = response.size
                self._pieces = self._whole(response)
            else:
                await self._stream(response)
        except (StreamAborted, Refusal) as reason:  # only a cut shows the client that a stream is incomplete
            if self._response is not None:
                self._response.ended = getattr(reason, "code", "cut")
        except Exception as error:  # noqa: BLE001 - a stream that broke off
            self._app.context.log.fault(error, self.request.request_id)
        finally:
            self._batcher.complete(self, self._sent)

    def send(self) -> None:
        """Send the response, unless it was streamed or the client has disconnected."""
        pieces, self._pieces = self._pieces, None
        if self._connection.is_closing:
            return
        if pieces is not None:
            self.written = self._sent
            if isinstance(pieces, bytes):
                self._connection.write(pieces)
            else:
                self._connection.write_all(pieces)
            self._finish()
        if not self.complete:
            self._connection.abort()  # the response is incomplete: only a cut shows that to the client

    def break_off(self, error: Exception) -> None:
        """Log an unexpected failure of a step, and cut the connection."""
        self._app.context.log.fault(error, self.request.request_id)
        self._connection.abort()
        self._release()

    def record(self) -> None:
        """Log and count the request."""
        request, response, self._response = self.request, self._response, None  # which may be large, and is sent
        if response is None:
            self._app.log_request(request, 499, 0)
        else:
            self._app.log_request(request, response.status, self._sent, response.ended)
        request.body = EMPTY_BODY  # a reference cycle otherwise
        self._release()

    def _release(self) -> None:
        self.task = self._running = None  # which reference this exchange, and perhaps what was being sent
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _whole(self, response: Response) -> bytes | list[Any]:
        head, body = self._head(response), response.body
        if self.request.method == "HEAD":
            return b"".join(head)
        if isinstance(body, list):
            return [*head, *body]
        if len(body) > HIGH_WATER:
            return [*head, body]
        return b"".join((*head, body))

    async def _stream(self, response: Response) -> None:
        """Send chunks as the client reads them: the next is made once most of the one before was read."""
        assert response.chunks is not None  # noqa: S101
        bare = self.request.method == "HEAD"
        pieces: Sequence[bytes | bytearray | memoryview]
        await become_task()  # which is cancelled when the client disconnects
        if self.disconnected:
            await response.chunks.aclose()
            return
        self.request.streaming = True
        try:
            if self._http_1_0:
                self.keep_alive = False
            self._connection.write(b"".join(self._head(response)))
            if not bare:
                async for chunk in response.chunks:
                    if self.disconnected:
                        return
                    length = size_of(chunk)
                    self._sent += length
                    self.written = max(length, response.prepared)
                    response.prepared = max(0, response.prepared - length)
                    pieces = chunk if isinstance(chunk, list) else (chunk,)
                    self._connection.write_all(pieces if self._http_1_0 else (b"%x\r\n" % length, *pieces, b"\r\n"))
                    await self._connection.drained()
        finally:
            chunk, pieces = b"", []  # a traceback would reference the chunk
            self.request.streaming = False
            await response.chunks.aclose()  # releases the database
        if not bare and not self._http_1_0:
            self._connection.write(b"0\r\n\r\n")
        self._finish()

    def _head(self, response: Response) -> tuple[bytes, ...]:
        self.state = State.HEADERS_SENT
        if response.closes:
            self.keep_alive = False
            end = _END
        else:
            headers = self.request.headers
            if self.more_body and (b"expect" in headers or b"transfer-encoding" in headers):
                self.keep_alive = False  # the body may never come, or turn out malformed after the next request is sent
            end = _END if self.keep_alive else _CLOSE
        if response.chunks is not None and not self._http_1_0 and self.request.method != "HEAD":
            end = _CHUNKED + end
        return _LINES[response.status], self._connection.date(), response.head(), end

    def _finish(self) -> None:
        self.state = State.COMPLETE
        self._continue = False
        self._body = b""
        self._connection.response_sent(self)
