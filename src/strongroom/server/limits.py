"""How many passwords of one account may be tried at once, and how many requests it may make in a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from strongroom.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class AttemptGate:
    """Lets in only as many attempts at once as could all fail without passing the limit; the others wait their turn.

    Without it, a hundred guesses sent at the same moment would all be checked before the first is counted.
    """

    def __init__(self) -> None:
        self._inside: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def attempt(self, name: str, attempts_left: Callable[[], Awaitable[int]]) -> AsyncIterator[None]:
        """Wait until one more attempt fits under this name; `attempts_left` says how many may fail, or refuses."""
        self._inside[name] = self._inside.get(name, 0) + 1
        try:
            while await attempts_left() < self._inside[name]:
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


class RateLimit:
    """Counts an account's requests of the current minute, in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._minute = 0
        self._counts: dict[str, int] = {}

    def count(self, name: str, now: int) -> None:
        """One more; refused when the minute's share is used up."""
        if not self._most:
            return
        minute, into = divmod(now, 60_000)
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count > self._most:
            wait = -(-(60_000 - into) // 1000)
            raise RateLimited(wait, f"This account may make {self._most} requests a minute; wait and try again.")
