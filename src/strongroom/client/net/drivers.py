"""The two drivers: they take the steps of an operation, one by waiting, one by awaiting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from strongroom.client.net.effects import Hear, Listen, Lost, Meanwhile, Pause, Request, Step, Steps, Under
from strongroom.client.net.http import AsyncLine, Line

T = TypeVar("T")


class Driver:
    """Takes steps on the thread that asks. Several threads may use it."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._beside: ThreadPoolExecutor | None = None

    def run(self, steps: Steps[T]) -> T:
        """Take all the steps."""
        given: Any = None
        trouble: BaseException | None = None
        while True:
            try:
                step = steps.send(given) if trouble is None else steps.throw(trouble)
            except StopIteration as end:
                result: T = end.value
                return result
            given = trouble = None
            try:
                given = self._take(step)
            except BaseException as raised:  # noqa: BLE001 - whoever asked for the step decides what it means
                trouble = raised

    def _take(self, step: Step) -> Any:
        if isinstance(step, Request):
            return self.line.send(step)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        if isinstance(step, Under):
            with self._locks[step.lock]:
                return self.run(step.steps)
        if isinstance(step, Meanwhile):
            return self._both(step)
        if isinstance(step, Listen):
            return self.line.listen(step.request)
        if isinstance(step, Hear):
            return step.stream.hear()
        return step.run()

    def _both(self, step: Meanwhile) -> Any:
        if self._beside is None:
            self._beside = ThreadPoolExecutor(1, "strongroom")
        beside = self._beside.submit(step.run)
        try:
            answer: Any = self.line.send(step.request)
        except Lost as none:
            answer = none
        finally:
            wait([beside])
        return answer, beside.result()

    def close(self) -> None:
        """Hang up."""
        if self._beside is not None:
            self._beside.shutdown()
        self.line.close()


class AsyncDriver:
    """Takes steps on an event loop; slow computations go to a thread."""

    def __init__(self, line: AsyncLine) -> None:
        self.line = line
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, steps: Steps[T]) -> T:
        """Take all the steps."""
        given: Any = None
        trouble: BaseException | None = None
        while True:
            try:
                step = steps.send(given) if trouble is None else steps.throw(trouble)
            except StopIteration as end:
                result: T = end.value
                return result
            given = trouble = None
            try:
                given = await self._take(step)
            except BaseException as raised:  # noqa: BLE001 - a cancellation too: the operation cleans up, and lets it go on
                trouble = raised

    async def _take(self, step: Step) -> Any:
        if isinstance(step, Request):
            return await self.line.send(step)
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Under):
            async with self._locks[step.lock]:
                return await self.run(step.steps)
        if isinstance(step, Meanwhile):
            return await self._both(step)
        if isinstance(step, Listen):
            return await self.line.listen(step.request)
        if isinstance(step, Hear):
            return await step.stream.hear()
        return await asyncio.to_thread(step.run)

    async def _both(self, step: Meanwhile) -> Any:
        beside = asyncio.create_task(asyncio.to_thread(step.run))
        try:
            answer: Any = await self.line.send(step.request)
        except Lost as none:
            answer = none
        finally:
            await asyncio.wait([beside])
        return answer, beside.result()

    async def close(self) -> None:
        """Hang up."""
        await self.line.close()
