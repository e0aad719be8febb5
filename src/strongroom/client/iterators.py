# Generated from async_iterators.py by `make generate`. Do not edit.
"""What an blocking client iterates: changes of documents, the account's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from strongroom.client.net.driver import Driver
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


class Log(Part):
    """The account's log, newest first, as the server says."""

    def __iter__(self) -> Iterator[Event]:
        log = LogPages(self._core)
        while log.more:
            yield from self._run(log.page())
