"""One exchange over HTTP/1.1 for `strongroom web verify`, read strictly.

A response that two readers could take in two ways is refused (`AmbiguousResponse`): a browser could be the other one.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

_SECONDS: Final = 20.0  # without a byte
_LONGEST: Final = 120.0  # seconds of a whole exchange
_HEAD: Final = 64 * 2**10  # bytes of a status line and the headers
LARGEST: Final = 16 * 2**20  # bytes of a content
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,8}")
_LENGTH: Final = re.compile(r"[0-9]{1,10}")

Headers = Sequence[tuple[str, str]]


class Unreachable(Exception):  # noqa: N818 - an outcome
    """The server does not respond; the message says why."""


class AmbiguousResponse(Exception):  # noqa: N818 - an outcome
    """A response that is not one alone, or none of HTTP; the message says what it is instead."""


class Host(NamedTuple):
    """A server: how it is called, and the addresses that its name has."""

    scheme: str
    netloc: str
    name: str
    port: int

    def addresses(self) -> list[str]:
        """The addresses of the name, as numbers."""
        try:
            found = socket.getaddrinfo(self.name, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable(f"its name has no address ({error.strerror})") from None
        return list(dict.fromkeys(str(place[0]) for *_, place in found))


class Response(NamedTuple):
    """A response: its status, its headers with names in small letters, its content as it was sent."""

    status: int
    headers: Headers
    content: bytes

    def all(self, name: str) -> list[str]:
        """The values of a header."""
        return [value for header, value in self.headers if header == name]


class Connection:
    """A connection to one address of a host. It is kept open from one request to the next where the server does."""

    def __init__(self, host: Host, address: str) -> None:
        self._host = host
        self._address = address
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._has_begun = False  # the response
        self._end = 0.0

    def close(self) -> None:
        """Close it; the next request opens it again."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def get(self, path: str, headers: Headers) -> Response:
        """The response to a request; raises Unreachable and AmbiguousResponse. Redirects are not followed."""
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._host.netloc}", *(f"{name}: {value}" for name, value in headers)]
        request = ("\r\n".join(lines) + "\r\n\r\n").encode()
        was_open = self._socket is not None
        self._end = time.monotonic() + _LONGEST
        try:
            try:
                return self._exchange(request)
            except (ConnectionError, EOFError):
                if not was_open:
                    raise
                self.close()  # the server had closed an idle connection
                return self._exchange(request)
        except AmbiguousResponse:
            self.close()
            raise
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"its certificate is not trusted ({error.verify_message})") from None
        except (OSError, EOFError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise Unreachable(f"no response ({reason})") from None

    def _exchange(self, request: bytes) -> Response:
        if self._socket is None:
            self._socket = self._opened()
        else:
            self._require_idle(self._socket)
        self._has_begun = False
        self._socket.sendall(request)
        version, status, headers = self._head()
        if status < 200:
            raise AmbiguousResponse(f"an interim response {status} comes before it")
        response = Response(status, headers, b"")
        if version < 1 and response.all("transfer-encoding"):
            raise AmbiguousResponse("it has a transfer coding, which HTTP/1.0 does not know")
        content = b"" if status in {204, 304} else self._content(response)
        if self._buffer:
            raise AmbiguousResponse("more bytes come after it")
        if any("close" in value.lower() for value in response.all("connection")):
            self.close()
        return response._replace(content=content)

    @staticmethod
    def _require_idle(found: socket.socket) -> None:
        """Refuse bytes that came after the last response: they are none to the next request."""
        found.settimeout(0)
        try:
            more = found.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        finally:
            found.settimeout(_SECONDS)
        if not more:
            raise EOFError
        raise AmbiguousResponse("more bytes come after the response before it")

    def _opened(self) -> socket.socket:
        found = socket.create_connection((self._address, self._host.port), timeout=_SECONDS)
        if self._host.scheme == "http":
            return found
        try:
            return ssl.create_default_context().wrap_socket(found, server_hostname=self._host.name)
        except BaseException:
            found.close()
            raise

    def _fill(self) -> None:
        if time.monotonic() > self._end:
            raise TimeoutError(None, "it takes too long")
        more = self._socket.recv(65_536) if self._socket is not None else b""
        if not more and self._has_begun:
            raise AmbiguousResponse("it ends too early")
        if not more:
            raise EOFError
        self._has_begun = True
        self._buffer += more

    def _line(self, most: int) -> bytes:
        while b"\n" not in self._buffer[: most + 1]:
            if len(self._buffer) > most:
                raise AmbiguousResponse("its head is longer than any of the app")
            self._fill()
        line, _, self._buffer = self._buffer.partition(b"\n")
        if not line.endswith(b"\r") or b"\r" in line[:-1]:
            raise AmbiguousResponse("its lines do not end as those of HTTP")
        return line[:-1]

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            if not self._buffer:
                self._fill()
            part, self._buffer = self._buffer[:size], self._buffer[size:]
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _head(self) -> tuple[int, int, Headers]:
        first = self._line(_HEAD)
        status = _STATUS.fullmatch(first)
        if status is None:
            raise AmbiguousResponse(f"it begins with {first[:40]!r}")
        headers, left = [], _HEAD
        while line := self._line(left):
            left -= len(line)
            found = _HEADER.fullmatch(line)
            if found is None or left <= 0:
                raise AmbiguousResponse(f"its headers have the line {line[:60]!r}")
            headers.append((found[1].decode().lower(), found[2].decode("latin-1")))
        return int(status[1]), int(status[2]), headers

    def _content(self, response: Response) -> bytes:
        codings, lengths = response.all("transfer-encoding"), response.all("content-length")
        if codings:
            if codings != ["chunked"] or lengths:
                raise AmbiguousResponse("it says in two ways how long it is")
            return self._chunks()
        if not lengths:
            return self._rest()
        if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
            raise AmbiguousResponse("it says in two ways how long it is")
        if int(lengths[0]) > LARGEST:
            raise AmbiguousResponse("it is larger than any file of the app")
        return self._exactly(int(lengths[0]))

    def _chunks(self) -> bytes:
        found = b""
        while True:
            line = self._line(100)
            if not _SIZE.fullmatch(line):
                raise AmbiguousResponse(f"it has a chunk {line[:40]!r}")
            size = int(line, 16)
            if len(found) + size > LARGEST:
                raise AmbiguousResponse("it is larger than any file of the app")
            if not size:
                break
            found += self._exactly(size)
            if self._exactly(2) != b"\r\n":
                raise AmbiguousResponse("a chunk of it is longer than it says")
        if self._line(_HEAD):
            raise AmbiguousResponse("headers come after its content")
        return found

    def _rest(self) -> bytes:
        """The content up to the end of the connection, where no header says its length."""
        found = b""
        try:
            while len(found) <= LARGEST:
                found, self._buffer = found + self._buffer, b""
                self._has_begun = False  # the end is no early one
                self._fill()
        except EOFError:
            self.close()
            return found
        raise AmbiguousResponse("it is larger than any file of the app")
