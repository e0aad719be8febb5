"""The router: finds the endpoint of a method and a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from strongroom.errors import MethodNotAllowed, NotFound
from strongroom.server.request import Endpoint

LONGEST_PATH: Final = 4_096  # bytes; a name of 255 characters takes 3,060 at the most, percent-encoded


class _Node:
    """A node of the tree of path segments. Parameter names differ by route, so they are stored with the endpoint."""

    __slots__ = ("endpoints", "literal", "rest", "variable")

    def __init__(self) -> None:
        self.literal: dict[bytes, _Node] = {}
        self.variable: _Node | None = None
        self.rest: _Node | None = None
        self.endpoints: dict[str, tuple[Endpoint, tuple[str, ...]]] = {}


class Router:
    """Finds the endpoint of a path. The path is split before it is decoded: %2F in a name is not a separator."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._root = _Node()
        for endpoint in endpoints:
            for path in (endpoint.path, *endpoint.aliases):
                self._add(path, endpoint)

    def _add(self, path: str, endpoint: Endpoint) -> None:
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
        """The endpoint and its path parameters; a literal segment wins over a parameter."""
        if len(raw_path) > LONGEST_PATH:
            raise NotFound
        path = raw_path[1:-1] if len(raw_path) > 1 and raw_path.endswith(b"/") else raw_path[1:]
        segments = path.split(b"/")
        if b"%" in path:
            segments = [unquote_to_bytes(part) for part in segments]
        return self._find_direct(method, segments) or self._find_all(method, segments)

    def _find_direct(self, method: str, segments: list[bytes]) -> tuple[Endpoint, dict[str, str]] | None:
        """Match without backtracking, which finds almost every route."""
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

    def _find_all(self, method: str, segments: list[bytes]) -> tuple[Endpoint, dict[str, str]]:
        """Match with backtracking; refused with the allowed methods, or as not found."""
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
    """Every node that a path may match, the most literal first."""
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
    """A decoded path segment, or `""` (matches nothing) if it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return ""
