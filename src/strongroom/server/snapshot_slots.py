"""Concurrency limit for snapshots of the database: in all and for one account, with a queue fair to accounts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from strongroom.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.errors import Refusal

WAIT_SECONDS: Final = 5.0  # that a request waits for a slot
RECLAIM_SECONDS: Final = 0.25  # a list whose client reads nothing for so long can be preempted
SLOTS_PER_ACCOUNT: Final = 4  # concurrent snapshots of the lists of one account


class SlotHolder(Protocol):
    """The holder of a slot."""

    def is_preemptible(self) -> bool:
        """Whether it may be released for a request that waits."""

    def release(self) -> None:
        """Release the snapshot: at once, or before the next bytes are sent to the client."""


class SnapshotSlots:
    """Slots for concurrent snapshots, in all and for each account; further requests wait for a while."""

    def __init__(self, slots: int, each: int, too_many: Callable[[], Refusal] | None = None) -> None:
        self._too_many = too_many  # the refusal of an account that holds all of its own, where that is to be said
        self._slots = slots
        self._each = each
        self._held: dict[SlotHolder, str] = {}  # oldest first
        self._waiting: dict[asyncio.Future[None], tuple[str, SlotHolder]] = {}

    @property
    def waiting(self) -> int:
        """How many requests wait for a slot."""
        return len(self._waiting)

    @property
    def held(self) -> int:
        """How many slots are taken."""
        return len(self._held)

    async def acquire(self, owner: str, snapshot: SlotHolder) -> None:
        """Acquire a slot for this snapshot; refused when none gets free in time."""
        if self._has_free(owner):
            self._held[snapshot] = owner
        else:
            await self._wait(owner, snapshot)

    def release(self, snapshot: SlotHolder) -> None:
        """Release a slot to the waiting request whose account holds the fewest; of those, to the first."""
        self._held.pop(snapshot, None)
        if not self._waiting:
            return
        waiting = [
            (self._held_by(owner), waiter) for waiter, (owner, _) in self._waiting.items() if self._has_free(owner)
        ]
        if waiting:
            waiter = min(waiting, key=lambda one: one[0])[1]
            owner, granted = self._waiting.pop(waiter)
            self._held[granted] = owner
            waiter.set_result(None)

    def _held_by(self, owner: str) -> int:
        return sum(one == owner for one in self._held.values())

    def _has_free(self, owner: str) -> bool:
        held = len(self._held)
        return held < self._slots and (held < self._each or self._held_by(owner) < self._each)

    async def _wait(self, owner: str, snapshot: SlotHolder) -> None:
        """Wait for a slot, and preempt a holder where possible. `release` grants the slot to the waiter directly."""
        loop = asyncio.get_running_loop()
        waiter, deadline = loop.create_future(), loop.time() + WAIT_SECONDS
        self._waiting[waiter] = owner, snapshot
        try:
            while not waiter.done() and loop.time() < deadline:
                self._reclaim(owner)
                await asyncio.wait({waiter}, timeout=max(0.0, min(RECLAIM_SECONDS, deadline - loop.time())))
        except BaseException:
            if waiter.done():
                self.release(snapshot)
            raise
        finally:
            self._waiting.pop(waiter, None)
        if not waiter.done():
            if self._too_many is not None and self._held_by(owner) >= self._each:
                raise self._too_many()
            raise Unavailable(1, "Too many lists are being read at the moment; try again shortly.")

    def _reclaim(self, owner: str) -> None:
        """Preempt one holder: of the same account if that holds its maximum, otherwise of any."""
        own = self._held_by(owner) >= self._each
        for snapshot, holder in self._held.items():
            if (holder == owner or not own) and snapshot.is_preemptible():
                snapshot.release()
                return
