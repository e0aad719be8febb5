"""Change notifications between nodes on PostgreSQL: LISTEN and NOTIFY, on a connection of its own.

A notification that is part of a transaction makes its commit wait for all others that notify. So it is sent after the
commit, in a transaction of its own that waits for no disk, and many go together. A node that dies in between loses
notifications, not changes: every node compares clocks now and then, and after each new connection.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from strongroom.store.change_notifications import ChangeHint, ChangeNotifications

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from collections.abc import Set as AbstractSet

    from asyncpg import Connection

CHANNEL: Final = "strongroom"
MAX_HINTS: Final = 100  # in one notification: PostgreSQL takes 8,000 bytes
PAUSE_SECONDS: Final = 0.005  # seconds between two notifications of one node
RETRY_SECONDS: Final = 1.0  # seconds before another attempt to connect
ALIVE_SECONDS: Final = 10.0  # a connection that is silent for so long is checked
# A change hint is worth no disk. For this statement alone: the session may outlive the connection, in a pooler.
SEND: Final = "SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, $2)"
_FAILED: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that is lost while it is made
    OSError,
    TimeoutError,
)


class PostgresNotifications(ChangeNotifications):
    """Notifies the other nodes of commits, and listens for theirs."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        super().__init__()
        self._connect = connect
        self._node = os.urandom(8).hex()
        self._pending: set[ChangeHint] = set()
        self._connection: Connection | None = None
        self._is_listening = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()

    def committed(self, hints: AbstractSet[ChangeHint]) -> None:
        """Notify this process first, then the other nodes."""
        super().committed(hints)
        if hints:
            self._pending |= hints
            self._work()

    def watch(self, *, wanted: bool) -> None:
        """Listen for as long as there are followers here."""
        super().watch(wanted=wanted)
        if wanted:
            self._work()

    def _work(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the database may be opened on one loop and used on another
            self._loop, self._connection, self._worker = loop, None, None
            self._wake, self._closing = asyncio.Event(), asyncio.Event()
        self._wake.set()
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._run())

    async def _run(self) -> None:
        """Keep a connection, send what is pending, and listen; disconnect at the end, whatever happens."""
        try:
            while not self._closing.is_set():
                await self._step()
            with suppress(*_FAILED):
                while self._pending and self._connection is not None:
                    await self._send(self._connection)
        finally:
            await self._disconnect()

    async def _step(self) -> None:
        """Send what is pending, or wait until there is something to send."""
        self._wake.clear()
        try:
            connection = await self._connected()
            await self._listen(connection)
            if self._pending:
                await self._send(connection)
                await asyncio.sleep(PAUSE_SECONDS)
            elif not await _set_within(self._wake, ALIVE_SECONDS):
                await connection.execute("SELECT 1", timeout=RETRY_SECONDS)
        except _FAILED:
            self._pending.clear()  # the other nodes compare clocks
            await self._disconnect()
            await _set_within(self._closing, RETRY_SECONDS)

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection, self._is_listening = await self._connect(), False
            self._connection.add_termination_listener(lambda _: self._wake.set())
        return self._connection

    async def _listen(self, connection: Connection) -> None:
        if self.watching and not self._is_listening:
            await connection.add_listener(CHANNEL, self._received)
            self._is_listening = True
            self.invalidate()  # what was sent before is unknown
        elif self._is_listening and not self.watching:
            await connection.remove_listener(CHANNEL, self._received)
            self._is_listening = False

    async def _send(self, connection: Connection) -> None:
        sending = [self._pending.pop() for _ in range(min(MAX_HINTS, len(self._pending)))]
        words = [self._node, *(f"{hint.user_id}/{hint.vault_uid or ''}" for hint in sending)]
        await connection.execute(SEND, CHANNEL, " ".join(words))

    def _received(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        node, *words = payload.split(" ")
        if node != self._node and self._on_change is not None:
            self._on_change(
                {ChangeHint(user_id, uid or None) for user_id, _, uid in (word.partition("/") for word in words)}
            )

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*_FAILED):
                await connection.close(timeout=RETRY_SECONDS)

    async def close(self) -> None:
        """Send what is still pending, then disconnect."""
        await super().close()
        worker, self._worker = self._worker, None
        if worker is not None and not worker.done() and self._loop is asyncio.get_running_loop():
            self._closing.set()
            self._wake.set()
            await worker


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether it was set in this time."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
