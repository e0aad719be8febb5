"""The blocking driver: performs the effects of an operation on the calling thread."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar, cast

from strongroom.client.net.effects import (
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
    from concurrent.futures import ThreadPoolExecutor

    from strongroom.client.net.http import HttpClient

T = TypeVar("T")


class Driver:
    """Performs effects on the calling thread. Several threads may use it."""

    def __init__(self, http: HttpClient) -> None:
        self.http = http
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._executor: ThreadPoolExecutor | None = None

    @classmethod
    def run_alone(cls, effects: Effects[T]) -> T:
        """Perform the effects of an operation that sends nothing."""
        return cls(cast("HttpClient", None)).run(effects)

    def run(self, effects: Effects[T]) -> T:
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
                value = self._perform(effect)
            except BaseException as raised:  # noqa: BLE001 - the operation decides what it means
                error = raised

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Request):
            return self.http.send(effect)
        if isinstance(effect, Sleep):
            return time.sleep(effect.seconds)
        if isinstance(effect, WithLock):
            with self._locks[effect.lock]:
                return self.run(effect.effects)
        if isinstance(effect, SendAndCompute):
            return self._send_and_compute(effect)
        if isinstance(effect, OpenStream):
            return self.http.open_stream(effect.request)
        if isinstance(effect, ReadStream):
            return effect.stream.read()
        if isinstance(effect, CloseStream):
            return effect.stream.close()
        return effect.run()

    def _send_and_compute(self, effect: SendAndCompute) -> Any:
        from concurrent.futures import ThreadPoolExecutor, wait

        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "strongroom")
        computation = self._executor.submit(effect.run)
        try:
            response: Any = self.http.send(effect.request)
        except NoResponse as none:
            response = none
        finally:
            wait([computation])
        return response, computation.result()

    def close(self) -> None:
        """Close the connections."""
        if self._executor is not None:
            self._executor.shutdown()
        self.http.close()
