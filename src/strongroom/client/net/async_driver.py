"""The asynchronous driver: performs the effects of an operation on an event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar, cast

from strongroom.client.net.effects import (
    Ask,
    CloseStream,
    Effect,
    Effects,
    NoResponse,
    OpenStream,
    ReadStream,
    Request,
    SendAndCompute,
    Sleep,
    WithLock,
)

if TYPE_CHECKING:
    from strongroom.client.net.http import AsyncHttpClient

T = TypeVar("T")


class AsyncDriver:
    """Performs effects on an event loop; slow computations run in a thread."""

    def __init__(self, http: AsyncHttpClient) -> None:
        self.http = http
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @classmethod
    async def run_alone(cls, effects: Effects[T]) -> T:
        """Perform the effects of an operation that sends nothing."""
        return await cls(cast("AsyncHttpClient", None)).run(effects)

    async def run(self, effects: Effects[T]) -> T:
        """Perform all effects of an operation, and return its result."""
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                effect = effects.send(value) if error is None else effects.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            value = error = None
            try:
                value = await self._perform(effect)
            except BaseException as raised:  # noqa: BLE001 - a cancellation too: the operation cleans up, and lets it go on
                error = raised

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Request):
            return await self.http.send(effect)
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, WithLock):
            async with self._locks[effect.lock]:
                return await self.run(effect.effects)
        if isinstance(effect, SendAndCompute):
            return await self._send_and_compute(effect)
        if isinstance(effect, OpenStream):
            return await self.http.open_stream(effect.request)
        if isinstance(effect, ReadStream):
            return await effect.stream.read()
        if isinstance(effect, CloseStream):
            return await effect.stream.close()
        result = await asyncio.to_thread(effect.run)
        return await result if isinstance(effect, Ask) and inspect.isawaitable(result) else result

    async def _send_and_compute(self, effect: SendAndCompute) -> Any:
        computation = asyncio.create_task(asyncio.to_thread(effect.run))
        try:
            response: Any = await self.http.send(effect.request)
        except NoResponse as none:
            response = none
        finally:
            await asyncio.wait([computation])
        return response, computation.result()

    async def close(self) -> None:
        """Close the connections."""
        await self.http.close()
