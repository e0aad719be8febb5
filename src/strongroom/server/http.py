"""What every endpoint shares: the call that comes in, the answer that goes out, the table that says which is whose."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect, Request

from strongroom import errors, identifiers, wire
from strongroom.errors import (
    Invalid,
    MethodNotAllowed,
    PayloadTooLarge,
    Refusal,
    RequestTimeout,
    UnsupportedMediaType,
)
from strongroom.model import Actor, Expected, Origin
from strongroom.server.address import address_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from strongroom.server.room import Room

B = TypeVar("B", bound=wire.Body)
Header = tuple[bytes, bytes]
Chunks = AsyncGenerator[bytes | bytearray, None]

# The status of every refusal. A conflict that the client put as If-Match is a 412.
STATUS: Final[dict[type[Refusal], int]] = {
    errors.Invalid: 400,
    errors.Unauthorized: 401,
    errors.InvalidCredentials: 401,
    errors.InvalidRefreshToken: 401,
    errors.InsufficientScope: 403,
    errors.SignupsClosed: 403,
    errors.NotFound: 404,
    errors.VaultNotFound: 404,
    errors.DocumentNotFound: 404,
    errors.VersionNotFound: 404,
    errors.ApiKeyNotFound: 404,
    errors.SessionNotFound: 404,
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


CHUNK: Final = 1024 * 1024  # a list up to this size is one answer, a longer one comes in pieces of it


class Answer:
    """A status, headers and a body: whole, or in chunks that are made as the client takes them."""

    __slots__ = ("body", "chunks", "headers", "status")

    def __init__(
        self,
        body: bytes | bytearray = b"",
        status: int = 200,
        *,
        etag: str | None = None,
        headers: Sequence[Header] = (),
        content_type: bytes = b"application/json",
        chunks: Chunks | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.chunks = chunks
        self.headers: list[Header] = [*_ALWAYS, *headers]
        if status not in {204, 304}:
            self.headers.append((b"content-type", content_type))
            if chunks is None:
                self.headers.append((b"content-length", b"%d" % len(body)))
        if etag is not None:
            self.headers.append((b"etag", b'"%s"' % etag.encode()))

    async def send(self, send: Send, receive: Receive) -> int:
        """Send it; how many bytes the body had. A list stops when nobody is there to take it."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        if self.chunks is None:
            await send({"type": "http.response.body", "body": self.body})
            return len(self.body)
        size = 0
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            async for chunk in self.chunks:
                if gone.done():
                    return size
                size += len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            gone.cancel()
            await self.chunks.aclose()  # lets go of the database
        await send({"type": "http.response.body", "body": b""})
        return size


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def answer(value: Any, status: int = 200, *, etag: str | None = None) -> Answer:
    """A struct as JSON."""
    return Answer(wire.encode(value), status, etag=etag)


def items(page: list[Any], *, first: bool) -> Sequence[bytes | memoryview]:
    """A page as pieces of a JSON array that is being written, without copying it once more."""
    inner = memoryview(wire.encode(page))[1:-1]
    return (inner,) if first else (b",", inner)


async def streamed(chunks: Chunks, **about: Any) -> Answer:
    """Chunks as an answer: whole if there is only one. Refusals that the first chunk raises come out here."""
    first = await anext(chunks)
    second = await anext(chunks, None)
    if second is None:
        return Answer(first, **about)
    return Answer(chunks=_chain((first, second), chunks), **about)


async def _chain(begun: Sequence[bytes | bytearray], rest: Chunks) -> Chunks:
    try:
        for chunk in begun:
            yield chunk
        async for chunk in rest:
            yield chunk
    finally:
        await rest.aclose()  # lets go of the database when the client has gone away


def refusal_answer(refusal: Refusal, request_id: str) -> Answer:
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
    fault = wire.Fault(refusal.code, refusal.message, request_id, refusal.details)
    return Answer(wire.encode(wire.Failure(fault)), status, headers=headers)


class Call(Request):
    """One request on its way through: who calls, what for, with which parts of the path."""

    def __init__(self, scope: Scope, receive: Receive, room: Room) -> None:
        super().__init__(scope, receive)
        self.room = room
        self.parts: dict[str, str] = {}
        self.recheck: Callable[[Call], Awaitable[object]] | None = None
        self.actor: Actor = NOBODY
        self.given = _joined(scope["headers"])
        incoming = self.given.get(b"x-request-id")
        self.request_id = incoming.decode() if incoming and _SANE_ID.fullmatch(incoming) else next(_ids)

    def header(self, name: bytes) -> str | None:
        """A header's value."""
        value = self.given.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def origin(self) -> Origin:
        """Where the request comes from, as the owner of the account will see it."""
        return Origin(address_of(self), (self.header(b"user-agent") or "")[:_AGENT].replace("\0", ""))

    def uid(self, name: str) -> str:
        """A uid from the path in its one spelling; what is not a uid becomes one that nothing has."""
        return identifiers.canonical(self.parts[name]) or ""

    async def read(self, kind: type[B]) -> B:
        """The body, checked. Its size is judged before its type, and both before its content."""
        limit = self.room.settings.max_body_bytes
        declared = self.header(b"content-length")
        chunked = self.header(b"transfer-encoding") is not None
        if declared is not None and int(declared) > limit:
            raise PayloadTooLarge(limit)
        if declared is not None and int(declared) and not chunked:
            self._require_json()
        began = time.monotonic()
        body = await self._gather(limit)
        if declared is not None and not chunked and int(declared) != len(body):
            raise Invalid({"body": "did not arrive whole"}, "The request body did not arrive whole.")
        if body and chunked:
            self._require_json()
        if time.monotonic() - began > RECHECK_SECONDS and self.recheck is not None:
            await self.recheck(self)  # who was good when the headers came may have been shut out since
        return wire.decode(kind, body)

    async def _gather(self, limit: int) -> bytes:
        """The bytes of the body; it has a time to arrive, and more for each byte of it."""
        gathered, began = bytearray(), asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(BODY_SECONDS) as patience:
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body: bytes = message.get("body", b"")
                    if len(gathered) + len(body) > limit:
                        raise PayloadTooLarge(limit)
                    if not message.get("more_body", False):
                        return bytes(gathered + body) if gathered else body
                    gathered += body
                    patience.reschedule(began + BODY_SECONDS + len(gathered) / BODY_RATE)
        except TimeoutError:
            raise RequestTimeout from None

    def _require_json(self) -> None:
        kind, *parameters = (self.header(b"content-type") or "").lower().split(";")
        told = {part.replace(" ", "").replace("\t", "").replace('"', "") for part in parameters}
        if kind.strip() != "application/json" or not told <= _UTF8:
            raise UnsupportedMediaType

    def expected(self, version: int | None, *, of_vault: bool = False) -> Expected | None:
        """Which version the client expects, from the body and from If-Match together.

        A vault's ETag covers its clock too; what is locked is its version, so only that part of the tag counts.
        """
        ours = _VAULT_TAG if of_vault else _DOCUMENT_TAG
        given = self.header(b"if-match")
        if given is None:
            return None if version is None else Expected((version,))
        if given.strip() == "*":
            return Expected(None if version is None else (version,), by_header=True)
        versions = tuple(int(tag.partition("-")[0]) for tag in _tags(given, "If-Match") if ours.fullmatch(tag))
        if version is None:
            return Expected(versions, by_header=True)
        if version not in versions:
            raise Invalid({"version": "contradicts the If-Match header"})
        return Expected((version,), by_header=True)

    def unchanged(self, etag: str) -> bool:
        """Whether the client has this very state already (If-None-Match)."""
        given = self.header(b"if-none-match")
        if given is None:
            return False
        return given.strip() == "*" or etag in _tags(given, "If-None-Match", weak=True)

    def query(self) -> dict[str, str]:
        """The query's parameters; one that is given twice is refused."""
        found: dict[str, str] = {}
        for part in self.scope["query_string"].split(b"&"):
            if not part:
                continue
            name, _, value = part.partition(b"=")
            key = _decoded(name.replace(b"+", b" "))
            text = _decoded(value.replace(b"+", b" "))
            if key is None or text is None:
                raise Invalid({"query": "must be text in UTF-8, percent-encoded"})
            if key in found:
                raise Invalid({key: "is given twice"})
            found[key] = text
        return found


NOBODY: Final = Actor("")
_UTF8: Final = {"", "charset=utf-8", "charset=utf8"}
BODY_SECONDS: Final = 20.0  # for a body to arrive, and more for each byte of it
RECHECK_SECONDS: Final = 0.25  # a body that took longer is not believed on the word of its headers
BODY_RATE: Final = 16 * 1024  # bytes a second, at least
_AGENT: Final = 256  # as much of a user agent as is kept
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


def _request_ids() -> Iterator[str]:
    """Ids that differ between processes by chance and within one by counting."""
    prefix = os.urandom(8).hex()
    for number in count(1):
        yield f"{prefix}-{number:x}"


_ids = _request_ids()


def _joined(headers: list[Header]) -> dict[bytes, bytes]:
    """The headers by name; several of one name are joined, as HTTP says."""
    found = dict(headers)
    if len(found) != len(headers):
        found = {}
        for name, value in headers:
            found[name] = found[name] + b", " + value if name in found else value
    return found


_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*')
_DOCUMENT_TAG = re.compile(r"[1-9][0-9]{0,17}")  # one spelling: "02" is not "2"
_VAULT_TAG = re.compile(r"[1-9][0-9]{0,17}(?:-[0-9]{1,18})?")


def _tags(header: str, name: str, *, weak: bool = False) -> list[str]:
    """The entity tags of a header. A weak one never matches where the comparison is strong."""
    tags = []
    for part in header.split(","):
        match = _TAG.fullmatch(part)
        if match is None:
            raise Invalid({name: 'must be * or a list of entity tags like "3"'})
        if weak or not match[1]:
            tags.append(match[2])
    return tags


def _decoded(raw: bytes) -> str | None:
    try:
        return (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        return None


def integer(text: str, low: int) -> int | None:
    """A decimal integer from `low` up, or None. Beyond what is stored, all are alike."""
    if not text.isascii() or not text.isdigit() or len(text) > 4_000:
        return None
    value = int(text)
    return value if value >= low else None
