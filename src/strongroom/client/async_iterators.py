"""What an asynchronous client iterates: changes of documents, the account's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Generic, TypeVar

from strongroom.client.net.async_driver import AsyncDriver
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


class AsyncLog(AsyncPart):
    """The account's log, newest first, as the server says."""

    async def __aiter__(self) -> AsyncIterator[Event]:
        log = LogPages(self._core)
        while log.more:
            for entry in await self._run(log.page()):
                yield entry
