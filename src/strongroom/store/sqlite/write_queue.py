"""The queue of the one writer of a SQLite file: a write, its result, its error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import apsw

from strongroom.errors import Refusal, StorageFull, Unavailable
from strongroom.store.exceptions import RollbackWith
from strongroom.store.sqlite.transaction import run_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.store.session_check import SessionCheck
    from strongroom.store.sqlite.transaction import Tx
    from strongroom.store.write_forms import NewDocument, Replacement


class QueuedWrite:
    """A write that waits for its batch, and then for the disk."""

    __slots__ = ("action", "args", "check", "error", "form", "future", "keywords", "long", "loop", "owner", "result")

    def __init__(
        self,
        action: Callable[..., Awaitable[Any]] | None,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        long: bool = False,
        check: SessionCheck | None = None,
        owner: str = "",
        form: NewDocument | Replacement | None = None,
    ) -> None:
        self.action = action
        self.args = args
        self.keywords = keywords
        self.long = long
        self.check = check
        self.owner = owner
        self.form = form
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, tx: Tx) -> None:
        """Run the action; its result or error is stored until the commit is done."""
        self.result = self.error = None  # of an earlier run, if that was rolled back
        try:
            assert self.action is not None  # noqa: S101 - a checkpoint runs no action
            if self.check is not None:
                tx.run_check(self.check)
            self.result = run_sync(self.action(tx, *self.args, **self.keywords))
        except RollbackWith as undo:
            self.result = undo.result
            raise
        except BaseException as error:
            self.error = transient_refusal(error) or error
            raise

    def complete(self) -> None:
        """Complete the future of the caller, unless the caller was cancelled meanwhile."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def transient_refusal(error: BaseException) -> Refusal | None:
    """The refusal for a fault that passes by itself; None for one that does not."""
    if isinstance(error, apsw.FullError):
        return StorageFull()
    return Unavailable(1) if isinstance(error, apsw.BusyError) else None
