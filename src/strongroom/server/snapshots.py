"""Database snapshots for lists and exports, with limits on their lifetime.

A snapshot keeps SQLite from truncating its write-ahead log, and takes a connection of PostgreSQL's pool. So it must not
live for as long as a slow client reads. A list releases its snapshot when its client is slow, and continues after its
cursor in a new one. An export must be one consistent snapshot: it is aborted when its client is too slow.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from strongroom.errors import Refusal
from strongroom.server import snapshot_slots
from strongroom.server.authentication import recheck_credentials
from strongroom.server.response import CHUNK, StreamAborted, json_items

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from strongroom.server.request import Request
    from strongroom.server.response import Chunks, Pieces
    from strongroom.server.snapshot_slots import SnapshotSlots
    from strongroom.store import Tx

LIST_SECONDS: Final = 5.0  # maximum lifetime of a list's snapshot
EXPORT_SECONDS: Final = 3_600.0  # maximum duration of an export
EXPORT_GRACE: Final = 30.0  # seconds before the rate of an export is checked
EXPORT_RATE: Final = 64 * 1024  # bytes a second, on average; a slower export is aborted
EXPORT_RATE_BUSY: Final = 256 * 1024  # the same, while others wait for a slot, or deleted data for the log


class Snapshot:
    """The snapshot that a list reads, for as long as its client keeps up.

    Its owner calls `pause` before it waits for the client, and `resume` before it reads again. Only in between may the
    snapshot be closed at any time; if it is released while its owner reads, it is closed at the next pause.
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
        self._request = request
        self._loop = asyncio.get_running_loop()

    @property
    def _slots(self) -> SnapshotSlots:
        return self._request.context.lists

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
        """Open the snapshot, and start to read pages."""
        context = self._request.context
        await self._slots.acquire(self._request.actor.user_id, self)
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
            self._slots.release(self)
            raise
        self._opened = pages, opened
        return pages

    async def reopen(
        self, begin: Callable[..., Awaitable[AsyncGenerator[Any, None]]], *args: Any
    ) -> AsyncGenerator[Any, None]:
        """Open a new snapshot to continue in; refused if the caller's credentials have become invalid."""
        await recheck_credentials(self._request)
        return await self.read(begin, *args)

    async def pause(self, _size: int) -> None:
        """Before these bytes are sent to the client, which may take any time."""
        if self.released:
            await self._end()
        self._paused_at = self._loop.time()
        if self._timer is None and self._opened is not None:
            self._timer = self._loop.call_at(self._opened_at + self.seconds, self._on_timer)

    async def resume(self) -> None:
        """After the client has received most of them."""
        self._paused_at = None
        await asyncio.sleep(0)  # yield to other requests
        if self._ending is not None:
            await asyncio.shield(self._ending)
            self._ending = None
        elif self.released:  # just now: to continue takes a new slot, so this one must be free
            await self._end()

    def is_preemptible(self) -> bool:
        """Whether it may be released for a request that waits."""
        return self._paused_at is not None and self._loop.time() - self._paused_at >= snapshot_slots.RECLAIM_SECONDS

    def release(self) -> None:
        """Release the snapshot: at once, or before the next bytes are sent to the client."""
        self.released = True
        if self._paused_at is not None and self._opened is not None and self._ending is None:
            self._ending = self._loop.create_task(self._end())

    def _on_timer(self) -> None:
        """The maximum lifetime is over."""
        self.release()

    async def _end(self) -> None:
        """Close the snapshot, once. A failure here does not affect what was read."""
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
            self._slots.release(self)


async def stream_list(
    request: Request,
    head: bytes,
    read: Callable[[Tx], Awaitable[AsyncGenerator[list[Any], None]]],
    shown: Callable[[list[Any]], list[Any]],
    tail: Callable[[], bytes],
) -> Chunks:
    """Stream a list as JSON with only one page of it in memory; for a slow client, it continues in a new snapshot.

    `read` opens the pages after the cursor; `shown` moves the cursor past a page, and returns the items to show.
    """
    out: Pieces = [head]
    size, first = 0, True
    steps = request.steps()
    async with Snapshot(request) as snapshot:
        pages = await snapshot.read(read)
        while (page := await anext(pages, None)) is not None:
            if items := shown(page):
                out += json_items(items, first=first)
                size, first = size + len(out[-1]), False
            if size > CHUNK:
                await snapshot.pause(size)
                yield out
                await snapshot.resume()
                out, size = [], 0
                if snapshot.released:
                    pages = await snapshot.reopen(read)
            await steps.give_way()
    out.append(tail())
    yield out


class ExportSnapshot(Snapshot):
    """A snapshot that lives to the end of its export, which is aborted if its client is too slow."""

    seconds = 1.0  # between two checks of the rate
    steady = True

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._started_at = self._loop.time()
        self._next_check = self._started_at + self.seconds
        self._received = self._sent = 0

    @property
    def _slots(self) -> SnapshotSlots:
        return self._request.context.exports

    async def pause(self, size: int) -> None:
        """Before these bytes are sent to the client, which may take any time."""
        await super().pause(size)
        self._sent += size

    async def resume(self) -> None:
        """After the client has received most of them. Its credentials are checked about once a second."""
        self._received = self._sent
        await super().resume()
        if self.released:
            raise StreamAborted("The export was read too slowly.")
        if self._loop.time() >= self._next_check:
            self._next_check = self._loop.time() + self.seconds
            await recheck_credentials(self._request)

    def is_preemptible(self) -> bool:
        """Whether it is too slow to continue while others wait."""
        return self._is_slower_than(EXPORT_RATE_BUSY)

    def _on_timer(self) -> None:
        overdue = self._request.context.db.is_truncation_overdue  # deleted data stays in the log until exports end
        if (
            self._is_slower_than(EXPORT_RATE_BUSY if overdue else EXPORT_RATE)
            or self._loop.time() - self._started_at > EXPORT_SECONDS
        ):
            self.release()
        else:
            self._timer = self._loop.call_later(self.seconds, self._on_timer)

    def _is_slower_than(self, rate: int) -> bool:
        return self._received < (self._loop.time() - self._started_at - EXPORT_GRACE) * rate
