"""What asynchronous clients iterate: changes of documents, the trash, results of many writes, the account's log."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Generic, TypeVar

from strongroom.client.net.async_driver import AsyncDriver
from strongroom.client.operations import trash
from strongroom.client.operations.batches import BatchWrites, WriteResult
from strongroom.client.operations.core import Core
from strongroom.client.operations.documents import Document, KeyScope
from strongroom.client.operations.listing import Listing
from strongroom.client.operations.usage_and_log import LogPages
from strongroom.client.operations.value_types import T

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.model import Event

R = TypeVar("R")


class AsyncPart:
    """The base of a client and of what it opens: shared state and driver."""

    def __init__(self, core: Core, driver: AsyncDriver) -> None:
        self._core = core
        self._driver = driver

    async def _run(self, steps: Effects[R]) -> R:
        return await self._driver.run(steps)


class AsyncChanges(AsyncPart, Generic[T]):
    """The changes after a cursor. After the iteration, `cursor` is where to continue."""

    def __init__(self, core: Core, driver: AsyncDriver, scope: KeyScope, cursor: int | None) -> None:
        super().__init__(core, driver)
        self._listing = Listing(core, scope, cursor)

    @property
    def cursor(self) -> int:
        """The timestamp up to which every change was seen."""
        return self._listing.cursor

    async def __aiter__(self) -> AsyncIterator[Document[T]]:
        while self._listing.more:
            for document in await self._run(self._listing.page()):
                yield document


class AsyncTrash(AsyncPart, Generic[T]):
    """The deleted documents whose content is still there, in the order of their deletion."""

    def __init__(self, core: Core, driver: AsyncDriver, scope: KeyScope) -> None:
        super().__init__(core, driver)
        self._scope = scope

    async def __aiter__(self) -> AsyncIterator[Document[T]]:
        listing = Listing(self._core, self._scope, None, trash=True)
        while listing.more:
            for document in await self._run(listing.page()):
                yield document

    async def empty(self) -> int:
        """Purge all of them, at once and for good; how many, as the server says."""
        return await self._run(trash.empty(self._core, self._scope))


class AsyncWrites(AsyncPart, Generic[T]):
    """Many writes, done batch by batch while the results are iterated; a result for each item, in their order."""

    def __init__(self, core: Core, driver: AsyncDriver, writes: BatchWrites) -> None:
        super().__init__(core, driver)
        self._writes = writes
        self._started = False

    async def __aiter__(self) -> AsyncIterator[WriteResult[T]]:
        self._started = True
        while self._writes.more:
            for result in await self._run(self._writes.page()):
                yield result

    def __del__(self) -> None:
        if not self._started:
            told = "Nothing was written: iterate the results of create_many, replace_many or delete_many."
            warnings.warn(told, RuntimeWarning, stacklevel=2, source=self)


class AsyncLog(AsyncPart):
    """The account's log, newest first, as the server says."""

    async def __aiter__(self) -> AsyncIterator[Event]:
        log = LogPages(self._core)
        while log.more:
            for entry in await self._run(log.page()):
                yield entry
