"""Batches concurrent writes of one account on PostgreSQL into one transaction: they would wait for the same row lock.

Each node takes the writes of an account that have gathered. Those of single documents are combined in one statement for
all creates and one for all replacements; small creates of several accounts share a statement. What cannot be combined
runs one after the other in one transaction; if one of them is refused, all are rolled back and each is run again by
itself: a refusal never touches the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strongroom.errors import Refusal, Unavailable
from strongroom.store.exceptions import Duplicate, MissingParent, OutcomeUnknown, RollbackWith
from strongroom.store.postgres.account_batches import AccountBatcher, CreateMany
from strongroom.store.write_forms import Form, NewDocument, Replacement

if TYPE_CHECKING:
    from strongroom.model import Document

MAX_WRITES: Final = 64  # writes in one transaction
MAX_SHARED: Final = 4  # creates of one account in a statement for several; more have a statement of their own
MAX_SHARED_BYTES: Final = 64 * 1024
UNKNOWN: Final = "The connection was lost during the commit; read again to see whether the write was applied."


class RunSeparately(Exception):  # noqa: N818 - a way to leave a transaction
    """One write of a batch failed: each is to be run in a transaction of its own."""


class _BatchedWrite(NamedTuple):
    """A write that waits for its batch, and its form that can be combined, if it has one."""

    action: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    future: asyncio.Future[Any]
    form: Form | None


Run = Callable[[Callable[..., Awaitable[Any]], tuple[Any, ...], dict[str, Any]], Awaitable[Any]]
Combine = Callable[[str, list[Any]], Awaitable["list[Document] | None"]]


class WriteBatcher:
    """The queues of one node, one for each account that is being written to."""

    def __init__(self, run: Run, combine: Combine, create_many: CreateMany) -> None:
        self.loop = asyncio.get_running_loop()
        self._run = run
        self._combine = combine
        self._accounts = AccountBatcher(create_many)
        self._queues: dict[str, deque[_BatchedWrite]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def write(
        self,
        owner: str,
        action: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        form: Form | None,
    ) -> Awaitable[Any]:
        """Run an action in a batch of its account; its result, once it is committed."""
        write = _BatchedWrite(action, args, keywords, self.loop.create_future(), form)
        queue = self._queues.get(owner)
        if queue is not None:
            queue.append(write)
        else:
            self._queues[owner] = deque((write,))
            task = self.loop.create_task(self._run_queue(owner))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return write.future

    async def _run_queue(self, owner: str) -> None:
        queue = self._queues[owner]
        try:
            while queue:
                writes = [queue.popleft() for _ in range(min(len(queue), MAX_WRITES))]
                try:
                    await self._run_batch(owner, [write for write in writes if not write.future.done()])
                except Unavailable as refusal:  # the writes behind it need not wait to meet the same
                    for write in (*writes, *queue):
                        _complete(write, error=Unavailable(refusal.retry_after, refusal.message))
                    queue.clear()
        finally:
            del self._queues[owner]
            for write in queue:
                write.future.cancel()

    async def _run_batch(self, owner: str, writes: list[_BatchedWrite]) -> None:
        for kind in (NewDocument, Replacement):
            by_uid = {write.form.uid: write for write in writes if isinstance(write.form, kind)}
            await self._run_combined(owner, list(by_uid.values()))
        writes = [write for write in writes if not write.future.done()]
        if len(writes) > 1:
            try:
                results = await self._run(_run_all, (writes,), {})
            except RunSeparately:
                pass
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - raised for all callers
                for write in writes:
                    _complete(write, error=error)
                return
            else:
                for write, result in zip(writes, results, strict=True):
                    _complete(write, result)
                return
        for write in writes:
            await self._run_single(write)

    async def _run_combined(self, owner: str, writes: list[_BatchedWrite]) -> None:
        """Run these writes in one statement, or each half of them in one; those that are refused stay as they are."""
        if not writes:
            return
        forms: list[Any] = [write.form for write in writes if write.form is not None]
        try:
            if self._is_shareable(forms):
                stored = await self._accounts.create(owner, forms)
            else:
                stored = await self._combine(owner, forms)
        except OutcomeUnknown:  # to repeat each is to learn whether it was done
            for write in writes:
                await self._run_single(write, repeats=True)
            return
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - raised for all callers
            for write in writes:
                _complete(write, error=error)
            return
        if stored is not None:
            for write, form, document in zip(writes, forms, stored, strict=True):
                _complete(write, form.result(document))
        elif len(writes) > 1:
            middle = len(writes) // 2
            await self._run_combined(owner, writes[:middle])
            await self._run_combined(owner, writes[middle:])

    def _is_shareable(self, forms: Sequence[Form]) -> bool:
        """Whether a statement for several accounts is worth while: others are being written to, and these are small."""
        return (
            len(self._queues) > 1
            and isinstance(forms[0], NewDocument)
            and len(forms) <= MAX_SHARED
            and sum(form.size for form in forms) <= MAX_SHARED_BYTES
        )

    async def _run_single(self, write: _BatchedWrite, *, repeats: bool = False) -> None:
        """Run a write by itself. One that `repeats`, and is refused, may have been done and changed by others since."""
        try:
            _complete(write, await self._run(write.action, write.args, write.keywords))
        except Unavailable:
            raise
        except Refusal as refusal:
            _complete(write, error=Unavailable(1, UNKNOWN) if repeats else refusal)
        except Exception as error:  # noqa: BLE001 - raised for its caller
            _complete(write, error=error)


async def _run_all(tx: Any, writes: list[_BatchedWrite]) -> list[Any]:
    tx.writes = len(writes)
    try:
        return [await write.action(tx, *write.args, **write.keywords) for write in writes]
    except (RollbackWith, Refusal, Duplicate, MissingParent):
        raise RunSeparately from None


def _complete(write: _BatchedWrite, result: Any = None, error: BaseException | None = None) -> None:
    """Complete the future of the caller, unless the caller was cancelled meanwhile."""
    if write.future.done():
        return
    if error is not None:
        write.future.set_exception(error)
    else:
        write.future.set_result(result)
