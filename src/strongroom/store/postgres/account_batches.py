"""Batches concurrent creates of different accounts on PostgreSQL into one statement, where each would take its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.errors import Unavailable

if TYPE_CHECKING:
    from strongroom.model import Document
    from strongroom.store.write_forms import NewDocument

MAX_ACCOUNTS: Final = 16  # in one statement
MAX_STATEMENTS: Final = 2  # at once; what arrives meanwhile gathers for the next

CreateMany = Callable[[Mapping[str, Sequence["NewDocument"]]], Awaitable["dict[str, list[Document]]"]]


class _Creates(NamedTuple):
    """The creates of one account that wait for their statement."""

    owner: str
    forms: list[NewDocument]
    future: asyncio.Future[list[Document] | None]


class AccountBatcher:
    """Gathers the creates of one turn of the loop, each account's own ones together."""

    def __init__(self, create_many: CreateMany) -> None:
        self._loop = asyncio.get_running_loop()
        self._create_many = create_many
        self._waiting: deque[_Creates] = deque()
        self._running = 0
        self._is_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, owner: str, forms: list[NewDocument]) -> list[Document] | None:
        """The documents of an account as they are stored; None where nothing was written."""
        creates = _Creates(owner, forms, self._loop.create_future())
        self._waiting.append(creates)
        if not self._is_scheduled and self._running < MAX_STATEMENTS:
            self._is_scheduled = True
            self._loop.call_soon(self._start)  # whatever else arrives in this turn of the loop comes along
        return await creates.future

    def _start(self) -> None:
        self._is_scheduled = False
        while self._waiting and self._running < MAX_STATEMENTS:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_ACCOUNTS))]
            self._running += 1
            task = self._loop.create_task(self._run(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, batch: list[_Creates]) -> None:
        """Run a batch in one statement. An account that was left out learns that nothing was written."""
        try:
            stored = await self._create_many({creates.owner: creates.forms for creates in batch})
        except Exception as error:  # noqa: BLE001 - raised for all callers
            failed = list(batch)
            if isinstance(error, Unavailable):  # those that wait need not wait to meet the same
                failed += self._waiting
                self._waiting.clear()
            for creates in failed:
                if not creates.future.done():
                    creates.future.set_exception(error)
        else:
            for creates in batch:
                if not creates.future.done():
                    creates.future.set_result(stored.get(creates.owner))
        finally:
            for creates in batch:
                creates.future.cancel()  # the caller of one that is done already does not notice
            self._running -= 1
            self._start()
