"""A long poll that waits for a change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strongroom.model import Actor


class Waiter:
    """One waiting long poll. It holds no database connection and no snapshot slot."""

    def __init__(self, actor: Actor, vault_uid: str) -> None:
        self.actor = actor
        self.vault_uid = vault_uid
        self._woken = False
        self._sleeping: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Wake it: something may have changed."""
        self._woken = True
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def sleep(self, until: float) -> None:
        """Sleep until it is woken, also by what came since the last sleep, or until the deadline."""
        if not self._woken:
            loop = asyncio.get_running_loop()
            self._sleeping = loop.create_future()
            timer = loop.call_at(until, self.wake)
            try:
                await self._sleeping
            finally:
                timer.cancel()
                self._sleeping = None
        self._woken = False
