"""What a connection may take: how long its headers and its silence may last, how many there may be.

uvicorn parses and sends; this adds the limits that keep slow or many clients from starving the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from strongroom import wire

HEADER_SECONDS: Final = 10.0  # from the first byte of a request to the end of its headers
HEADER_BYTES: Final = 64 * 1024
LEFTOVER_SECONDS: Final = 10.0  # to go on sending a body that was answered before it was read
STALL_SECONDS: Final = 60.0  # without taking a byte of an answer
PARTING_SECONDS: Final = 2.0  # the same, while the server stops
_NEVER: Final = float("inf")
_SWEEP_SECONDS: Final = 0.25
_STATUS: Final = {408: b"Request Timeout", 431: b"Request Header Fields Too Large", 503: b"Service Unavailable"}


def protocol(most_connections: int) -> type[HttpToolsProtocol]:
    """The protocol with these limits."""
    return type("Limited", (_Limited,), {"most_connections": most_connections})


async def sweep(connections: Iterable[object]) -> None:
    """Look after all connections a few times a second: cheaper than a timer for each request."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        now = loop.time()
        for connection in list(connections):
            if isinstance(connection, _Limited):
                connection.late(now)


class _Limited(HttpToolsProtocol):
    """One connection."""

    most_connections = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._due = _NEVER
        self._answer_late = True
        self._stall: asyncio.TimerHandle | None = None
        self._head = 0  # bytes of the headers so far; -1 once they are complete
        self._tail: int | None = None  # bytes since a chunk began and gave no body: trailers, which count for nothing
        self._unsent = 0
        self._patience = STALL_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(503, "unavailable", "The server has as many connections as it takes; try again shortly.")
        else:
            self._expect(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget its timers."""
        self._cancel()
        self._watch_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, if the headers are not too long by now."""
        if self.transport.is_closing():
            return
        if self._head >= 0:
            self._head += len(data)
            if self._head > HEADER_BYTES and not self._in_body(data):
                self._refuse(431, "headers_too_large", f"The headers are larger than {HEADER_BYTES} bytes.")
                return
        elif self._tail is not None:
            self._tail += len(data)
            if self._tail > HEADER_BYTES:
                self.transport.abort()
                return
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; what comes after the body under that name is none."""
        if self._head >= 0:
            super().on_header(name, value)

    def on_chunk_header(self) -> None:
        """A chunk begins, perhaps the last one."""
        self._tail = 0

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._tail = None
        super().on_body(body)

    def _in_body(self, data: bytes) -> bool:
        """Whether the headers end within these bytes, so that what follows is a body."""
        return b"\r\n\r\n" in data[: max(0, HEADER_BYTES - (self._head - len(data))) + 4]

    def on_message_begin(self) -> None:
        """A request begins: its headers have a time to arrive."""
        self._head = max(1, self._head)  # its first bytes may have come with the request before
        self._tail = None
        self._expect(HEADER_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """They have arrived."""
        self._head = -1
        self._cancel()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """An answer is out; a client that still sends the body has a little time to finish."""
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:
            self._expect(LEFTOVER_SECONDS, answer=False)

    def on_message_complete(self) -> None:
        """The whole request is here."""
        self._cancel()
        self._head = 0  # what comes next belongs to the next request
        if self.cycle is not None:
            self.cycle.more_body = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not read as fast as we send."""
        super().pause_writing()
        self._watch()

    def _watch(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self._patience, self._stalled)

    def _stalled(self) -> None:
        """Cut a reader that has taken nothing; one that is only slow may go on."""
        if self.transport.get_write_buffer_size() < self._unsent:
            self._watch()
        else:
            self.transport.abort()

    def resume_writing(self) -> None:
        """It reads again."""
        self._watch_no_more()
        super().resume_writing()

    def _watch_no_more(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def shutdown(self) -> None:
        """The server stops: finish what is under way, but not for a reader who has stopped reading."""
        self._patience = PARTING_SECONDS
        if self._stall is not None:
            self._watch_no_more()
            self._watch()
        super().shutdown()

    def _expect(self, seconds: float, *, answer: bool = True) -> None:
        self._due = self.loop.time() + seconds
        self._answer_late = answer

    def _cancel(self) -> None:
        self._due = _NEVER

    def late(self, now: float) -> None:
        """End what should have come by now and has not."""
        if now < self._due or self.transport.is_closing():
            return
        self._cancel()
        if self._head == 0 or not self._answer_late:
            self.transport.close()  # it never said a word: nothing to answer
        elif self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # an answer is under way: nothing can be said in the middle of it
        else:
            self._refuse(408, "request_timeout", "The request took too long to arrive.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer below HTTP's usual ways, in the shape of every other refusal, and close."""
        body = wire.encode(wire.Failure(wire.Fault(code, message, "-")))
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
        retry = b"retry-after: 1\r\n" if status == 503 else b""
        self.transport.write(head % (status, _STATUS[status], len(body)) + retry + b"\r\n" + body)
        self.transport.close()
