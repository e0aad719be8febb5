"""One who waits for a change, once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strongroom.model import Actor


class Waiter:
    """Holds nothing but its place: no connection to the database, no turn at a list."""

    def __init__(self, actor: Actor, vault_uid: str) -> None:
        self.actor = actor
        self.vault_uid = vault_uid
        self._roused = False
        self._wake: asyncio.Future[None] | None = None

    def rouse(self) -> None:
        """Something may have changed."""
        self._roused = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def sleep(self, until: float) -> None:
        """Until something may have changed since the last sleep, or until then."""
        if not self._roused:
            loop = asyncio.get_running_loop()
            self._wake = loop.create_future()
            timer = loop.call_at(until, self.rouse)
            try:
                await self._wake
            finally:
                timer.cancel()
                self._wake = None
        self._roused = False
