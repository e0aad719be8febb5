"""Which endpoint a path leads to. The server and the documentation read the same rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from strongroom import wire
from strongroom.errors import MethodNotAllowed, NotFound, Refusal
from strongroom.model import Permission
from strongroom.server.answers import Answer
from strongroom.server.http import Call

UNAUTHENTICATED_BODY: Final = 64 * 1024  # bytes, where no token is needed


class Access(Enum):
    """Who may call an endpoint."""

    PUBLIC = "public"
    USER = "user"  # a session only: what an API key may never do
    ANY = "any"  # a session or an API key


class Endpoint(Struct, frozen=True, kw_only=True):
    """One route: who may call it, what it takes, what it answers. Server and documentation read the same row."""

    method: str
    path: str  # {name} is one segment, {name*} the rest of the path
    handler: Callable[[Call], Awaitable[Answer]]
    summary: str
    access: Access = Access.ANY
    permission: Permission | None = None
    proves: bool = False  # it reads by `call.look` or writes by `call.change`, which prove the caller's session
    whole_account: bool = False  # closed to API keys that are limited to vaults or collections
    takes: type[wire.Body] | None = None
    body_bytes: int | None = None  # a limit of its own for the body
    reads: str = ""  # the media type of a body that is read as it arrives
    answers: type[Struct] | None = None
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


class _Node:
    """A place in the tree of paths. What a variable is called depends on the route, so the route keeps the names."""

    __slots__ = ("endpoints", "literal", "rest", "variable")

    def __init__(self) -> None:
        self.literal: dict[bytes, _Node] = {}
        self.variable: _Node | None = None
        self.rest: _Node | None = None
        self.endpoints: dict[str, tuple[Endpoint, tuple[str, ...]]] = {}


class Table:
    """Finds the endpoint of a path. It reads the path as it was sent: %2F in a name is not a separator."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._root = _Node()
        for endpoint in endpoints:
            for path in (endpoint.path, *endpoint.also):
                self._plant(path, endpoint)

    def _plant(self, path: str, endpoint: Endpoint) -> None:
        node, names = self._root, []
        for segment in path.strip("/").split("/"):
            if not segment.startswith("{"):
                node = node.literal.setdefault(segment.encode(), _Node())
                continue
            names.append(segment.strip("{*}"))
            if segment.endswith("*}"):
                node.rest = node.rest or _Node()
                node = node.rest
            else:
                node.variable = node.variable or _Node()
                node = node.variable
        node.endpoints[endpoint.method] = endpoint, tuple(names)

    def find(self, method: str, raw_path: bytes) -> tuple[Endpoint, dict[str, str]]:
        """The endpoint and the parts of the path; a literal segment wins over a variable one."""
        path = raw_path[1:-1] if len(raw_path) > 1 and raw_path.endswith(b"/") else raw_path[1:]
        segments = path.split(b"/")
        if b"%" in path:
            segments = [unquote_to_bytes(part) for part in segments]
        return self._straight(method, segments) or self._around(method, segments)

    def _straight(self, method: str, segments: list[bytes]) -> tuple[Endpoint, dict[str, str]] | None:
        """The way without a turning back, which almost every request takes."""
        node, values = self._root, []
        for segment in segments:
            following = node.literal.get(segment)
            if following is None:
                if not segment or node.variable is None or node.rest is not None:
                    return None
                following = node.variable
                values.append(_text(segment))
            node = following
        found = node.endpoints.get(method)
        return None if found is None else (found[0], dict(zip(found[1], values, strict=True)))

    def _around(self, method: str, segments: list[bytes]) -> tuple[Endpoint, dict[str, str]]:
        allowed: dict[str, None] = {}
        for node, values in _matches(self._root, segments, 0):
            found = node.endpoints.get("GET" if method == "HEAD" else method)
            if found is not None:
                return found[0], dict(zip(found[1], values, strict=True))
            allowed.update(dict.fromkeys(node.endpoints))
        if not allowed:
            raise NotFound
        if "GET" in allowed:
            allowed["HEAD"] = None
        raise MethodNotAllowed((*allowed, "OPTIONS"))


def _matches(node: _Node, segments: list[bytes], at: int) -> Iterator[tuple[_Node, tuple[str, ...]]]:
    """Every place that a path may mean, the most literal first."""
    if at == len(segments):
        if node.endpoints:
            yield node, ()
        return
    literal = node.literal.get(segments[at])
    if literal is not None:
        yield from _matches(literal, segments, at + 1)
    if not segments[at]:
        return
    if node.rest is not None:
        yield node.rest, (_text(b"/".join(segments[at:])),)
    if node.variable is not None:
        value = _text(segments[at])
        for end, values in _matches(node.variable, segments, at + 1):
            yield end, (value, *values)


def _text(raw: bytes) -> str:
    """A part of the path; what is not UTF-8 becomes a text that nothing is called."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return ""
