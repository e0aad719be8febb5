"""The line to the server: the only file that knows the HTTP library. It follows no redirect and keeps no cookie.

An answer may be as long as the request allows, come as slowly as a bad line, and not be compressed: a server that lies
can fill neither the memory nor the day.
"""

from __future__ import annotations

import functools
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from strongroom.client.errors import Tampered
from strongroom.client.net.effects import Answer, Lost, Request
from strongroom.errors import Invalid

if TYPE_CHECKING:
    import ssl

    import httpx2

SLOWEST: Final = 16_384  # bytes a second, once the patience for silence is used up
_LOCAL: Final = {"localhost", "127.0.0.1", "::1"}
_CONNECTING: Final = 10.0  # seconds
_LONG: Final = "The server's answer is longer than any answer to this request can be."
_PACKED: Final = "The server's answer is compressed, although it was asked not to be."
_ELSEWHERE: Final = "The server sends its callers elsewhere; nothing was sent there. Use the address that you trust."


def checked_url(url: str, *, insecure: bool = False) -> str:
    """An address to call: https, or a server on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or parts.scheme not in {"http", "https"} or parts.query or parts.fragment or "@" in parts.netloc:
        raise Invalid({"url": "must be the address of a server, like https://vault.example.com"})
    if parts.scheme == "http" and host not in _LOCAL and not insecure:
        raise Invalid({"url": "must begin with https://, or whoever is on the way reads along; see insecure=True"})
    return url.rstrip("/")


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The authorities that this machine trusts, read once for all clients of the process: reading them takes long."""
    import httpx2

    return httpx2.create_ssl_context()


class _Common:
    """What both lines share: the library, made when it is first needed."""

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
        silence = self._timeout + wanted.wait
        timeout = httpx2.Timeout(self._timeout, connect=min(_CONNECTING, self._timeout), read=silence)
        query = f"?{urlencode(wanted.query)}" if wanted.query else ""
        return httpx2.Request(
            wanted.method,
            f"{self._url}{wanted.path}{query}",
            headers=headers,
            content=wanted.body,
            extensions={"timeout": timeout.as_dict()},
        )


class _Body:
    """An answer as it comes in, within its bounds."""

    def __init__(self, wanted: Request, response: httpx2.Response, timeout: float) -> None:
        if 300 <= response.status_code < 400:
            raise Tampered(_ELSEWHERE)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Tampered(_PACKED)
        self._most = wanted.most
        self._response = response
        self._parts: list[bytes] = []
        self._length = 0
        self._end = time.monotonic() + timeout + wanted.wait

    def add(self, part: bytes) -> None:
        """Take the next bytes."""
        self._length += len(part)
        if self._length > self._most:
            raise Tampered(_LONG)
        if time.monotonic() > self._end + self._length / SLOWEST:
            raise Lost(sent=True)
        self._parts.append(part)

    def answer(self) -> Answer:
        """The whole of it."""
        after = self._response.headers.get("retry-after", "")
        seconds = int(after) if after.isdecimal() and len(after) < 7 else None
        return Answer(self._response.status_code, b"".join(self._parts), seconds)


class Listening:
    """A stream that waits for the next bytes."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._parts = response.iter_raw()

    def hear(self) -> bytes:
        """The next bytes; none at the end."""
        import httpx2

        try:
            return next(self._parts, b"")
        except httpx2.TransportError:
            raise Lost(sent=True) from None

    def close(self) -> None:
        """Listen no more."""
        self._response.close()


class AsyncListening:
    """A stream whose next bytes are awaited."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._parts = response.aiter_raw()

    async def hear(self) -> bytes:
        """The next bytes; none at the end."""
        import httpx2

        try:
            return await anext(self._parts, b"")
        except httpx2.TransportError:
            raise Lost(sent=True) from None

    async def close(self) -> None:
        """Listen no more."""
        await self._response.aclose()


class Line(_Common):
    """A line that waits."""

    def send(self, wanted: Request) -> Answer:
        """Send a request and read its answer; Lost where there is none."""
        import httpx2

        response = self._begin(wanted)
        try:
            body = _Body(wanted, response, self._timeout)
            for part in response.iter_raw():
                body.add(part)
            return body.answer()
        except httpx2.TransportError:
            raise Lost(sent=True) from None
        finally:
            response.close()

    def listen(self, wanted: Request) -> Listening | Answer:
        """Begin to listen to an answer that does not end; or the answer, if it is another."""
        response = self._begin(wanted)
        if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
            return Listening(response)
        response.close()
        return Answer(response.status_code if response.status_code != 200 else 404, b"")

    def _begin(self, wanted: Request) -> httpx2.Response:
        import httpx2

        if self._http is None:
            self._http = httpx2.Client(transport=self._transport, verify=_certificates(), follow_redirects=False)
        try:
            response: httpx2.Response = self._http.send(self._request(wanted), stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise Lost(sent=False) from None
        except httpx2.TransportError:
            raise Lost(sent=True) from None
        return response

    def close(self) -> None:
        """Hang up."""
        if self._http is not None:
            self._http.close()


class AsyncLine(_Common):
    """A line that is awaited."""

    async def send(self, wanted: Request) -> Answer:
        """Send a request and read its answer; Lost where there is none."""
        import httpx2

        response = await self._begin(wanted)
        try:
            body = _Body(wanted, response, self._timeout)
            async for part in response.aiter_raw():
                body.add(part)
            return body.answer()
        except httpx2.TransportError:
            raise Lost(sent=True) from None
        finally:
            await response.aclose()

    async def listen(self, wanted: Request) -> AsyncListening | Answer:
        """Begin to listen to an answer that does not end; or the answer, if it is another."""
        response = await self._begin(wanted)
        if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
            return AsyncListening(response)
        await response.aclose()
        return Answer(response.status_code if response.status_code != 200 else 404, b"")

    async def _begin(self, wanted: Request) -> httpx2.Response:
        import httpx2

        if self._http is None:
            self._http = httpx2.AsyncClient(transport=self._transport, verify=_certificates(), follow_redirects=False)
        try:
            response: httpx2.Response = await self._http.send(self._request(wanted), stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise Lost(sent=False) from None
        except httpx2.TransportError:
            raise Lost(sent=True) from None
        return response

    async def close(self) -> None:
        """Hang up."""
        if self._http is not None:
            await self._http.aclose()
