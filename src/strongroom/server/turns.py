"""Turns on the event loop: a long response gives way to other requests, and accounts take turns among themselves."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from strongroom.server.fair_queue import FairQueue, Place

STEP_SECONDS: Final = 0.005  # of processor time, after which a response gives way


class Turns:
    """Gives one long response a turn in each round of the event loop; the account whose turn is longest ago is next.

    So a request waits for one step at the most, however many lists and exports there are.
    """

    def __init__(self) -> None:
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()
        self._scheduled = False

    async def wait(self, owner: str) -> None:
        """Wait for a turn of this account; other requests come first."""
        loop = asyncio.get_running_loop()
        place, turn = Place(owner, ""), loop.create_future()
        self._queue.add(place, turn)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._next, loop)
        try:
            await turn
        finally:
            self._queue.discard(place, turn)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._queue.next()
        if turn is None:
            self._scheduled = False
            return
        if not turn.done():
            turn.set_result(None)
        loop.call_soon(self._next, loop)


class Steps:
    """The steps of one long response, measured by the processor time of the event loop."""

    def __init__(self, turns: Turns, owner: str) -> None:
        self._turns = turns
        self._owner = owner
        self._began = time.thread_time()

    async def give_way(self) -> None:
        """Wait for a turn if the step was long enough; a short response never waits."""
        if time.thread_time() - self._began >= STEP_SECONDS:
            await self._turns.wait(self._owner)
            self._began = time.thread_time()
