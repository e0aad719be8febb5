"""The answer that does not end: what a follower is told, as it is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from strongroom.server.http import Answer, disconnected

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Send

    from strongroom.server.live.follower import Follower

CONTENT_TYPE: Final = b"text/event-stream"
_HEADERS: Final = ((b"x-accel-buffering", b"no"),)  # nginx passes it on as it comes


def headers_only() -> Answer:
    """The answer to a HEAD: no stream is begun for it."""
    return Answer(content_type=CONTENT_TYPE, headers=_HEADERS)


class Stream(Answer):
    """Server-sent events for as long as somebody takes them."""

    __slots__ = ("_enter", "_first", "_leave")

    def __init__(self, first: bytes, enter: Callable[[], Follower], leave: Callable[[Follower], None]) -> None:
        super().__init__(content_type=CONTENT_TYPE, headers=_HEADERS)
        self.headers = [header for header in self.headers if header[0] != b"content-length"]
        self._first = first
        self._enter = enter
        self._leave = leave
        self.ended = "client_gone"

    async def send(self, send: Send, receive: Receive) -> int:
        """Send what comes until one side ends it; how many bytes that were.

        A server takes a message only when the client has taken most of what was sent before. So the empty one waits
        for the client, and what is sent next is chosen after that: nothing lies about that is decided already.
        """
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        follower = self._enter()
        gone = asyncio.ensure_future(disconnected(receive))
        gone.add_done_callback(lambda _: follower.leave())
        size, piece = 0, self._first
        try:
            while piece:
                await send(_body(piece))
                size += len(piece)
                await send(_body(b""))
                piece = await follower.next()
            if follower.ended is not None:
                self.ended = follower.ended.value
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._leave(follower)
            gone.cancel()
        return size


def _body(piece: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": piece, "more_body": True}
