"""The server's HTTP layer, ready to be fed: its own protocol class on a real event loop, with the real application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from strongroom import Server, create_server
from strongroom.server.transport import connection as transport
from tests.http_differential.cut import Cut
from tests.http_differential.outcome import Outcome, read_answers
from tests.http_differential.recording import RecordingApp, RecordingTransport
from tests.kit.servers.internals import context_of
from tests.kit.servers.secret import SECRET


class Layer:
    """Our HTTP layer, ready to be fed."""

    def __init__(self, app: RecordingApp, wrap: Callable[[type[Any]], type[Any]] | None) -> None:
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


def with_routes(server: Server) -> RecordingApp:
    """The application of a server, with the routes of these tests beside its own."""
    return RecordingApp(context_of(server))


@asynccontextmanager
async def layer(folder: Path, wrap: Callable[[type[Any]], type[Any]] | None = None) -> AsyncIterator[Layer]:
    """Our HTTP layer over the database in a folder; `wrap` may plant a fault in its connection."""
    server = create_server(jwt_secret=SECRET, db_path=folder / "vault.db")
    try:
        yield Layer(with_routes(server), wrap)
    finally:
        await server.release()
