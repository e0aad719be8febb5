"""Writes that wait for the one writer of a SQLite file, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import apsw

from strongroom.errors import Refusal, StorageFull, Unavailable
from strongroom.store.exceptions import RollbackWith
from strongroom.store.sqlite.transaction import at_once

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.store.session_check import SessionCheck
    from strongroom.store.sqlite.transaction import Tx


class QueuedWrite:
    """One write that waits for its turn, and then for the disk."""

    __slots__ = ("action", "args", "check", "error", "future", "keywords", "long", "loop", "result")

    def __init__(
        self,
        action: Callable[..., Awaitable[Any]] | None,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        long: bool = False,
        check: SessionCheck | None = None,
    ) -> None:
        self.action = action
        self.args = args
        self.keywords = keywords
        self.long = long
        self.check = check
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, tx: Tx) -> None:
        """Run the action; what comes of it is kept until the commit is done."""
        self.result = self.error = None  # of an earlier run, if that was undone
        try:
            assert self.action is not None  # noqa: S101 - folding the log runs no action
            if self.check is not None:
                tx.prove(self.check)
            self.result = at_once(self.action(tx, *self.args, **self.keywords))
        except RollbackWith as undo:
            self.result = undo.result
            raise
        except BaseException as error:
            self.error = passing(error) or error
            raise

    def settle(self) -> None:
        """Tell the one who waits. A request that was cancelled meanwhile has nobody waiting."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def passing(error: BaseException) -> Refusal | None:
    """What to say of a fault that passes by itself; None for one that does not."""
    if isinstance(error, apsw.FullError):
        return StorageFull()
    return Unavailable(1) if isinstance(error, apsw.BusyError) else None
