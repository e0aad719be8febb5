"""Deletes the rows of deleted vaults and accounts in the background, step by step."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from strongroom import store
from strongroom.actions import deletions
from strongroom.errors import Refusal
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from strongroom.server.monitoring.log import Log
    from strongroom.store import Database

LOOK_SECONDS: Final = 15.0  # between two looks for what another process has left, which may have been killed
TRUNCATE_SECONDS: Final = 1.0  # between two attempts to truncate a log that is still read
PAUSE: Final = 1  # times the duration of a step, before the next


class DeletionSteps:
    """The background task of one process. Several processes may do this at once: each step is a transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._wanted = asyncio.Event()

    def begin(self) -> None:
        """Begin at once: something was deleted."""
        self._wanted.set()

    async def run(self, log: Log) -> None:
        """Delete what waits, at start, whenever something is deleted, and every few seconds."""
        while True:
            wait = LOOK_SECONDS
            self._wanted.clear()
            try:
                await self.delete_all()
                if not await self.truncate():
                    wait = TRUNCATE_SECONDS
            except Refusal:
                pass  # the disk is full or busy, or the database is away: the next look tries again
            except Exception as error:  # noqa: BLE001 - one failure must not end the task
                log.fault(error, "deletion")
            try:
                async with await timeout(wait):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def delete_all(self) -> None:
        """Delete all rows that wait, in small transactions with pauses between them."""
        progress = deletions.DeletionProgress()
        while (await self._db.read(store.deletions.oldest)) is not None:
            began = time.monotonic()
            if not await self._db.write_long(deletions.delete_some, progress):
                return
            await asyncio.sleep(PAUSE * (time.monotonic() - began))

    async def truncate(self) -> bool:
        """Truncate the log after the last row, and forget what was deleted by then; False where it is still read."""
        emptied = await self._db.read(store.deletions.emptied)
        if emptied and not await self._db.truncate_log():
            return False
        if emptied:
            await self._db.write(store.deletions.forget, emptied)
            await self._db.truncate_log()  # the ids of what was deleted
        return True
