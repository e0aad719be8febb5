"""Limits in this process: concurrent attempts and long writes, right passwords of an account, requests a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from strongroom.errors import RateLimited, Unavailable
from strongroom.rules import FAILURE_WINDOW
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

R = TypeVar("R")
LONG_WRITE_SECONDS: Final = 20.0  # that a long write waits for others


class AttemptGate:
    """Admits only as many concurrent attempts as may all fail within the limit; the others wait.

    Without it, a hundred concurrent guesses would all be checked before the first failure is counted.
    """

    def __init__(self) -> None:
        self._inside: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def attempt(self, name: str, attempts_left: Callable[[], Awaitable[int]]) -> AsyncIterator[None]:
        """Wait until one more attempt is admitted under this name; `attempts_left` counts them, or refuses."""
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
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(waiter)
        self._inside[name] -= 1
        try:
            await waiter
        finally:
            self._inside[name] = self._inside.get(name, 0) + 1

    def _wake(self, name: str) -> None:
        waiting = self._waiting.get(name)
        while waiting:
            waiter = waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        if waiting is not None and not waiting:
            self._waiting.pop(name, None)


class LongWrites:
    """Admits one long write of each account, and so many in all; the others wait, before the database.

    On PostgreSQL a write waits for its account's row with a connection in hand: many of one account would take all.
    On a file one is admitted: the writer keeps to the order, and a short write would wait for all before it.
    """

    def __init__(self, most: int) -> None:
        self._accounts = AttemptGate()
        self._all = asyncio.Semaphore(most)  # of each account one waits for it at most, so accounts take turns

    async def run(self, owner: str, write: Callable[[], Awaitable[R]]) -> R:
        """Run a long write of this account in its turn; refused when that takes too long."""
        async with AsyncExitStack() as admitted:
            try:
                async with await timeout(LONG_WRITE_SECONDS):
                    await admitted.enter_async_context(self._accounts.attempt(owner, _one))
                    await admitted.enter_async_context(self._all)
            except TimeoutError:
                raise Unavailable(1, "Too many large writes are under way; try again shortly.") from None
            return await write()


async def _one() -> int:
    return 1


class LoginLimit:
    """Login limit: the right passwords of each account in the current quarter of an hour, in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._quarter = 0
        self._counts: dict[str, int] = {}
        self._proven: set[tuple[str, str]] = set()  # accounts and addresses with a right password

    def check(self, account: str, address: str, now: int) -> None:
        """Refuse before the work, but only an address that has given the password: others learn nothing."""
        self._forget(now)
        if self._most and self._counts.get(account, 0) >= self._most and (account, address) in self._proven:
            raise self._refusal(now)

    def count(self, account: str, address: str, now: int) -> None:
        """Count a right password; refused when the limit of this quarter of an hour is reached."""
        if not self._most:
            return
        self._forget(now)
        self._proven.add((account, address))
        count = self._counts[account] = self._counts.get(account, 0) + 1
        if count > self._most:
            raise self._refusal(now)

    def _forget(self, now: int) -> None:
        quarter = now // FAILURE_WINDOW
        if quarter != self._quarter:
            self._quarter, self._counts, self._proven = quarter, {}, set()

    def _refusal(self, now: int) -> RateLimited:
        wait = -(-(FAILURE_WINDOW - now % FAILURE_WINDOW) // 1000)
        return RateLimited(wait, f"This account may log in {self._most} times in 15 minutes; wait and try again.")


class RateLimit:
    """Rate limit: the requests of each account in the current minute, in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._minute = 0
        self._counts: dict[str, int] = {}

    def count(self, name: str, now: int) -> None:
        """Count a request; refused when the limit of this minute is reached."""
        if not self._most:
            return
        minute, into = divmod(now, 60_000)
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count > self._most:
            wait = -(-(60_000 - into) // 1000)
            raise RateLimited(wait, f"This account may make {self._most} requests a minute; wait and try again.")
