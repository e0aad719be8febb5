"""Batches concurrent requests: all are handled, then all responses are sent, then all are logged.

Each of these steps runs through more code than the processor's instruction cache holds. Done for one request after
another, a step finds its code in the cache; in turn with the others, it loads it anew each time. It is the same work in
another order, and with 64 clients a read takes half the time (141 against 80 µs, both without tasks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

MAX_BATCH: Final = 64  # responses that are sent together, at most
MAX_BATCH_BYTES: Final = 256 * 1024  # of responses that are sent together, at most


class Batched(Protocol):
    """A request, as the batcher uses it."""

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
        self._completed: list[Batched] = []
        self._bytes = 0

    def submit(self, exchange: Batched) -> None:
        """Handle a request, once all that arrived in the same turn of the event loop are parsed."""
        self._arrived.append(exchange)
        if len(self._arrived) == 1:
            self._loop.call_soon(self._begin_all)

    def complete(self, exchange: Batched, size: int) -> None:
        """Send a response, once all that need no waiting are ready, or enough to be sent."""
        self._completed.append(exchange)
        self._bytes += size
        if self._bytes >= MAX_BATCH_BYTES or len(self._completed) == MAX_BATCH:
            self._send()
        elif len(self._completed) == 1:
            self._loop.call_soon(self._send)

    def _begin_all(self) -> None:
        arrived, self._arrived = self._arrived, []
        for exchange in arrived:
            _run_step(exchange, exchange.begin)
        self._send()

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
