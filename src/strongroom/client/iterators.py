# Generated from async_iterators.py by `make generate`. Do not edit.
"""What blocking clients iterate: changes of documents, the trash, results of many writes, the account's log."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from strongroom.client.net.driver import Driver
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


class Part:
    """The base of a client and of what it opens: shared state and driver."""

    def __init__(self, core: Core, driver: Driver) -> None:
        self._core = core
        self._driver = driver

    def _run(self, steps: Effects[R]) -> R:
        return self._driver.run(steps)


class Changes(Part, Generic[T]):
    """The changes after a cursor. After the iteration, `cursor` is where to continue."""

    def __init__(self, core: Core, driver: Driver, scope: KeyScope, cursor: int | None) -> None:
        super().__init__(core, driver)
        self._listing = Listing(core, scope, cursor)

    @property
    def cursor(self) -> int:
        """The timestamp up to which every change was seen."""
        return self._listing.cursor

    def __iter__(self) -> Iterator[Document[T]]:
        while self._listing.more:
            yield from self._run(self._listing.page())


class Trash(Part, Generic[T]):
    """The deleted documents whose content is still there, in the order of their deletion."""

    def __init__(self, core: Core, driver: Driver, scope: KeyScope) -> None:
        super().__init__(core, driver)
        self._scope = scope

    def __iter__(self) -> Iterator[Document[T]]:
        listing = Listing(self._core, self._scope, None, trash=True)
        while listing.more:
            yield from self._run(listing.page())

    def empty(self) -> int:
        """Purge all of them, at once and for good; how many, as the server says."""
        return self._run(trash.empty(self._core, self._scope))


class Writes(Part, Generic[T]):
    """Many writes, done batch by batch while the results are iterated; a result for each item, in their order."""

    def __init__(self, core: Core, driver: Driver, writes: BatchWrites) -> None:
        super().__init__(core, driver)
        self._writes = writes
        self._started = False

    def __iter__(self) -> Iterator[WriteResult[T]]:
        self._started = True
        while self._writes.more:
            yield from self._run(self._writes.page())

    def __del__(self) -> None:
        if not self._started:
            told = "Nothing was written: iterate the results of create_many, replace_many or delete_many."
            warnings.warn(told, RuntimeWarning, stacklevel=2, source=self)


class Log(Part):
    """The account's log, newest first, as the server says."""

    def __iter__(self) -> Iterator[Event]:
        log = LogPages(self._core)
        while log.more:
            yield from self._run(log.page())
