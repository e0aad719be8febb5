"""A transport that records what is written, and an application that records what reaches it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, Final

from strongroom.server import routes
from strongroom.server.app import App
from strongroom.server.context import AppContext
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Chunks, Response
from strongroom.server.routing import Router

_TURNS: Final = 3  # of the loop, which the slow routes wait for


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


def echoed(body: bytes) -> bytes:
    return json.dumps({"body": body.decode("latin-1")}).encode()


class RecordingApp(App):
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
        return Response(echoed(await self._body(request)))

    async def _early(self, request: Request) -> Response:
        """Response without a look at the body."""
        self.had_body.add(request.request_id)
        return Response(b'{"early": true}', 403)

    async def _slow(self, request: Request) -> Response:
        """Read the body, and take a few turns of the loop."""
        body = await self._body(request)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return Response(echoed(body))

    async def _stream(self, request: Request) -> Response:
        """Response in chunks, with turns of the loop between them."""
        self.had_body.add(request.request_id)

        async def chunks() -> Chunks:
            for _ in range(_TURNS):
                yield b'{"chunk": true}\n'
                await asyncio.sleep(0)

        return Response(chunks=chunks())
