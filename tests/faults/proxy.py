"""A proxy before two nodes: each new connection goes to one that says it is ready."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import Self

import httpx2

EVERY = 0.2  # seconds between two questions whether a node is ready


class Balancer:
    """Asks `GET /ready` of all, and passes bytes on."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready: set[int] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=500)
        self.port = self._server.sockets[0].getsockname()[1]
        for port in self._ports:
            self._begin(self._watch(port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, port: int) -> None:
        async with httpx2.AsyncClient(timeout=4, trust_env=False) as http:
            while True:
                try:
                    good = (await http.get(f"http://127.0.0.1:{port}/ready")).status_code == 200
                except httpx2.TransportError:
                    good = False
                (self.ready.add if good else self.ready.discard)(port)
                await asyncio.sleep(EVERY)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """No node is ready: the connection is closed, and the client retries."""
        with suppress(OSError, IndexError):
            chosen = sorted(self.ready)[next(self._turn) % max(1, len(self.ready))]
            to, back = await asyncio.open_connection("127.0.0.1", chosen)
            await asyncio.gather(_pass_on(reader, back), _pass_on(to, writer))
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()
