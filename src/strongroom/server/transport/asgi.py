"""The ASGI adapter, for programs that embed the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from strongroom.server.request import ClientDisconnected, Request, merge_headers
from strongroom.server.response import Chunk, Response, size_of

if TYPE_CHECKING:
    from strongroom.server.app import App

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Body:
    """A request body from ASGI messages."""

    whole: bytes | None = None

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    async def more(self) -> tuple[bytes, bool]:
        """The next piece, and whether there are more."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        return message.get("body", b""), message.get("more_body", False)

    async def wait_disconnected(self) -> None:
        """Wait until the client has disconnected."""
        await _disconnected(self._receive)


async def serve(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Handle one ASGI scope: a request, or the lifespan of the application."""
    if scope["type"] == "lifespan":
        await _live(app, receive, send)
    elif scope["type"] == "http":
        await _handle(app, scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _live(app: App, receive: Receive, send: Send) -> None:
    await receive()
    await app.start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await app.close()
    await send({"type": "lifespan.shutdown.complete"})


async def _handle(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    client = scope.get("client")
    request = Request(
        app.context,
        scope["method"],
        _raw_path(scope),
        scope.get("query_string", b""),
        merge_headers(scope["headers"]),
        client[0] if client else None,
    )
    request.body = _Body(receive)
    status, size, response = 499, 0, None
    try:
        response = await app.handle(request)
        if response is not None:
            status = response.status
            size = await _send(response, send, receive)
    finally:
        app.log_request(request, status, size, None if response is None else response.ended)


async def _send(response: Response, send: Send, receive: Receive) -> int:
    """Send the response; the bytes of its body. A stream stops when the client disconnects."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.fields()})
    if response.chunks is None:
        await send({"type": "http.response.body", "body": _joined(response.body)})
        return response.size
    gone = asyncio.ensure_future(_disconnected(receive))
    sending = asyncio.ensure_future(_chunks(response, send))
    try:
        await asyncio.wait((gone, sending), return_when=asyncio.FIRST_COMPLETED)
        return sending.result() if sending.done() else 0
    finally:
        gone.cancel()
        if not sending.done():
            sending.cancel()
            await asyncio.wait((sending,))


async def _chunks(response: Response, send: Send) -> int:
    """Send the chunks of a stream.

    A server takes a message only when the client has taken most of what was sent before. So the empty one waits for the
    client, and what is sent next is chosen after that: no chunk is queued that was made too early.
    """
    assert response.chunks is not None  # noqa: S101
    size = 0
    try:
        async for chunk in response.chunks:
            size += size_of(chunk)
            await send({"type": "http.response.body", "body": _joined(chunk), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
    finally:
        await response.chunks.aclose()  # releases the database
    await send({"type": "http.response.body", "body": b""})
    return size


def _joined(chunk: Chunk) -> bytes:
    return b"".join(chunk) if isinstance(chunk, list) else bytes(chunk)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _raw_path(scope: Scope) -> bytes:
    """The raw path, without the prefix under which the application is mounted."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    prefix: bytes = scope.get("root_path", "").encode()
    return raw.removeprefix(prefix) if prefix else raw
