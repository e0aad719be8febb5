"""Change readers: the changes of a vault or of an account, page by page; no snapshot is held between two pages."""

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
MERGE_ROWS: Final = 1_024  # changes in memory while those of many vaults are merged
MAX_VAULTS: Final = 10_000  # that may have changed since the cursor of a follower
_READS_PER_TURN: Final = 64  # short reads before the event loop may do other work


class TooManyChanges(Exception):  # noqa: N818 - an outcome
    """Too many vaults changed for a stream: the client should list instead."""


class ChangeReader(Protocol):
    """An iterator over pages of changes, from a timestamp on."""

    async def page(self) -> ChangePage | None:
        """The next page, in order; one without `more` is the last. None if the vault was deleted."""


Source = Callable[[int], ChangeReader]


class VaultChanges:
    """Changes of the documents of one vault: one query a page."""

    def __init__(self, db: Database, user_id: str, vault_uid: str, created_at: int, since: int) -> None:
        self._db = db
        self._user_id = user_id
        self._vault_uid = vault_uid
        self._created_at = created_at
        self._since = since

    async def page(self) -> ChangePage | None:
        """The next page; None if this vault was deleted, even if another one has its uid now."""
        page = await self._db.read(
            change_feed.page, self._user_id, self._vault_uid, self._created_at, self._since, PAGE
        )
        self._since = self._since if page is None else page.reached
        return page


class _Queue:
    """A read-ahead queue: changes of one vault, or of the vaults themselves, in order."""

    def __init__(self, read: Callable[[int, int], Awaitable[list[Change]]], since: int) -> None:
        self._read = read
        self._since = since
        self._rows: deque[Change] = deque()
        self._more = True

    async def next(self, size: int) -> Change | None:
        """The next change, or None after the last."""
        if not self._rows and self._more:
            self._rows.extend(await self._read(self._since, size))
            self._more = len(self._rows) == size
            if self._rows:
                self._since = self._rows[-1].updated_at
        return self._rows.popleft() if self._rows else None


class AccountChanges:
    """Changes of all vaults of an account, merged: of their documents, and of the vaults themselves.

    There is no index by time over all vaults, which every write would have to pay for. Each vault has one, so those
    that changed are read side by side and merged: no two changes of an account share a timestamp. The account's clock
    is read first and bounds it all, so it does not matter that the vaults are read one after the other.
    """

    def __init__(self, db: Database, user_id: str, since: int) -> None:
        self._db = db
        self._user_id = user_id
        self._since = since
        self._until = -1
        self._size = 0
        self._heads: list[tuple[int, Change, _Queue]] = []

    async def page(self) -> ChangePage:
        """The next page, up to the account's clock at the first one."""
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
        """Find the vaults that changed, and the first change of each."""
        queues = [self._queue(store.change_feed.of_vaults)]
        async for uid in self._changed():
            queues.append(self._queue(store.change_feed.of_vault, uid))
            if len(queues) > MAX_VAULTS:
                raise TooManyChanges
        self._size = max(4, MERGE_ROWS // len(queues))
        for number, queue in enumerate(queues, 1):
            first = await queue.next(self._size)
            if first is not None:
                self._heads.append((first.updated_at, first, queue))
            if number % _READS_PER_TURN == 0:
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
