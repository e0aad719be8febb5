"""Concurrency limit for snapshots of the database: in all and for one account, with a queue fair to accounts."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from strongroom.errors import Unavailable

PATIENCE: Final = 5.0  # seconds that a request waits for a place
RECLAIM_SECONDS: Final = 0.25  # a list whose client takes nothing for so long gives way to one that waits
PLACES_EACH: Final = 4  # snapshots that the lists of one account hold at the same time


class SlotHolder(Protocol):
    """What holds a place."""

    def gives_way(self) -> bool:
        """Whether it may be released for somebody who waits."""

    def release(self) -> None:
        """Let go of the database: at once, or before the next bytes go to the client."""


class SnapshotSlots:
    """How many snapshots are held at the same time, in all and by one account; whoever comes later waits a little."""

    def __init__(self, places: int, each: int) -> None:
        self._places = places
        self._each = each
        self._held: dict[SlotHolder, str] = {}  # in the order in which they came
        self._waiting: dict[asyncio.Future[None], tuple[str, SlotHolder]] = {}

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._waiting)

    @property
    def held(self) -> int:
        """How many places are taken."""
        return len(self._held)

    async def take(self, owner: str, snapshot: SlotHolder) -> None:
        """Take a place for this snapshot, or refuse when none is free for too long."""
        if self._free(owner):
            self._held[snapshot] = owner
        else:
            await self._wait(owner, snapshot)

    def leave(self, snapshot: SlotHolder) -> None:
        """Give the place to the one who waits whose account holds the fewest; of those, to the first."""
        self._held.pop(snapshot, None)
        if not self._waiting:
            return
        waiting = [(self._of(owner), turn) for turn, (owner, _) in self._waiting.items() if self._free(owner)]
        if waiting:
            turn = min(waiting, key=lambda one: one[0])[1]
            owner, granted = self._waiting.pop(turn)
            self._held[granted] = owner
            turn.set_result(None)

    def _of(self, owner: str) -> int:
        return sum(one == owner for one in self._held.values())

    def _free(self, owner: str) -> bool:
        held = len(self._held)
        return held < self._places and (held < self._each or self._of(owner) < self._each)

    async def _wait(self, owner: str, snapshot: SlotHolder) -> None:
        """Wait for a place, and let those give way who may. A place that is granted is taken in the same moment."""
        loop = asyncio.get_running_loop()
        turn, deadline = loop.create_future(), loop.time() + PATIENCE
        self._waiting[turn] = owner, snapshot
        try:
            while not turn.done() and loop.time() < deadline:
                self._reclaim(owner)
                await asyncio.wait({turn}, timeout=max(0.0, min(RECLAIM_SECONDS, deadline - loop.time())))
        except BaseException:
            if turn.done():
                self.leave(snapshot)
            raise
        finally:
            self._waiting.pop(turn, None)
        if not turn.done():
            raise Unavailable(1, "Too many lists are being read at the moment; try again shortly.")

    def _reclaim(self, owner: str) -> None:
        """Let one give way: of the same account if that holds all that it may, otherwise of any."""
        own = self._of(owner) >= self._each
        for snapshot, holder in self._held.items():
            if (holder == owner or not own) and snapshot.gives_way():
                snapshot.release()
                return
