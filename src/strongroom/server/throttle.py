"""How many passwords of one account may be tried at once, and how many requests it may make in a minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from strongroom.errors import RateLimited, Unavailable
from strongroom.server.patience import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


PATIENCE: Final = 5.0  # seconds


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


class Meter:
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


class Turns:
    """How many lists are sent at the same time: each holds a moment of the database for as long as its reader takes.

    One account may not take more than half of the places. Whoever comes later waits a little, and is then told to come
    again.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._taken: dict[str, int] = {}
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._waiting)

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """A place for one list."""
        if not self._free(name):
            await self._wait(name)
        self._taken[name] = self._taken.get(name, 0) + 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]
            self._wake()

    def _free(self, name: str) -> bool:
        return sum(self._taken.values()) < self._places and self._taken.get(name, 0) < max(1, self._places // 2)

    async def _wait(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._free(name):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((name, turn))
            try:
                async with await patience(max(0.0, deadline - time.monotonic())):
                    await turn
            except TimeoutError:
                raise Unavailable(1, "Too many lists are being read at the moment; try again shortly.") from None

    def _wake(self) -> None:
        """Let those look again who may find a place now."""
        for name, turn in list(self._waiting):
            if turn.done():
                self._waiting.remove((name, turn))
            elif self._free(name):
                self._waiting.remove((name, turn))
                turn.set_result(None)
                return
