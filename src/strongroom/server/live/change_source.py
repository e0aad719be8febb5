"""Reading what changed, a page at a time; between two pages nothing of the database is held."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, Final, Protocol

from strongroom import store
from strongroom.actions import change_feed
from strongroom.actions.change_feed import ChangePage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from strongroom.model import Change
    from strongroom.store import Database

PAGE: Final = 128  # changes that are read at once
SPREAD: Final = 1_024  # changes that are kept while those of many vaults are put in order
MOST_VAULTS: Final = 10_000  # that may have changed since a follower was last here
_AT_ONCE: Final = 64  # short reads before others get their turn


class TooFar(Exception):  # noqa: N818 - an outcome
    """So much has changed that a list is the better way to learn of it."""


class Reading(Protocol):
    """On the way through what changed, from some timestamp on."""

    async def page(self) -> ChangePage | None:
        """What comes next, in order; a page without `more` is the last. None: what was followed is there no more."""


Source = Callable[[int], Reading]


class OfVault:
    """The documents of one vault: one read a page."""

    def __init__(self, db: Database, user_id: str, vault_uid: str, born: int, since: int) -> None:
        self._db = db
        self._user_id = user_id
        self._vault_uid = vault_uid
        self._born = born
        self._since = since

    async def page(self) -> ChangePage | None:
        """The next changes; None if this vault is gone, whatever has its uid now."""
        page = await self._db.read(change_feed.page, self._user_id, self._vault_uid, self._born, self._since, PAGE)
        self._since = self._since if page is None else page.reached
        return page


class _Queue:
    """One vault's changes, or those of the vaults themselves: a few at a time, in order."""

    def __init__(self, read: Callable[[int, int], Awaitable[list[Change]]], since: int) -> None:
        self._read = read
        self._since = since
        self._rows: deque[Change] = deque()
        self._more = True

    async def next(self, size: int) -> Change | None:
        """The next one, or None after the last."""
        if not self._rows and self._more:
            self._rows.extend(await self._read(self._since, size))
            self._more = len(self._rows) == size
            if self._rows:
                self._since = self._rows[-1].updated_at
        return self._rows.popleft() if self._rows else None


class OfAccount:
    """All vaults of an account: what changed in each, and what happened to the vaults themselves.

    There is no index by time over all vaults, which every write would have to pay for. Each vault has one, so those
    that changed are read side by side and merged: no two changes of an account share one. The account's clock is
    read first and bounds it all, so it does not matter that the vaults are read one after the other.
    """

    def __init__(self, db: Database, user_id: str, since: int) -> None:
        self._db = db
        self._user_id = user_id
        self._since = since
        self._until = -1
        self._size = 0
        self._heads: list[tuple[int, Change, _Queue]] = []

    async def page(self) -> ChangePage:
        """The next changes, up to the clock as it was at the beginning."""
        if self._until < 0:
            self._until = await self._db.read(store.ledgers.clock, self._user_id)
            if self._until > self._since:
                await self._begin()
        changes: list[Change] = []
        while self._heads and len(changes) < PAGE:
            _, change, queue = self._heads[0]
            changes.append(change)
            after = await queue.next(self._size)
            if after is None:
                heappop(self._heads)
            else:
                heapreplace(self._heads, (after.updated_at, after, queue))
        if self._heads:
            return ChangePage(changes, changes[-1].updated_at, more=True)
        return ChangePage(changes, self._until)

    async def _begin(self) -> None:
        """Look for the vaults that changed, and for the first change in each."""
        queues = [self._queue(store.change_feed.of_vaults)]
        async for uid in self._changed():
            queues.append(self._queue(store.change_feed.of_vault, uid))
            if len(queues) > MOST_VAULTS:
                raise TooFar
        self._size = max(4, SPREAD // len(queues))
        for number, queue in enumerate(queues, 1):
            first = await queue.next(self._size)
            if first is not None:
                self._heads.append((first.updated_at, first, queue))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        heapify(self._heads)

    async def _changed(self) -> AsyncIterator[str]:
        beyond, more = "", True
        while more:
            vaults = await self._db.read(store.change_feed.latest, self._user_id, beyond, PAGE)
            for uid, timestamp in vaults:
                if timestamp is not None and timestamp > self._since:
                    yield uid
            more = len(vaults) == PAGE
            if more:
                beyond = vaults[-1].uid
                await asyncio.sleep(0)

    def _queue(self, action: Callable[..., Awaitable[list[Change]]], *which: str) -> _Queue:
        async def read(since: int, size: int) -> list[Change]:
            return await self._db.read(action, self._user_id, *which, since, self._until, size)

        return _Queue(read, self._since)
