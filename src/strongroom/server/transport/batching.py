"""Batches concurrent requests: all are handled, then all responses are sent, then all are logged.

Each of these steps runs through more code than the processor's instruction cache holds. Done for one request after
another, a step finds its code in the cache; in turn with the others, it loads it anew each time. It is the same work in
another order, and with 64 clients a read takes half the time (141 against 80 µs, both without tasks).

A batch that takes long gives way: what is left of it waits, and accounts take turns from then on. So a request waits
for a few milliseconds of another account's, however many that sends at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from strongroom.server.fair_queue import FairQueue, Place
from strongroom.server.turns import STEP_SECONDS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

MAX_BATCH: Final = 64  # responses that are sent together, at most
MAX_BATCH_BYTES: Final = 256 * 1024  # of responses that are sent together, at most


class Batched(Protocol):
    """A request, as the batcher uses it."""

    @property
    def sender(self) -> str:
        """The account that seems to have sent it, or else the address."""

    def begin(self) -> None:
        """Run the handler as far as it goes without waiting."""

    def send(self) -> None:
        """Send the response."""

    def record(self) -> None:
        """Log and count the request."""

    def break_off(self, error: Exception) -> None:
        """Log an unexpected failure of a step, and cut the connection."""


class RequestBatcher:
    """The requests to handle and the responses to send, of all connections of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: list[Batched] = []
        self._waiting: FairQueue[Batched] = FairQueue()  # what was left of earlier batches
        self._scheduled = False
        self._completed: list[Batched] = []
        self._bytes = 0

    def submit(self, exchange: Batched) -> None:
        """Handle a request, once all that arrived in the same turn of the event loop are parsed."""
        self._arrived.append(exchange)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._begin_some)

    def complete(self, exchange: Batched, size: int) -> None:
        """Send a response, once all that need no waiting are ready, or enough to be sent."""
        self._completed.append(exchange)
        self._bytes += size
        if self._bytes >= MAX_BATCH_BYTES or len(self._completed) == MAX_BATCH:
            self._send()
        elif len(self._completed) == 1:
            self._loop.call_soon(self._send)

    def _begin_some(self) -> None:
        """Handle what has arrived, for a few milliseconds; then others are read, and what is left goes on by turns."""
        arrived, self._arrived = self._arrived, []
        until, begun = time.perf_counter() + STEP_SECONDS, 0
        if not self._waiting:
            for exchange in arrived:
                _run_step(exchange, exchange.begin)
                begun += 1
                if time.perf_counter() >= until:
                    break
        for exchange in arrived[begun:]:
            self._waiting.add(Place(exchange.sender, ""), exchange)
        while (not begun or time.perf_counter() < until) and (waiting := self._waiting.next()) is not None:
            _run_step(waiting, waiting.begin)
            begun += 1
        self._send()
        self._scheduled = bool(self._waiting or self._arrived)
        if self._scheduled:
            self._loop.call_soon(self._begin_some)

    def _send(self) -> None:
        completed, self._completed, self._bytes = self._completed, [], 0
        for exchange in completed:
            _run_step(exchange, exchange.send)
        for exchange in completed:
            _run_step(exchange, exchange.record)


def _run_step(exchange: Batched, step: Callable[[], None]) -> None:
    """Run one step for one request; its failure does not affect the others."""
    try:
        step()
    except Exception as error:  # noqa: BLE001
        exchange.break_off(error)
