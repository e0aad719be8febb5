"""Writes of one account on PostgreSQL share transactions: they would only wait in line for the same row.

Each node takes the writes of an account that have gathered and runs them one after the other in one transaction. If
one of them is refused, all are undone and each is run again by itself: a refusal never touches the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from strongroom.errors import Refusal, Unavailable
from strongroom.store.exceptions import Duplicate, MissingParent, RollbackWith

MOST: Final = 64  # writes in one transaction


class RunSeparately(Exception):  # noqa: N818 - a way to leave a transaction
    """One of several writes did not go through: each is to be run by itself."""


class _BatchedWrite(NamedTuple):
    """A write that waits for its turn."""

    action: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    future: asyncio.Future[Any]


Run = Callable[[Callable[..., Awaitable[Any]], tuple[Any, ...], dict[str, Any]], Awaitable[Any]]


class WriteBatcher:
    """The queues of one node, a queue for each account that is being written to."""

    def __init__(self, run: Run) -> None:
        self.loop = asyncio.get_running_loop()
        self._run = run
        self._queues: dict[str, deque[_BatchedWrite]] = {}
        self._serving: set[asyncio.Task[None]] = set()

    def write(self, owner: str, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Awaitable[Any]:
        """Run an action with others of its account; whoever waits for it is told once it is committed."""
        job = _BatchedWrite(action, args, keywords, self.loop.create_future())
        queue = self._queues.get(owner)
        if queue is not None:
            queue.append(job)
        else:
            self._queues[owner] = deque((job,))
            task = self.loop.create_task(self._serve(owner))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        return job.future

    async def _serve(self, owner: str) -> None:
        queue = self._queues[owner]
        try:
            while queue:
                jobs = [queue.popleft() for _ in range(min(len(queue), MOST))]
                try:
                    await self._share([job for job in jobs if not job.future.done()])
                except Unavailable as refusal:  # nobody else needs to find that out by waiting
                    for job in (*jobs, *queue):
                        _settle(job, error=Unavailable(refusal.retry_after, refusal.message))
                    queue.clear()
        finally:
            del self._queues[owner]
            for job in queue:
                job.future.cancel()

    async def _share(self, jobs: list[_BatchedWrite]) -> None:
        if len(jobs) > 1:
            try:
                results = await self._run(_together, (jobs,), {})
            except RunSeparately:
                pass
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - told to those who wait
                for job in jobs:
                    _settle(job, error=error)
                return
            else:
                for job, result in zip(jobs, results, strict=True):
                    _settle(job, result)
                return
        for job in jobs:
            await self._alone(job)

    async def _alone(self, job: _BatchedWrite) -> None:
        try:
            _settle(job, await self._run(job.action, job.args, job.keywords))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - told to the one who waits
            _settle(job, error=error)


async def _together(tx: Any, jobs: list[_BatchedWrite]) -> list[Any]:
    tx.writes = len(jobs)
    try:
        return [await job.action(tx, *job.args, **job.keywords) for job in jobs]
    except (RollbackWith, Refusal, Duplicate, MissingParent):
        raise RunSeparately from None


def _settle(job: _BatchedWrite, result: Any = None, error: BaseException | None = None) -> None:
    """Tell the one who waits. A request that was cancelled meanwhile has nobody waiting."""
    if job.future.done():
        return
    if error is not None:
        job.future.set_exception(error)
    else:
        job.future.set_result(result)
