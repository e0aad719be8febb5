"""What goes out: a status, headers, a body or chunks of one; and how each refusal is put."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from strongroom import errors, wire
from strongroom.errors import MethodNotAllowed, Refusal, RequestTimeout

Header = tuple[bytes, bytes]
Pieces = list[bytes | memoryview]  # what is sent one after the other, without being copied together first
Chunk = bytes | bytearray | Pieces
Chunks = AsyncGenerator[Chunk, None]

# The status of every refusal. A conflict that the client put as If-Match is a 412.
STATUS: Final[dict[type[Refusal], int]] = {
    errors.Invalid: 400,
    errors.Unauthorized: 401,
    errors.InvalidCredentials: 401,
    errors.InvalidRefreshToken: 401,
    errors.InsufficientScope: 403,
    errors.AccountDisabled: 403,
    errors.SignupsClosed: 403,
    errors.NotFound: 404,
    errors.VaultNotFound: 404,
    errors.DocumentNotFound: 404,
    errors.VersionNotFound: 404,
    errors.ApiKeyNotFound: 404,
    errors.SessionNotFound: 404,
    errors.KeyringNotFound: 404,
    errors.ImportNotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.RequestTimeout: 408,
    errors.EmailAlreadyExists: 409,
    errors.VaultAlreadyExists: 409,
    errors.UidTaken: 409,
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


# On every answer: nothing of it is cached, guessed at, framed, or told to the next site.
_ALWAYS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'self'; frame-ancestors 'none'"),
)


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


_ALWAYS_LINES: Final = _lines(_ALWAYS)
JSON: Final = b"application/json"
_JSON_LINES: Final = _ALWAYS_LINES + _lines([(b"content-type", JSON)])
CHUNK: Final = 3 * 512 * 1024  # a list up to this size is one answer, a longer one comes in pieces of it


class BrokenOff(Exception):  # noqa: N818 - an outcome, not a fault of ours
    """A streamed answer that cannot be finished: the connection is cut, which tells the client so."""


class Response:
    """A status, headers and a body: whole, or in chunks that are made as the client takes them."""

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
        self.prepared = 0  # bytes of the chunks that are made already
        self.ended: str | None = None  # why, where an answer is a stream without an end of its own

    @property
    def size(self) -> int:
        """How many bytes the body has."""
        return size_of(self.body)

    @property
    def closes(self) -> bool:
        """Whether the connection ends with this answer."""
        return bool(self.headers) and any(name == b"connection" for name, _ in self.headers)

    def fields(self) -> list[Header]:
        """All headers."""
        fields = [*_ALWAYS, *self.headers]
        if self.status not in {204, 304}:
            fields.append((b"content-type", self.content_type))
            if self.chunks is None:
                fields.append((b"content-length", b"%d" % self.size))
        if self.etag is not None:
            fields.append((b"etag", b'"%b"' % self.etag.encode()))
        fields.append((b"x-request-id", self.request_id.encode()))
        return fields

    def head(self) -> bytes:
        """The same as they are sent. Almost every answer is JSON with a length and little else."""
        if self.headers or self.chunks is not None or self.content_type is not JSON or self.status in {204, 304}:
            head = _lines(self.fields())
            if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r\n") != len(self.fields()):
                raise ValueError("a header would break the line")
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
    """How many bytes a chunk has."""
    return sum(map(len, chunk)) if isinstance(chunk, list) else len(chunk)


def json_response(value: Any, status: int = 200, *, etag: str | None = None) -> Response:
    """A struct as JSON."""
    return Response(wire.encode(value), status, etag=etag)


def items(page: list[Any], *, first: bool) -> Sequence[bytes | memoryview]:
    """A page as pieces of a JSON array that is being written, without copying it once more."""
    inner = memoryview(wire.encode(page))[1:-1]
    return (inner,) if first else (b",", inner)


async def streamed(chunks: Chunks, **about: Any) -> Response:
    """Chunks as an answer: whole if there is only one. Refusals that the first chunk raises come out here."""
    first = await anext(chunks)
    second = await anext(chunks, None)
    if second is None:
        return Response(first, **about)
    json_response = Response(chunks=_chain((first, second), chunks), **about)
    json_response.prepared = size_of(first) + size_of(second)
    return json_response


async def _chain(begun: Sequence[Chunk], rest: Chunks) -> Chunks:
    try:
        for chunk in begun:
            yield chunk
        async for chunk in rest:
            yield chunk
    finally:
        await rest.aclose()  # lets go of the database when the client has gone away


def refusal_response(refusal: Refusal, request_id: str) -> Response:
    """A refusal as JSON, with the headers that belong to its status."""
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
