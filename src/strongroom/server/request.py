"""The HTTP request (headers, path parameters, query, body), and the description of an endpoint."""

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
from strongroom.rules import MAX_INTEGER
from strongroom.server.buffers import FREE_BYTES, UNAUTHENTICATED_BYTES
from strongroom.server.client_address import client_address, counted_address, is_one_of
from strongroom.server.response import JSON, Header, Response
from strongroom.server.timeouts import timeout
from strongroom.server.turns import Steps

if TYPE_CHECKING:
    from strongroom.server.context import AppContext
    from strongroom.store import Tx
    from strongroom.store.session_check import SessionCheck

B = TypeVar("B", bound=wire.requests.Body)
R = TypeVar("R")
P = ParamSpec("P")


class ClientDisconnected(Exception):  # noqa: N818 - an outcome, not an error
    """The client disconnected before its request was complete."""


class Body(Protocol):
    """The body of a request, as the transport provides it."""

    @property
    def whole(self) -> bytes | None:
        """The complete body, if it has arrived already."""

    async def more(self) -> tuple[bytes, bool]:
        """The next chunk, and whether there are more; raises ClientDisconnected."""

    async def wait_disconnected(self) -> None:
        """Return once the client disconnects; for a complete request whose response takes long."""


class Request:
    """One HTTP request: its headers, its caller, its endpoint, the parameters of its path."""

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
        "path",
        "path_params",
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
        self.path = path  # undecoded
        self.query_string = query_string
        self.headers = headers
        self.client = client
        self.body: Body = EMPTY_BODY
        self.body_size = 0  # bytes, once it was read
        self.buffered = 0  # bytes of the body that are held in memory
        self.path_params: dict[str, str] = {}
        self.endpoint: Endpoint | None = None
        self.recheck: Callable[[Request], Awaitable[object]] | None = None
        self.actor: Actor = ANONYMOUS
        self.session_check: SessionCheck | None = None  # of the actor, where it is deferred to the first query
        self.streaming = False
        self.started = time.perf_counter()
        incoming = headers.get(b"x-request-id")
        self.request_id = incoming.decode() if incoming and _VALID_REQUEST_ID.fullmatch(incoming) else next(_ids)

    def read(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> Awaitable[R]:
        """Run a read transaction for the caller; refused if the caller's session has ended."""
        if self.session_check is None:
            return self.context.db.read(action, *args, **kw)
        return self.context.db.read_checked(self.session_check, action, *args, **kw)

    def write(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> Awaitable[R]:
        """Run a write transaction for the caller; refused before any write if the caller's session has ended.

        The write is on disk when this returns.
        """
        if self.body_size > LARGE_BODY_BYTES:
            return self.write_long(action, *args, **kw)
        db, actor = self.context.db, self.actor
        if actor is ANONYMOUS:
            return db.write(action, *args, **kw)
        return db.write_for(actor.user_id, self.session_check, action, *args, **kw)

    def write_long(
        self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs
    ) -> Awaitable[R]:
        """Run a write transaction that may touch many rows."""
        db, check = self.context.db, self.session_check

        def write() -> Awaitable[R]:
            if check is None:
                return db.write_long(action, *args, **kw)
            return db.write_long_checked(check, action, *args, **kw)

        return self.context.long_writes.run(self.owner, write)

    def steps(self) -> Steps:
        """The steps of a long response, between which other requests are served."""
        return Steps(self.context.turns, self.actor.user_id)

    async def truncate_log(self) -> None:
        """Truncate the write-ahead log, so that it holds no deleted data."""
        await self.context.db.truncate_log()

    def header(self, name: bytes) -> str | None:
        """The value of a header."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str:
        """The client's address, as far as it can be trusted."""
        return client_address(self.client, self.header(b"x-forwarded-for") or "", self.context.settings.trusted_proxies)

    @property
    def counted_address(self) -> str:
        """The address that failed attempts count against."""
        return counted_address(self.address)

    @property
    def is_from_a_proxy(self) -> bool:
        """Whether the peer is one of the trusted proxies."""
        return self.client is not None and is_one_of(self.client, self.context.settings.trusted_proxies)

    @property
    def origin(self) -> Origin:
        """The client's address and user agent, as the account's log shows them."""
        return Origin(self.address, (self.header(b"user-agent") or "")[:_USER_AGENT_LENGTH].replace("\0", ""))

    def uid(self, name: str) -> str:
        """A UUID from the path in canonical form, or `""` (matches no row) if malformed."""
        return identifiers.canonical(self.path_params[name]) or ""

    @property
    def owner(self) -> str:
        """The owner of buffered bytes: the account that calls, or else the address."""
        return self.counted_address if self.actor is ANONYMOUS else self.actor.user_id

    @property
    def sender(self) -> str:
        """The account of a token that was verified before, or else the address: known before the request is handled."""
        claims = self.context.token_signer.cached(self.headers.get(b"authorization", b""), self.context.clock())
        return self.counted_address if claims is None else claims.sub

    @property
    def body_limit(self) -> int:
        """The largest body that is accepted, in bytes."""
        limit = self.context.settings.max_body_bytes
        return limit if self.endpoint is None else min(limit, self.endpoint.body_limit or limit)

    async def read_body(self, kind: type[B]) -> B:
        """Read and validate the body: first its size, then its media type, then its content."""
        limit = self.body_limit
        length = self.headers.get(b"content-length")
        declared = None if length is None else int(length)
        chunked = b"transfer-encoding" in self.headers
        if declared is not None and declared > limit:
            raise PayloadTooLarge(limit)
        if declared and not chunked:
            self._require_json()
        body: bytes | bytearray | None = self.body.whole
        if body is None:
            began = time.monotonic()
            if self.session_check is not None and not self.session_check.passed and self.recheck is not None:
                await self.recheck(self)  # before a long body is read
            body = await self._receive_body(limit)
            if time.monotonic() - began > RECHECK_SECONDS and self.recheck is not None:
                await self.recheck(self)  # the session may have ended while the body arrived
        elif len(body) > limit:
            raise PayloadTooLarge(limit)
        if declared is not None and not chunked and declared != len(body):
            raise Invalid(
                {"body": "is incomplete"},
                "The request body is incomplete: it has another length than Content-Length says.",
            )
        if body and chunked:
            self._require_json()
        self.body_size = len(body)
        return wire.decode(kind, body) if len(body) <= DECODE_AT_ONCE_BYTES else await _decode_in_steps(kind, body)

    async def _receive_body(self, limit: int) -> bytes | bytearray:
        """Receive the body, within a time limit that grows with each byte received."""
        received, began = bytearray(), asyncio.get_running_loop().time()
        try:
            async with await timeout(BODY_SECONDS) as deadline:
                while True:
                    piece, more = await self.body.more()
                    if len(received) + len(piece) > limit:
                        raise PayloadTooLarge(limit)
                    if not more and not received:
                        return piece
                    received += piece
                    if not more:
                        return received
                    self.buffer(len(received))
                    deadline.reschedule(began + BODY_SECONDS + len(received) / BODY_RATE)
        except TimeoutError:
            raise RequestTimeout from None
        finally:
            if self.actor is ANONYMOUS:
                self.buffer(0)

    def buffer(self, size: int) -> None:
        """Set how many bytes of the body are buffered; refused where the memory budget is used up."""
        buffers, size = self.context.buffers, max(0, size - FREE_BYTES)
        added, self.buffered = size - self.buffered, size
        if self.actor is ANONYMOUS:
            buffers.unauthenticated += added
            if added > 0 and buffers.unauthenticated > UNAUTHENTICATED_BYTES:
                raise Unavailable(1, "Too many unauthenticated requests are in progress; try again shortly.")
        if added > 0:
            buffers.reserve(added, self.owner)

    def _require_json(self) -> None:
        declared = self.headers.get(b"content-type", b"")
        if declared == JSON:
            return
        kind, *parameters = declared.decode("latin-1").lower().split(";")
        given = {part.replace(" ", "").replace("\t", "").replace('"', "") for part in parameters}
        if kind.strip() != "application/json" or not given <= _UTF8:
            raise UnsupportedMediaType

    def expected(self, version: int | None, *, of_vault: bool = False) -> Expected | None:
        """The version that the client expects, from the body and from If-Match together.

        A vault's ETag holds its version and its clock; only the version is compared.
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

    @property
    def keyring_version(self) -> int | None:
        """The version of the keyring that the client sealed a write with, if it says so."""
        given = self.header(b"keyring-version")
        if given is None:
            return None
        version = parse_integer(given, 1)
        if version is None:
            raise Invalid({"Keyring-Version": "must be an integer from 1"})
        return min(version, MAX_INTEGER)

    def not_modified(self, etag: str) -> bool:
        """Whether If-None-Match names this ETag: the client has the current state already."""
        given = self.header(b"if-none-match")
        if given is None:
            return False
        return given.strip() == "*" or etag in _tags(given, "If-None-Match", weak=True)

    def query(self) -> dict[str, str]:
        """The parameters of the query string; a repeated one is refused."""
        found: dict[str, str] = {}
        if len(self.query_string) > _QUERY_BYTES:
            raise Invalid({"query": f"must have at most {_QUERY_BYTES:,} bytes"})
        for part in self.query_string.split(b"&"):
            if not part:
                continue
            name, _, value = part.partition(b"=")
            key = _percent_decode(name.replace(b"+", b" "))
            text = _percent_decode(value.replace(b"+", b" "))
            if key is None or text is None:
                raise Invalid({"query": "must be text in UTF-8, percent-encoded"})
            if key in found:
                raise Invalid({key: "is given more than once"})
            found[key] = text
        return found


class Access(Enum):
    """Who may call an endpoint."""

    PUBLIC = "public"
    USER = "user"  # a session only: what an API key may never do
    ANY = "any"  # a session or an API key


class Endpoint(Struct, frozen=True, kw_only=True):
    """A route: who may call it, its request, its response. The router and the OpenAPI description read the same row."""

    method: str
    path: str  # {name} is one segment, {name*} the rest of the path
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
    access: Access = Access.ANY
    permission: Permission | None = None
    whole_account: bool = False  # closed to API keys that are limited to vaults or collections
    request_type: type[wire.requests.Body] | None = None
    max_body_bytes: int | None = None  # where it differs from the limit of the server
    request_media_type: str = ""  # of a body that is read as a stream
    response_type: type[Struct] | None = None
    event_types: tuple[type[Struct], ...] = ()  # of an event stream
    response_media_type: str = ""  # where it is not JSON
    status: int = 200
    refusals: tuple[type[Refusal], ...] = ()
    query: tuple[tuple[str, str, str], ...] = ()  # name, JSON type, meaning
    request_headers: tuple[str, ...] = ()  # that change the response

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other paths of this endpoint: whatever is below /vaults is below /vault too."""
        return (self.path.replace("/vaults/", "/vault/", 1),) if self.path.startswith("/vaults/") else ()

    @property
    def body_limit(self) -> int | None:
        """The largest body, where that is less than the server's limit: unauthenticated callers may send little."""
        return self.max_body_bytes or (UNAUTHENTICATED_BODY if self.access is Access.PUBLIC else None)


class _EmptyBody:
    """The body of a request that has none."""

    whole: bytes | None = b""

    async def more(self) -> tuple[bytes, bool]:
        """An empty chunk, and no more."""
        return b"", False

    async def wait_disconnected(self) -> None:
        """Never return."""
        await asyncio.get_running_loop().create_future()


EMPTY_BODY: Final = _EmptyBody()
ANONYMOUS: Final = Actor("")
_UTF8: Final = {"", "charset=utf-8", "charset=utf8"}
UNAUTHENTICATED_BODY: Final = 64 * 1024  # bytes, on public endpoints
BODY_SECONDS: Final = 20.0  # for a body to arrive, and 1 / BODY_RATE more for each byte
RECHECK_SECONDS: Final = 0.25  # after a body took longer, the caller is authenticated again
BODY_RATE: Final = 16 * 1024  # bytes a second, at least
LARGE_BODY_BYTES: Final = 512 * 1024  # a larger body is written in a transaction of its own
DECODE_AT_ONCE_BYTES: Final = 256 * 1024  # a larger body is decoded in steps
_QUERY_BYTES: Final = 8_192  # the longest that means something has a collection of 255 characters, percent-encoded
_USER_AGENT_LENGTH: Final = 256  # characters that are stored
_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


async def _decode_in_steps(kind: type[B], body: bytes | bytearray) -> B:
    """Decode a large body in steps, and yield to other requests between them."""
    steps = wire.decode_in_steps(kind, body)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: B = done.value
            return value
        await asyncio.sleep(0)


def _request_ids() -> Iterator[str]:
    """Unique request ids: a random prefix for each process, and a counter."""
    prefix = os.urandom(8).hex()
    for number in count(1):
        yield f"{prefix}-{number:x}"


_ids = _request_ids()


def merge_headers(headers: Sequence[Header]) -> dict[bytes, bytes]:
    """Headers by name; repeated ones are combined into a comma-separated list (RFC 9110)."""
    found = dict(headers)
    if len(found) != len(headers):
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name, []).append(value)
        found = {name: b", ".join(each) for name, each in values.items()}
    return found


_ENTITY_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*')
_DOCUMENT_TAG = re.compile(r"[1-9][0-9]{0,17}")  # one spelling: "02" is not "2"
_VAULT_TAG = re.compile(r"[1-9][0-9]{0,17}(?:-[0-9]{1,18})?")


def _tags(header: str, name: str, *, weak: bool = False) -> list[str]:
    """The entity tags of a header; weak ones only where `weak` comparison is allowed."""
    tags = []
    for part in header.split(","):
        match = _ENTITY_TAG.fullmatch(part)
        if match is None:
            raise Invalid({name: 'must be * or a list of entity tags like "3"'})
        if weak or not match[1]:
            tags.append(match[2])
    return tags


def _percent_decode(raw: bytes) -> str | None:
    try:
        return (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        return None


def parse_integer(text: str, low: int) -> int | None:
    """Parse a decimal integer of at least `low`; None if it is not one."""
    if not text.isascii() or not text.isdigit() or len(text) > 4_000:
        return None
    value = int(text)
    return value if value >= low else None
