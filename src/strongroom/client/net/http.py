"""HTTP clients, blocking and asynchronous; the only file that knows the HTTP library. No redirects, no cookies.

The size and the duration of a response are limited, and it must not be compressed: a hostile server can exhaust neither
memory nor time.
"""

from __future__ import annotations

import functools
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from strongroom.client.errors import Tampered
from strongroom.client.net.effects import NoResponse, Request, Response
from strongroom.errors import Invalid

if TYPE_CHECKING:
    import ssl

    import httpx2

MIN_BYTES_PER_SECOND: Final = 16_384  # once the timeout has passed
_LOCAL: Final = {"localhost", "127.0.0.1", "::1"}
_CONNECT_TIMEOUT: Final = 10.0  # seconds
_TOO_LONG: Final = "The server's answer is longer than any answer to this request can be."
_COMPRESSED: Final = "The server's answer is compressed, although it was asked not to be."
_REDIRECT: Final = "The server sends its callers elsewhere; nothing was sent there. Use the address that you trust."


def checked_url(url: str, *, insecure: bool = False) -> str:
    """A server's URL, validated: https, or a server on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or parts.scheme not in {"http", "https"} or parts.query or parts.fragment or "@" in parts.netloc:
        raise Invalid({"url": "must be the address of a server, like https://vault.example.com"})
    if parts.scheme == "http" and host not in _LOCAL and not insecure:
        raise Invalid({"url": "must begin with https://, or the connection can be read on its way; see insecure=True"})
    return url.rstrip("/")


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The TLS context with this machine's trusted certificates, cached for the process: loading them is slow."""
    import httpx2

    return httpx2.create_ssl_context()


class _HttpBase:
    """The base of both clients: builds requests. The connection pool is created on first use."""

    def __init__(self, url: str, timeout: float, transport: Any) -> None:
        if find_spec("httpx2") is None:
            raise ModuleNotFoundError(
                "The client needs a library that is not installed; run: pip install 'strongroom[client]' "
                "(in a clone: pip install '.[client]')",
                name="httpx2",
            )
        self._url = url
        self._timeout = timeout
        self._transport = transport
        self._http: Any = None

    def _request(self, wanted: Request) -> httpx2.Request:
        import httpx2

        from strongroom._version import __version__

        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"strongroom-client/{__version__}",
        }
        if wanted.bearer is not None:
            headers["authorization"] = f"Bearer {wanted.bearer}"
        if wanted.body is not None:
            headers["content-type"] = "application/json"
        read_timeout = self._timeout + wanted.wait
        timeout = httpx2.Timeout(self._timeout, connect=min(_CONNECT_TIMEOUT, self._timeout), read=read_timeout)
        query = f"?{urlencode(wanted.query)}" if wanted.query else ""
        return httpx2.Request(
            wanted.method,
            f"{self._url}{wanted.path}{query}",
            headers=headers,
            content=wanted.body,
            extensions={"timeout": timeout.as_dict()},
        )


class _BoundedBody:
    """The body of a response, read within limits of size and time."""

    def __init__(self, wanted: Request, response: httpx2.Response, timeout: float) -> None:
        if 300 <= response.status_code < 400:
            raise Tampered(_REDIRECT)
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
            raise NoResponse(sent=True)
        self._parts.append(part)

    def response(self) -> Response:
        """The complete response."""
        after = self._response.headers.get("retry-after", "")
        seconds = int(after) if after.isdecimal() and len(after) < 7 else None
        return Response(self._response.status_code, b"".join(self._parts), seconds)


class EventStream:
    """A stream of server-sent events."""

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


class AsyncEventStream:
    """An asynchronous stream of server-sent events."""

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

    def send(self, wanted: Request) -> Response:
        """Send a request and read its response; raises NoResponse if there is none."""
        import httpx2

        response = self._send(wanted)
        try:
            body = _BoundedBody(wanted, response, self._timeout)
            for part in response.iter_raw():
                body.add(part)
            return body.response()
        except httpx2.TransportError:
            raise NoResponse(sent=True) from None
        finally:
            response.close()

    def open_stream(self, wanted: Request) -> EventStream | Response:
        """Open a stream of server-sent events; any other response is returned as such."""
        response = self._send(wanted)
        if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
            return EventStream(response)
        response.close()
        return Response(response.status_code if response.status_code != 200 else 404, b"")

    def _send(self, wanted: Request) -> httpx2.Response:
        import httpx2

        if self._http is None:
            self._http = httpx2.Client(transport=self._transport, verify=_certificates(), follow_redirects=False)
        try:
            response: httpx2.Response = self._http.send(self._request(wanted), stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise NoResponse(sent=False) from None
        except httpx2.TransportError:
            raise NoResponse(sent=True) from None
        return response

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()


class AsyncHttpClient(_HttpBase):
    """An asynchronous HTTP client."""

    async def send(self, wanted: Request) -> Response:
        """Send a request and read its response; raises NoResponse if there is none."""
        import httpx2

        response = await self._send(wanted)
        try:
            body = _BoundedBody(wanted, response, self._timeout)
            async for part in response.aiter_raw():
                body.add(part)
            return body.response()
        except httpx2.TransportError:
            raise NoResponse(sent=True) from None
        finally:
            await response.aclose()

    async def open_stream(self, wanted: Request) -> AsyncEventStream | Response:
        """Open a stream of server-sent events; any other response is returned as such."""
        response = await self._send(wanted)
        if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
            return AsyncEventStream(response)
        await response.aclose()
        return Response(response.status_code if response.status_code != 200 else 404, b"")

    async def _send(self, wanted: Request) -> httpx2.Response:
        import httpx2

        if self._http is None:
            self._http = httpx2.AsyncClient(transport=self._transport, verify=_certificates(), follow_redirects=False)
        try:
            response: httpx2.Response = await self._http.send(self._request(wanted), stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise NoResponse(sent=False) from None
        except httpx2.TransportError:
            raise NoResponse(sent=True) from None
        return response

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
