"""A client that reads a response piece by piece."""

from __future__ import annotations

import asyncio
from typing import Any


class SlowReader:
    """A reader who takes one piece at a time, and may go away."""

    def __init__(self, app: Any, token: str, path: str = "/auth/export", query: str = "") -> None:
        self.read = bytearray()
        self._gone = asyncio.Event()
        self._turns = asyncio.Semaphore(0)
        self._had = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
            "client": ("127.0.0.1", 5),
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self._turns.acquire()
        self.read += message.get("body", b"")
        self._had.set()

    async def take(self, pieces: int) -> None:
        """Read so many pieces."""
        for _ in range(pieces):
            self._had.clear()
            self._turns.release()
            await self._had.wait()

    async def rest(self) -> bytes:
        """Read to the end."""
        for _ in range(1_000):
            self._turns.release()
        await self.task
        return bytes(self.read)

    async def go_away(self) -> None:
        """Break the connection off."""
        self._gone.set()
        await asyncio.sleep(0)
        for _ in range(10):
            self._turns.release()
        await self.task
