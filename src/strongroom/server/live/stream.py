"""The answer that does not end: what a follower is told, as it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.server.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from strongroom.server.live.follower import Follower

CONTENT_TYPE: Final = b"text/event-stream"
_HEADERS: Final = ((b"x-accel-buffering", b"no"),)  # nginx passes it on as it comes


def headers_only() -> Response:
    """The answer to a HEAD: no stream is begun for it."""
    return Response(content_type=CONTENT_TYPE, headers=_HEADERS)


class Stream(Response):
    """Server-sent events for as long as somebody takes them.

    What is sent next is chosen after the client has taken most of what was sent before: nothing lies about that is
    decided already.
    """

    __slots__ = ()

    def __init__(self, first: bytes, enter: Callable[[], Follower], leave: Callable[[Follower], None]) -> None:
        super().__init__(content_type=CONTENT_TYPE, headers=_HEADERS, chunks=self._told(first, enter, leave))
        self.ended = "client_gone"

    async def _told(
        self, first: bytes, enter: Callable[[], Follower], leave: Callable[[Follower], None]
    ) -> AsyncGenerator[bytes, None]:
        follower, piece = enter(), first
        try:
            while piece:
                yield piece
                piece = await follower.next()
            if follower.ended is not None:
                self.ended = follower.ended.value
        finally:
            leave(follower)
