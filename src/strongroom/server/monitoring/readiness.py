"""Whether the server can do its work: the database takes writes, passwords can be hashed, the disk has room."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from strongroom.actions import epochs
from strongroom.errors import Refusal
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.server.monitoring.log import Log
    from strongroom.store import Database

LASTS: Final = 1.0  # seconds that an answer holds: however many ask, the database is written to once
_TIMEOUT_SECONDS: Final = 2.0  # seconds; whoever asks does not wait long either


class Readiness:
    """Looks, at most once a second."""

    def __init__(self, db: Database, hashing_works: Callable[[], Awaitable[bool]], least_free: int, log: Log) -> None:
        self._db = db
        self._hashing_works = hashing_works
        self._least_free = least_free
        self._log = log
        self._lock = asyncio.Lock()
        self._looked = float("-inf")
        self._found: dict[str, bool] = {}

    async def checks(self) -> dict[str, bool]:
        """What was looked at, and whether it is good."""
        async with self._lock:
            if time.monotonic() - self._looked >= LASTS or self._db.is_damaged:
                self._found = await self._look()
                self._looked = time.monotonic()
            return self._found

    async def _look(self) -> dict[str, bool]:
        current = None if self._db.is_damaged else await self._probe()
        found = {"database": current is not None, "schema": current is True, "passwords": await self._hashing_works()}
        free = self._free()
        return found if free is None else {**found, "disk": free >= self._least_free}

    async def _probe(self) -> bool | None:
        """Write; whether the schema is current, or None where nothing can be written."""
        try:
            async with await timeout(_TIMEOUT_SECONDS):
                return await self._db.write(epochs.probe)
        except (Refusal, TimeoutError):
            return None
        except Exception as error:  # noqa: BLE001 - a table that is gone is an answer too
            self._log.fault(error, "ready")
            return None

    def _free(self) -> int | None:
        try:
            return self._db.free_bytes
        except OSError:
            return 0
