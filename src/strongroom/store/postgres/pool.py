"""The connection pool of PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from strongroom.errors import Unavailable
from strongroom.store.postgres.connection import connect, is_lost
from strongroom.store.postgres.serving_lock import ServingLock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from asyncpg import Connection

    from strongroom.store.postgres.pooler import Pooler


class Pool:
    """A bounded pool of connections. When all are in use, a caller waits until its deadline."""

    def __init__(
        self, url: str, size: int, check: Callable[[Connection], Awaitable[None]], pooler: Pooler | None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._url = url
        self._pooler = pooler
        self._size = size
        self._check = check
        self._lock = ServingLock(partial(connect, url), self._drop)
        self._out = 0
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many callers wait for a connection."""
        return len(self._waiting)

    async def acquire(self, deadline: float) -> Connection:
        """A connection for the exclusive use of the caller, until it is released."""
        while self._out >= self._size:
            slot = self.loop.create_future()
            self._waiting.append(slot)
            try:
                await asyncio.wait_for(slot, max(0.0, deadline - time.monotonic()))
            except BaseException as error:
                if slot.done() and not slot.cancelled():
                    self._wake()  # it came together with the timeout: it is the next caller's
                if isinstance(error, TimeoutError):
                    raise Unavailable(1, "The service is too busy at the moment; try again shortly.") from None
                raise
        self._out += 1
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._discard(connection)
            return await self._connect_to_serve()
        except BaseException:
            self._free_slot()
            raise

    async def _connect_to_serve(self) -> Connection:
        """A new connection to the server where the lock is held that keeps a restore away."""
        await self._lock.hold()
        connection = await (connect(self._url) if self._pooler is None else self._pooler.connect())
        self._open.add(connection)  # before the lock is compared: it may be lost at any moment from then on
        try:
            await self._lock.check(connection)
            await self._check(connection)
        except BaseException as error:  # also where the caller was cancelled meanwhile
            lost = isinstance(error, AttributeError) and is_lost(error, connection)
            self._discard(connection)
            if lost:
                raise ConnectionResetError("the connection was closed while it was looked at") from None
            raise
        return connection

    def release(self, connection: Connection, *, good: bool) -> None:
        """Return a connection to the pool; one that is not good is closed."""
        if good and not connection.is_closed() and not self._closed:
            self._idle.append(connection)
        else:
            self._discard(connection)
        self._free_slot()
        if self._closed and not self._out:
            self._lock.release()

    def _discard(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.terminate()

    def _drop(self) -> None:
        """Close all connections: the lock is lost, so a restore may begin, or another server be the primary."""
        self._idle.clear()
        for connection in tuple(self._open):
            self._discard(connection)

    def _free_slot(self) -> None:
        self._out -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                return

    async def close(self) -> None:
        """Close idle connections now, and those in use when they are released."""
        self._closed = True
        while self._idle:
            with suppress(Exception):
                await self._idle.pop().close(timeout=2)
        if not self._out:
            await self._lock.close()
