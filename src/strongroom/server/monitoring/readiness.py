"""Readiness checks: the database accepts writes, passwords can be hashed, the disk has room."""

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

CACHE_SECONDS: Final = 1.0  # that a result is cached: however many requests, the database is written to once
_TIMEOUT_SECONDS: Final = 2.0  # a load balancer does not wait long either


class Readiness:
    """Runs the checks, at most once a second."""

    def __init__(self, db: Database, hashing_works: Callable[[], Awaitable[bool]], least_free: int, log: Log) -> None:
        self._db = db
        self._hashing_works = hashing_works
        self._least_free = least_free
        self._log = log
        self._lock = asyncio.Lock()
        self._checked_at = float("-inf")
        self._result: dict[str, bool] = {}

    async def checks(self) -> dict[str, bool]:
        """The checks, and whether each has passed."""
        async with self._lock:
            if time.monotonic() - self._checked_at >= CACHE_SECONDS or self._db.is_damaged:
                self._result = await self._run_checks()
                self._checked_at = time.monotonic()
            return self._result

    async def _run_checks(self) -> dict[str, bool]:
        current = None if self._db.is_damaged else await self._probe()
        found = {"database": current is not None, "schema": current is True, "passwords": await self._hashing_works()}
        free = self._free()
        return found if free is None else {**found, "disk": free >= self._least_free}

    async def _probe(self) -> bool | None:
        """Write to the database; whether the schema is current, or None if the write fails."""
        try:
            async with await timeout(_TIMEOUT_SECONDS):
                return await self._db.write(epochs.probe)
        except (Refusal, TimeoutError):
            return None
        except Exception as error:  # noqa: BLE001 - a missing table is a failed check
            self._log.fault(error, "ready")
            return None

    def _free(self) -> int | None:
        try:
            return self._db.free_bytes
        except OSError:
            return 0
