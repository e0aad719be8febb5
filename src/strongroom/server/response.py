"""The HTTP response: status, headers, a body or a stream of chunks; and refusals as responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from strongroom import errors, wire
from strongroom.errors import MethodNotAllowed, Refusal, RequestTimeout

Header = tuple[bytes, bytes]
Pieces = list[bytes | memoryview]  # written in order, without being concatenated first
Chunk = bytes | bytearray | Pieces
Chunks = AsyncGenerator[Chunk, None]

# The HTTP status of every refusal. A conflict with an If-Match header is a 412.
STATUS: Final[dict[type[Refusal], int]] = {
    errors.Invalid: 400,
    errors.Unauthorized: 401,
    errors.InvalidCredentials: 401,
    errors.InvalidRefreshToken: 401,
    errors.SecondFactorRequired: 401,
    errors.InvalidSecondFactor: 401,
    errors.InvalidTicket: 401,
    errors.InvalidPasskey: 401,
    errors.InsufficientScope: 403,
    errors.AccountDisabled: 403,
    errors.SignupsClosed: 403,
    errors.InvalidInvitation: 403,
    errors.NotFound: 404,
    errors.VaultNotFound: 404,
    errors.DocumentNotFound: 404,
    errors.VersionNotFound: 404,
    errors.ApiKeyNotFound: 404,
    errors.SessionNotFound: 404,
    errors.PasskeyNotFound: 404,
    errors.KeyringNotFound: 404,
    errors.SecondFactorNotFound: 404,
    errors.ImportNotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.RequestTimeout: 408,
    errors.EmailAlreadyExists: 409,
    errors.VaultAlreadyExists: 409,
    errors.UidTaken: 409,
    errors.PasskeyTaken: 409,
    errors.TooManyPasskeys: 409,
    errors.TooManyApiKeys: 409,
    errors.TooManyVaults: 409,
    errors.PasskeysUnavailable: 409,
    errors.AccountNotEmpty: 409,
    errors.ImportUnfinished: 409,
    errors.BatchConflict: 409,
    errors.DocumentConflict: 409,
    errors.VaultConflict: 409,
    errors.KeyringConflict: 409,
    errors.PayloadTooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.RateLimited: 429,
    errors.InternalError: 500,
    errors.Unavailable: 503,
    errors.StorageFull: 507,
    errors.QuotaExceeded: 507,
}


# Security headers of every response: no caching, no sniffing of types, no framing, no referrer.
_COMMON_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'self'; frame-ancestors 'none'"),
)


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


_COMMON_LINES: Final = _lines(_COMMON_HEADERS)
JSON: Final = b"application/json"
_JSON_LINES: Final = _COMMON_LINES + _lines([(b"content-type", JSON)])
CHUNK: Final = 3 * 512 * 1024  # bytes; a larger list is streamed in chunks of about this size


class StreamAborted(Exception):  # noqa: N818 - an outcome, not an error
    """A streamed response cannot be completed: the connection is closed, so that the client notices."""


class Response:
    """An HTTP response: status, headers and a body, complete or as a stream of chunks."""

    __slots__ = ("body", "chunks", "content_type", "ended", "etag", "headers", "prepared", "request_id", "status")

    def __init__(
        self,
        body: Chunk = b"",
        status: int = 200,
        *,
        etag: str | None = None,
        headers: Sequence[Header] = (),
        content_type: bytes = JSON,
        chunks: Chunks | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.chunks = chunks
        self.content_type = content_type
        self.etag = etag
        self.headers: Sequence[Header] = headers
        self.request_id = ""
        self.prepared = 0  # bytes of chunks that are in memory already
        self.ended: str | None = None  # the reason why an event stream ended

    @property
    def size(self) -> int:
        """The size of the body in bytes."""
        return size_of(self.body)

    @property
    def closes(self) -> bool:
        """Whether the connection is closed after this response."""
        return bool(self.headers) and any(name == b"connection" for name, _ in self.headers)

    def fields(self) -> list[Header]:
        """All headers of the response."""
        own = {name for name, _ in self.headers}
        fields = [*(header for header in _COMMON_HEADERS if header[0] not in own), *self.headers]
        if self.status not in {204, 304}:
            fields.append((b"content-type", self.content_type))
            if self.chunks is None:
                fields.append((b"content-length", b"%d" % self.size))
        if self.etag is not None:
            fields.append((b"etag", b'"%b"' % self.etag.encode()))
        fields.append((b"x-request-id", self.request_id.encode()))
        return fields

    def head(self) -> bytes:
        """The headers as bytes. The common case, JSON with a length, has a fast path."""
        if self.headers or self.chunks is not None or self.content_type is not JSON or self.status in {204, 304}:
            head = _lines(self.fields())
            if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r\n") != len(self.fields()):
                raise ValueError("a header contains a line break")
            return head
        if self.etag is None:
            return b"%bcontent-length: %d\r\nx-request-id: %b\r\n" % (
                _JSON_LINES,
                self.size,
                self.request_id.encode(),
            )
        return b'%bcontent-length: %d\r\netag: "%b"\r\nx-request-id: %b\r\n' % (
            _JSON_LINES,
            self.size,
            self.etag.encode(),
            self.request_id.encode(),
        )


def size_of(chunk: Chunk) -> int:
    """The size of a chunk in bytes."""
    return sum(map(len, chunk)) if isinstance(chunk, list) else len(chunk)


def json_response(value: Any, status: int = 200, *, etag: str | None = None) -> Response:
    """A struct as a JSON response."""
    return Response(wire.encode(value), status, etag=etag)


def json_items(page: list[Any], *, first: bool) -> Sequence[bytes | memoryview]:
    """A page as items of a JSON array that is written piece by piece, without another copy."""
    inner = memoryview(wire.encode(page))[1:-1]
    return (inner,) if first else (b",", inner)


async def streaming_response(chunks: Chunks, **about: Any) -> Response:
    """A response from chunks: complete if there is only one. A refusal of the first chunk is raised here."""
    first = await anext(chunks)
    second = await anext(chunks, None)
    if second is None:
        return Response(first, **about)
    response = Response(chunks=_chain((first, second), chunks), **about)
    response.prepared = size_of(first) + size_of(second)
    return response


async def _chain(begun: Sequence[Chunk], rest: Chunks) -> Chunks:
    try:
        for chunk in begun:
            yield chunk
        async for chunk in rest:
            yield chunk
    finally:
        await rest.aclose()  # releases the database when the client disconnects


def refusal_response(refusal: Refusal, request_id: str) -> Response:
    """A refusal as a JSON response, with the headers of its status."""
    status = STATUS[type(refusal)]
    headers: list[Header] = []
    if isinstance(refusal, errors.Conflict) and refusal.precondition:
        status = 412
    elif isinstance(refusal, errors.Unauthorized):
        headers.append((b"www-authenticate", b"Bearer"))
    elif isinstance(refusal, RequestTimeout):
        headers.append((b"connection", b"close"))
    elif isinstance(refusal, MethodNotAllowed):
        headers.append((b"allow", ", ".join(refusal.allowed).encode()))
    elif isinstance(refusal, errors.Later):
        headers.append((b"retry-after", b"%d" % refusal.retry_after))
    fault = wire.responses.Fault(refusal.code, refusal.message, request_id, refusal.details)
    return Response(wire.encode(wire.responses.Failure(fault)), status, headers=headers)
