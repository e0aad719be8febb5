"""HTTP clients, blocking and asynchronous; no redirects, no cookies. Only `net/` knows the HTTP library.

The size and the duration of a response are limited, and it must not be compressed: a hostile server can exhaust neither
memory nor time.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from strongroom.client.errors import Tampered, Unreachable, WrongServer
from strongroom.client.net.effects import NoResponse, Request, Response, Upload
from strongroom.wire.export_lines import MEDIA_TYPE

if TYPE_CHECKING:
    import httpx2

    from strongroom.client.net.connection import Connection

MIN_BYTES_PER_SECOND: Final = 16_384  # once the timeout has passed
_CONNECT_TIMEOUT: Final = 10.0  # seconds
_TOO_SLOW: Final = "The server sent its response too slowly; pass a longer timeout= if the network is slow."
_PIECE: Final = 1 << 16  # bytes of an upload that are read at a time
_TOO_LONG: Final = "The server's answer is longer than any answer to this request can be."
_COMPRESSED: Final = "The server's answer is compressed, although it was asked not to be."
_REDIRECT: Final = (
    "The server redirects to another address, and nothing was sent there. Check the URL: is it https, and are host and "
    "path right? Use only an address that you trust."
)


class _HttpBase:
    """The base of both clients: builds requests. The connection pool is created on first use."""

    def __init__(self, connection: Connection) -> None:
        if find_spec("httpx2") is None:
            raise ModuleNotFoundError(
                "The client needs a library that is not installed; run: pip install 'strongroom[client]' "
                "(in a clone: pip install '.[client]')",
                name="httpx2",
            )
        self._connection = connection
        self._timeout = connection.timeout
        self._http: Any = None

    def _options(self) -> dict[str, Any]:
        """The options of the HTTP library. What the environment may decide was decided by `Connection`."""
        connection = self._connection
        options: dict[str, Any] = {"verify": connection.certificates(), "follow_redirects": False, "trust_env": False}
        if connection.proxy is not None:
            options["proxy"] = connection.proxy
        return {**options, "transport": connection.transport}

    def _no_response(self, error: Exception, wanted: Request) -> NoResponse:
        from strongroom.client.net import connection_errors

        return connection_errors.no_response(error, self._connection, self._timeout + wanted.wait)

    @staticmethod
    def _content(upload: Upload) -> Any:
        """The body of an upload, in pieces."""
        raise NotImplementedError

    def _request(self, wanted: Request) -> httpx2.Request:
        import httpx2

        from strongroom._version import __version__

        headers = {
            "accept": wanted.accept,
            "accept-encoding": "identity",
            "user-agent": f"strongroom-client/{__version__}",
        }
        if wanted.bearer is not None:
            headers["authorization"] = f"Bearer {wanted.bearer}"
        if wanted.keyring_version is not None:
            headers["keyring-version"] = str(wanted.keyring_version)
        if wanted.body is not None:
            headers["content-type"] = MEDIA_TYPE if isinstance(wanted.body, Upload) else "application/json"
        read_timeout = self._timeout + wanted.wait
        timeout = httpx2.Timeout(self._timeout, connect=min(_CONNECT_TIMEOUT, self._timeout), read=read_timeout)
        query = f"?{urlencode(wanted.query)}" if wanted.query else ""
        return httpx2.Request(
            wanted.method,
            f"{self._connection.url}{wanted.path}{query}",
            headers=headers,
            content=self._content(wanted.body) if isinstance(wanted.body, Upload) else wanted.body,
            extensions={"timeout": timeout.as_dict()},
        )


class _BoundedBody:
    """The body of a response, read within limits of size and time."""

    def __init__(self, wanted: Request, response: httpx2.Response, timeout: float) -> None:
        if 300 <= response.status_code < 400:
            raise WrongServer(_REDIRECT, details={"status": response.status_code})
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Tampered(_COMPRESSED)
        self._max_bytes = wanted.max_bytes
        self._response = response
        self._parts: list[bytes] = []
        self._length = 0
        self._end = time.monotonic() + timeout + wanted.wait

    def add(self, part: bytes) -> None:
        """Add the next bytes, or refuse them."""
        self._length += len(part)
        if self._length > self._max_bytes:
            raise Tampered(_TOO_LONG)
        if time.monotonic() > self._end + self._length / MIN_BYTES_PER_SECOND:
            raise NoResponse(sent=True, error=Unreachable(_TOO_SLOW, reason="timeout"))
        self._parts.append(part)

    def response(self) -> Response:
        """The complete response."""
        after = self._response.headers.get("retry-after", "")
        seconds = int(after) if after.isdecimal() and len(after) < 7 else None
        media_type = self._response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return Response(self._response.status_code, b"".join(self._parts), seconds, media_type == "application/json")


class ResponseStream:
    """The body of a response, as it arrives."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._parts = response.iter_raw()

    def read(self) -> bytes:
        """The next bytes; empty at the end."""
        import httpx2

        try:
            return next(self._parts, b"")
        except httpx2.TransportError:
            raise NoResponse(sent=True) from None

    def close(self) -> None:
        """Close the stream."""
        self._response.close()


class AsyncResponseStream:
    """The body of a response, as it arrives, for an asynchronous client."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._parts = response.aiter_raw()

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        import httpx2

        try:
            return await anext(self._parts, b"")
        except httpx2.TransportError:
            raise NoResponse(sent=True) from None

    async def close(self) -> None:
        """Close the stream."""
        await self._response.aclose()


class HttpClient(_HttpBase):
    """A blocking HTTP client."""

    @staticmethod
    def _content(upload: Upload) -> Iterator[bytes]:
        yield upload.first
        with Path(upload.path).open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
                upload.progress(file.tell())

    def send(self, wanted: Request) -> Response:
        """Send a request and read its response; raises NoResponse if there is none."""
        return self._read(wanted, self._send(wanted))

    def _read(self, wanted: Request, response: httpx2.Response) -> Response:
        import httpx2

        try:
            body = _BoundedBody(wanted, response, self._timeout)
            for part in response.iter_raw():
                body.add(part)
            return body.response()
        except httpx2.TransportError as error:
            raise self._no_response(error, wanted) from None
        finally:
            response.close()

    def open_stream(self, wanted: Request) -> ResponseStream | Response:
        """Open a stream of what the request accepts; any other response is returned as such."""
        response = self._send(wanted)
        if response.status_code == 200 and response.headers.get("content-type", "").startswith(wanted.accept):
            return ResponseStream(response)
        if response.status_code != 200:
            return self._read(wanted, response)
        response.close()
        return Response(404, b"")

    def _send(self, wanted: Request) -> httpx2.Response:
        import httpx2

        if self._http is None:
            self._http = httpx2.Client(**self._options())
        try:
            response: httpx2.Response = self._http.send(self._request(wanted), stream=True)
        except httpx2.TransportError as error:
            raise self._no_response(error, wanted) from None
        return response

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()


class AsyncHttpClient(_HttpBase):
    """An asynchronous HTTP client."""

    @staticmethod
    async def _content(upload: Upload) -> AsyncIterator[bytes]:
        import asyncio

        yield upload.first
        with await asyncio.to_thread(Path(upload.path).open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, _PIECE):
                yield piece
                upload.progress(file.tell())

    async def send(self, wanted: Request) -> Response:
        """Send a request and read its response; raises NoResponse if there is none."""
        return await self._read(wanted, await self._send(wanted))

    async def _read(self, wanted: Request, response: httpx2.Response) -> Response:
        import httpx2

        try:
            body = _BoundedBody(wanted, response, self._timeout)
            async for part in response.aiter_raw():
                body.add(part)
            return body.response()
        except httpx2.TransportError as error:
            raise self._no_response(error, wanted) from None
        finally:
            await response.aclose()

    async def open_stream(self, wanted: Request) -> AsyncResponseStream | Response:
        """Open a stream of what the request accepts; any other response is returned as such."""
        response = await self._send(wanted)
        if response.status_code == 200 and response.headers.get("content-type", "").startswith(wanted.accept):
            return AsyncResponseStream(response)
        if response.status_code != 200:
            return await self._read(wanted, response)
        await response.aclose()
        return Response(404, b"")

    async def _send(self, wanted: Request) -> httpx2.Response:
        import httpx2

        if self._http is None:
            self._http = httpx2.AsyncClient(**self._options())
        try:
            response: httpx2.Response = await self._http.send(self._request(wanted), stream=True)
        except httpx2.TransportError as error:
            raise self._no_response(error, wanted) from None
        return response

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
