"""The advisory lock that keeps restores away while a process serves, on a connection of its own.

The connections that serve requests hold no lock, for behind a pooler they are nobody's own. They are tied to this one
instead: each is taken only if it leads to the server where the lock is held, and all are closed when the lock is lost.
So it also tells when the server behind them hangs, or is the primary no longer, although they are still open.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from strongroom.errors import Unavailable
from strongroom.store import locks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from asyncpg import Connection

ALIVE_SECONDS: Final = 5.0  # between two checks that the server is still there and takes writes
ANSWER_SECONDS: Final = 5.0  # that such a check may take
RESTORING: Final = "The service is being restored from a backup; try again shortly."
_IS_HELD: Final = """
    SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (classid::bigint << 32 | objid::bigint) = $1)
"""
_FAILED: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


class ServingLock:
    """The lock of one process, on one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], on_lost: Callable[[], None]) -> None:
        self._connect = connect
        self._on_lost = on_lost
        self._mark = new_mark()
        self._connection: Connection | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._attempt: asyncio.Task[None] | None = None

    async def hold(self) -> None:
        """Take the lock, unless it is held; refused while the database is being restored.

        All who wait share one attempt, and its failure: none waits for more than one host that does not respond.
        """
        if self._connection is not None:
            return
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.get_running_loop().create_task(self._take())
            self._attempt.add_done_callback(_retrieve)
        await asyncio.shield(self._attempt)

    async def _take(self) -> None:
        connection = await self._connect()
        try:
            if not await connection.fetchval(locks.TRY_SHARED, locks.SERVING):
                raise Unavailable(5, RESTORING)  # noqa: TRY301
            await mark(connection, self._mark)
        except BaseException:
            connection.terminate()
            raise
        connection.add_termination_listener(self._lost)
        self._connection = connection
        self._watcher = asyncio.get_running_loop().create_task(self._watch(connection))

    async def check(self, connection: Connection) -> None:
        """Refuse a connection that leads to another server than the one where the lock is held."""
        if not await is_marked(connection, self._mark):
            self._lost(self._connection)
            raise ConnectionResetError("the lock of this process is held on another server")

    async def _watch(self, connection: Connection) -> None:
        with suppress(*_FAILED):
            in_recovery = False
            while not in_recovery:
                await asyncio.sleep(ALIVE_SECONDS)
                in_recovery = await connection.fetchval("SELECT pg_is_in_recovery()", timeout=ANSWER_SECONDS)
        self._lost(connection)

    def _lost(self, connection: Any) -> None:
        """The connection has ended, or is to end."""
        if connection is self._connection:
            self.release()
            self._on_lost()

    def release(self) -> None:
        """Give the lock up at once."""
        connection = self._forget()
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Give the lock up, in order."""
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        connection = self._forget()
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=2)

    def _forget(self) -> Connection | None:
        connection, self._connection = self._connection, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None and watcher is not asyncio.current_task():
            watcher.cancel()
        return connection


def _retrieve(attempt: asyncio.Task[None]) -> None:
    """Nobody may be left who waits for a failure."""
    if not attempt.cancelled():
        attempt.exception()


def new_mark() -> int:
    """The key of an advisory lock that nobody else takes."""
    return secrets.randbits(62)


async def mark(connection: Connection, key: int) -> None:
    """Mark the session of a connection, so that others can find it on the same server and database."""
    await connection.fetchval(locks.TRY_EXCLUSIVE, key)


async def is_marked(connection: Connection, key: int) -> bool:
    """Whether a connection leads to the server and database where a session is marked."""
    found: bool = await connection.fetchval(_IS_HELD, key)
    return found
