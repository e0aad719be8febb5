"""The streaming response of server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.server.response import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from strongroom.server.live.follower import Follower

CONTENT_TYPE: Final = b"text/event-stream"
_HEADERS: Final = ((b"x-accel-buffering", b"no"),)  # nginx must not buffer it


def headers_only() -> Response:
    """The response to HEAD: the headers, and no subscription."""
    return Response(content_type=CONTENT_TYPE, headers=_HEADERS)


class Stream(Response):
    """Server-sent events, until the client disconnects or the follower ends.

    What is sent next is chosen after the client has taken most of what was sent before: no frame is queued in the
    transport that a revoked session must not see.
    """

    __slots__ = ()

    def __init__(self, first: bytes, enter: Callable[[], Follower], leave: Callable[[Follower], None]) -> None:
        super().__init__(content_type=CONTENT_TYPE, headers=_HEADERS, chunks=self._events(first, enter, leave))
        self.ended = "client_gone"

    async def _events(
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
