"""What every endpoint shares: the call that comes in, with its headers, its parts and its body."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from strongroom import identifiers, wire
from strongroom.errors import (
    Invalid,
    PayloadTooLarge,
    Refusal,
    RequestTimeout,
    Unavailable,
    UnsupportedMediaType,
)
from strongroom.model import Actor, Expected, Origin, Permission
from strongroom.server.buffers import FREE_BYTES, UNAUTHENTICATED_BYTES
from strongroom.server.client_address import client_address, counted_address, is_one_of
from strongroom.server.response import JSON, Header, Response
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from strongroom.server.context import AppContext
    from strongroom.store import Tx
    from strongroom.store.session_check import SessionCheck

B = TypeVar("B", bound=wire.requests.Body)
R = TypeVar("R")
P = ParamSpec("P")


class ClientDisconnected(Exception):  # noqa: N818 - not an error: people leave
    """The client has gone before its request was whole."""


class Body(Protocol):
    """A request's body on its way in."""

    @property
    def whole(self) -> bytes | None:
        """All of it, where it is here already."""

    async def more(self) -> tuple[bytes, bool]:
        """The next piece, and whether there are more; raises ClientDisconnected."""

    async def left(self) -> None:
        """Return once the client has gone; for a request that is here whole and takes its time."""


class Request:
    """One request on its way through: who calls, what for, with which parts of the path."""

    __slots__ = (
        "actor",
        "body",
        "body_size",
        "buffered",
        "client",
        "context",
        "endpoint",
        "headers",
        "method",
        "parts",
        "path",
        "query_string",
        "recheck",
        "request_id",
        "session_check",
        "started",
        "streaming",
    )

    def __init__(
        self,
        context: AppContext,
        method: str,
        path: bytes,
        query_string: bytes,
        headers: dict[bytes, bytes],
        client: str | None,
    ) -> None:
        self.context = context
        self.method = method
        self.path = path  # as it was sent
        self.query_string = query_string
        self.headers = headers
        self.client = client
        self.body: Body = NOTHING
        self.body_size = 0  # bytes, once it is read
        self.buffered = 0  # bytes of the body that were read and are kept
        self.parts: dict[str, str] = {}
        self.endpoint: Endpoint | None = None
        self.recheck: Callable[[Request], Awaitable[object]] | None = None
        self.actor: Actor = ANONYMOUS
        self.session_check: SessionCheck | None = None  # of the actor, where it is made along with what is read
        self.streaming = False
        self.started = time.perf_counter()
        incoming = headers.get(b"x-request-id")
        self.request_id = incoming.decode() if incoming and _SANE_ID.fullmatch(incoming) else next(_ids)

    def read(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> Awaitable[R]:
        """Read from the database for the caller; refused if the caller's session has ended."""
        if self.session_check is None:
            return self.context.db.read(action, *args, **kw)
        return self.context.db.read_checked(self.session_check, action, *args, **kw)

    def write(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> Awaitable[R]:
        """Write for the caller; refused before anything is written if the caller's session has ended.

        What was written is on disk when this returns.
        """
        if self.body_size > LARGE:
            return self.write_long(action, *args, **kw)
        db, actor = self.context.db, self.actor
        if actor is ANONYMOUS:
            return db.write(action, *args, **kw)
        return db.write_for(actor.user_id, self.session_check, action, *args, **kw)

    def write_long(
        self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs
    ) -> Awaitable[R]:
        """The same, for an action that may touch many rows."""
        db, check = self.context.db, self.session_check
        return (
            db.write_long(action, *args, **kw) if check is None else db.write_long_checked(check, action, *args, **kw)
        )

    async def truncate_log(self) -> None:
        """Leave nothing of what was deleted in the log of the database."""
        await self.context.db.truncate_log()

    def header(self, name: bytes) -> str | None:
        """A header's value."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str:
        """The client's address, as far as it can be trusted."""
        return client_address(self.client, self.header(b"x-forwarded-for") or "", self.context.settings.trusted_proxies)

    @property
    def counted_address(self) -> str:
        """The address that failed attempts count for."""
        return counted_address(self.address)

    @property
    def is_from_a_proxy(self) -> bool:
        """Whether the other end of the connection is a proxy that the operator names."""
        return self.client is not None and is_one_of(self.client, self.context.settings.trusted_proxies)

    @property
    def origin(self) -> Origin:
        """Where the request comes from, as the owner of the account will see it."""
        return Origin(self.address, (self.header(b"user-agent") or "")[:_AGENT].replace("\0", ""))

    def uid(self, name: str) -> str:
        """A uid from the path in its one spelling; what is not a uid becomes one that nothing has."""
        return identifiers.canonical(self.parts[name]) or ""

    @property
    def owner(self) -> str:
        """The account that calls, or else the address."""
        return self.counted_address if self.actor is ANONYMOUS else self.actor.user_id

    @property
    def body_limit(self) -> int:
        """The largest body that is read here."""
        limit = self.context.settings.max_body_bytes
        return limit if self.endpoint is None else min(limit, self.endpoint.body_limit or limit)

    async def read_body(self, kind: type[B]) -> B:
        """The body, checked. Its size is judged before its type, and both before its content."""
        limit = self.body_limit
        length = self.headers.get(b"content-length")
        declared = None if length is None else int(length)
        chunked = b"transfer-encoding" in self.headers
        if declared is not None and declared > limit:
            raise PayloadTooLarge(limit)
        if declared and not chunked:
            self._require_json()
        body = self.body.whole
        if body is None:
            began = time.monotonic()
            if self.session_check is not None and not self.session_check.passed and self.recheck is not None:
                await self.recheck(self)  # who is not proven yet is not asked for a long body
            body = await self._gather(limit)
            if time.monotonic() - began > RECHECK_SECONDS and self.recheck is not None:
                await self.recheck(self)  # who was good when the headers came may have been shut out since
        elif len(body) > limit:
            raise PayloadTooLarge(limit)
        if declared is not None and not chunked and declared != len(body):
            raise Invalid({"body": "did not arrive whole"}, "The request body did not arrive whole.")
        if body and chunked:
            self._require_json()
        self.body_size = len(body)
        return wire.decode(kind, body) if len(body) <= AT_ONCE else await _decode_in_steps(kind, body)

    async def _gather(self, limit: int) -> bytes:
        """The bytes of the body; it has a time to arrive, and more for each byte of it."""
        gathered, began = bytearray(), asyncio.get_running_loop().time()
        try:
            async with await timeout(BODY_SECONDS) as limit_of_time:
                while True:
                    piece, more = await self.body.more()
                    if len(gathered) + len(piece) > limit:
                        raise PayloadTooLarge(limit)
                    if not more:
                        return bytes(gathered + piece) if gathered else piece
                    gathered += piece
                    self.buffer(len(gathered))
                    limit_of_time.reschedule(began + BODY_SECONDS + len(gathered) / BODY_RATE)
        except TimeoutError:
            raise RequestTimeout from None
        finally:
            if self.actor is ANONYMOUS:
                self.buffer(0)

    def buffer(self, size: int) -> None:
        """Account for so many bytes of the body being kept; refuse them where the memory for bodies is used up."""
        buffers, size = self.context.buffers, max(0, size - FREE_BYTES)
        added, self.buffered = size - self.buffered, size
        if self.actor is ANONYMOUS:
            buffers.unauthenticated += added
            if added > 0 and buffers.unauthenticated > UNAUTHENTICATED_BYTES:
                raise Unavailable(1, "Too many requests without a token are unfinished; try again shortly.")
        if added > 0:
            buffers.reserve(added, self.owner)

    def _require_json(self) -> None:
        declared = self.headers.get(b"content-type", b"")
        if declared == JSON:
            return
        kind, *parameters = declared.decode("latin-1").lower().split(";")
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
        for part in self.query_string.split(b"&"):
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


class Access(Enum):
    """Who may call an endpoint."""

    PUBLIC = "public"
    USER = "user"  # a session only: what an API key may never do
    ANY = "any"  # a session or an API key


class Endpoint(Struct, frozen=True, kw_only=True):
    """One route: who may call it, what it takes, what it answers. Server and documentation read the same row."""

    method: str
    path: str  # {name} is one segment, {name*} the rest of the path
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
    access: Access = Access.ANY
    permission: Permission | None = None
    whole_account: bool = False  # closed to API keys that are limited to vaults or collections
    takes: type[wire.requests.Body] | None = None
    body_bytes: int | None = None  # a limit of its own for the body
    reads: str = ""  # the media type of a body that is read as it arrives
    response_type: type[Struct] | None = None
    streams: tuple[type[Struct], ...] = ()  # the events of an answer that has no end of its own
    gives: str = ""  # the media type of an answer that is not JSON
    status: int = 200
    refusals: tuple[type[Refusal], ...] = ()
    query: tuple[tuple[str, str, str], ...] = ()  # name, JSON type, meaning
    conditional: tuple[str, ...] = ()  # headers that it heeds
    also: tuple[str, ...] = ()  # other spellings of the path

    @property
    def body_limit(self) -> int | None:
        """The largest body, where that is less than the server's limit: strangers may send little."""
        return self.body_bytes or (UNAUTHENTICATED_BODY if self.access is Access.PUBLIC else None)


class _Nothing:
    """The body of a request that has none."""

    whole: bytes | None = b""

    async def more(self) -> tuple[bytes, bool]:
        """Nothing, and no more."""
        return b"", False

    async def left(self) -> None:
        """Nobody leaves who was never there."""
        await asyncio.get_running_loop().create_future()


NOTHING: Final = _Nothing()
ANONYMOUS: Final = Actor("")
_UTF8: Final = {"", "charset=utf-8", "charset=utf8"}
UNAUTHENTICATED_BODY: Final = 64 * 1024  # bytes, where no token is needed
BODY_SECONDS: Final = 20.0  # for a body to arrive, and more for each byte of it
RECHECK_SECONDS: Final = 0.25  # a body that took longer is not believed on the word of its headers
BODY_RATE: Final = 16 * 1024  # bytes a second, at least
LARGE: Final = 512 * 1024  # bytes of a body that takes too long to store for others to wait for it
AT_ONCE: Final = 256 * 1024  # bytes of a body that is decoded without a pause
_AGENT: Final = 256  # as much of a user agent as is kept
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


async def _decode_in_steps(kind: type[B], body: bytes) -> B:
    """Decode a large body in steps, between which other requests have their turn."""
    steps = wire.decode_in_steps(kind, body)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: B = done.value
            return value
        await asyncio.sleep(0)


def _request_ids() -> Iterator[str]:
    """Ids that differ between processes by chance and within one by counting."""
    prefix = os.urandom(8).hex()
    for number in count(1):
        yield f"{prefix}-{number:x}"


_ids = _request_ids()


def joined(headers: Sequence[Header]) -> dict[bytes, bytes]:
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
