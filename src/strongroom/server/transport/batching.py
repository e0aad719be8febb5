"""Requests that come in together are served together: first all are answered, then all answers sent, then all noted.

Each of these steps runs through more code than a processor's nearest memory holds. Done for one request after another,
a step finds its code there; done in turn with the others, it fetches it anew each time. It is the same work in another
order, and with 64 clients a read takes half the time (141 against 80 µs, both without tasks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

TOGETHER: Final = 64  # answers that wait for each other, at most
BYTES: Final = 256 * 1024  # of answers that wait


class Batched(Protocol):
    """A request, as the batch that it is in sees it."""

    def begin(self) -> None:
        """Begin to answer."""

    def send(self) -> None:
        """Send what is ready."""

    def note(self) -> None:
        """Log and count the request."""

    def break_off(self, error: Exception) -> None:
        """Something of this request failed that must not: say so, and let its connection go."""


class RequestBatcher:
    """What has come in and what is to go out, of all connections of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: list[Batched] = []
        self._answered: list[Batched] = []
        self._bytes = 0

    def submit(self, exchange: Batched) -> None:
        """A request is here: it is answered once all that came with it are here."""
        self._arrived.append(exchange)
        if len(self._arrived) == 1:
            self._loop.call_soon(self._begin_all)

    def complete(self, exchange: Batched, size: int) -> None:
        """An answer is ready: it is sent once all are ready that can be without waiting, or enough to be sent."""
        self._answered.append(exchange)
        self._bytes += size
        if self._bytes >= BYTES or len(self._answered) == TOGETHER:
            self._send()
        elif len(self._answered) == 1:
            self._loop.call_soon(self._send)

    def _begin_all(self) -> None:
        arrived, self._arrived = self._arrived, []
        for exchange in arrived:
            _do(exchange, exchange.begin)
        self._send()

    def _send(self) -> None:
        answered, self._answered, self._bytes = self._answered, [], 0
        for exchange in answered:
            _do(exchange, exchange.send)
        for exchange in answered:
            _do(exchange, exchange.note)


def _do(exchange: Batched, step: Callable[[], None]) -> None:
    """One step for one request: whatever happens to it, the others' turn comes."""
    try:
        step()
    except Exception as error:  # noqa: BLE001
        exchange.break_off(error)
