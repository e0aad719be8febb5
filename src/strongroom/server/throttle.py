"""Whose failures count together, and how many passwords of one account may be tried at the same moment."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@lru_cache(maxsize=4096)
def counted_address(host: str) -> str:
    """The address that failures count for: an IPv6 customer has a whole /64, so that counts as one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address.packed[:8] + bytes(8), 64)))
    return str(address)


class Gate:
    """Lets in only as many attempts at once as could all fail without passing the limit; the others wait their turn.

    Without it, a hundred guesses sent at the same moment would all be checked before the first is counted.
    """

    def __init__(self) -> None:
        self._inside: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def attempt(self, name: str, room: Callable[[], Awaitable[int]]) -> AsyncIterator[None]:
        """Wait until there is room for one more attempt under this name; `room` says how many may fail, or refuses."""
        self._inside[name] = self._inside.get(name, 0) + 1
        try:
            while await room() < self._inside[name]:
                await self._wait(name)
            yield
        finally:
            self._inside[name] -= 1
            if not self._inside[name]:
                del self._inside[name]
            self._wake(name)

    async def _wait(self, name: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        self._inside[name] -= 1
        try:
            await turn
        finally:
            self._inside[name] = self._inside.get(name, 0) + 1

    def _wake(self, name: str) -> None:
        waiting = self._waiting.get(name)
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        if waiting is not None and not waiting:
            self._waiting.pop(name, None)
