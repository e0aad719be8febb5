"""Snapshots of the database that lists and exports read: for how long, and who gives way.

A snapshot keeps SQLite from emptying its write-ahead log, and takes a connection of PostgreSQL's pool. So it must not
last for as long as a client takes to read. A list lets go of its snapshot when its client is slow, and continues after
its cursor in a new one. An export has to be one moment of the database: it is cut when its client is too slow.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from strongroom.errors import Refusal
from strongroom.server import snapshot_slots
from strongroom.server.authentication import recheck_credentials
from strongroom.server.response import StreamAborted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from strongroom.server.request import Request
    from strongroom.server.snapshot_slots import SnapshotSlots
    from strongroom.store import Tx

LIST_SECONDS: Final = 5.0  # the longest life of a list's snapshot
EXPORT_SECONDS: Final = 3_600.0  # the longest life of an export
EXPORT_GRACE: Final = 30.0  # seconds before the rate of an export is judged
EXPORT_RATE: Final = 64 * 1024  # bytes a second, on average; slower, it is cut
EXPORT_RATE_BUSY: Final = 256 * 1024  # the same, while others wait for a place


class Snapshot:
    """The snapshot that a list is read from, for as long as its client keeps up.

    Its owner says when it waits for the client (`pause`) and when it reads again (`resume`). In between, and only then,
    it may end at any moment; if it is released while its owner reads, it ends with the next pause.
    """

    seconds = LIST_SECONDS
    steady = False
    released = False
    _opened: tuple[AsyncGenerator[Any, None], AbstractAsyncContextManager[Tx]] | None = None
    _opened_at = 0.0
    _paused_at: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _ending: asyncio.Task[None] | None = None

    def __init__(self, request: Request) -> None:
        self._call = request
        self._loop = asyncio.get_running_loop()

    @property
    def _places(self) -> SnapshotSlots:
        return self._call.context.lists

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ending is None:
            await self._end()
        else:
            await asyncio.wait({self._ending})

    async def read(
        self, begin: Callable[..., Awaitable[AsyncGenerator[Any, None]]], *args: Any
    ) -> AsyncGenerator[Any, None]:
        """Open it, and begin to read pages."""
        context = self._call.context
        await self._places.take(self._call.actor.user_id, self)
        try:
            opened = context.db.snapshot(steady=self.steady, release=None if self.steady else self.release)
            tx = await opened.__aenter__()
            self.released = False
            self._opened_at = self._loop.time()
            try:
                pages = await begin(tx, *args)
            except BaseException as error:
                await opened.__aexit__(type(error), error, error.__traceback__)
                raise
        except BaseException:
            self._places.leave(self)
            raise
        self._opened = pages, opened
        return pages

    async def read_on(
        self, begin: Callable[..., Awaitable[AsyncGenerator[Any, None]]], *args: Any
    ) -> AsyncGenerator[Any, None]:
        """Open a new one, to continue in; refused if the caller has lost the right to read meanwhile."""
        await recheck_credentials(self._call)
        return await self.read(begin, *args)

    async def pause(self, _size: int) -> None:
        """So many bytes go to the client now, and it is waited for."""
        if self.released:
            await self._end()
        self._paused_at = self._loop.time()
        if self._timer is None and self._opened is not None:
            self._timer = self._loop.call_at(self._opened_at + self.seconds, self._due)

    async def resume(self) -> None:
        """The client has taken most of them."""
        self._paused_at = None
        await asyncio.sleep(0)  # others get their turn
        if self._ending is not None:
            await asyncio.shield(self._ending)
            self._ending = None
        elif self.released:  # in this very turn: whoever continues takes a new place, and must not hold one
            await self._end()

    def gives_way(self) -> bool:
        """Whether it may be released for somebody who waits."""
        return self._paused_at is not None and self._loop.time() - self._paused_at >= snapshot_slots.RECLAIM_SECONDS

    def release(self) -> None:
        """Let go of the database: at once, or before the next bytes go to the client."""
        self.released = True
        if self._paused_at is not None and self._opened is not None and self._ending is None:
            self._ending = self._loop.create_task(self._end())

    def _due(self) -> None:
        """It is as old as it may get."""
        self.release()

    async def _end(self) -> None:
        """Let go of everything, once. What fails here takes nothing from what was read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._opened is None:
            return
        (pages, opened), self._opened = self._opened, None
        try:
            with suppress(Refusal):
                try:
                    await pages.aclose()
                except BaseException as error:
                    await opened.__aexit__(type(error), error, error.__traceback__)
                    raise
                await opened.__aexit__(None, None, None)
        finally:
            self._places.leave(self)


class ExportSnapshot(Snapshot):
    """A snapshot that has to last to the end of its export, which is cut where its client is too slow."""

    seconds = 1.0  # between two looks at how fast it is
    steady = True

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._began = self._loop.time()
        self._look_at = self._began + self.seconds
        self._taken = self._sent = 0

    @property
    def _places(self) -> SnapshotSlots:
        return self._call.context.exports

    async def pause(self, size: int) -> None:
        """So many bytes go to the client now, and it is waited for."""
        await super().pause(size)
        self._sent += size

    async def resume(self) -> None:
        """The client has taken most of them. Whether it may still read is looked at about once a second."""
        self._taken = self._sent
        await super().resume()
        if self.released:
            raise StreamAborted("The export was read too slowly.")
        if self._loop.time() >= self._look_at:
            self._look_at = self._loop.time() + self.seconds
            await recheck_credentials(self._call)

    def gives_way(self) -> bool:
        """Whether it is too slow to go on while others wait."""
        return self._is_slower_than(EXPORT_RATE_BUSY)

    def _due(self) -> None:
        if self._is_slower_than(EXPORT_RATE) or self._loop.time() - self._began > EXPORT_SECONDS:
            self.release()
        else:
            self._timer = self._loop.call_later(self.seconds, self._due)

    def _is_slower_than(self, rate: int) -> bool:
        return self._taken < (self._loop.time() - self._began - EXPORT_GRACE) * rate
