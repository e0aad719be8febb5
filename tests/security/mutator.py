"""Requests that are almost right, made from the server's own description of itself."""

from __future__ import annotations

import copy
import json
import random
import re
import string
from typing import Any, NamedTuple
from urllib.parse import quote

from strongroom.model import Variant
from strongroom.server import routes
from strongroom.server.api_docs.openapi import ApiDescription

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "LINK")
TYPES = ("application/json", "application/json; charset=utf-8", "text/plain", "application/json;", "", "x", "*/*")
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7.5, 1e308, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, "", " ", "0", "null",
    "\0", "\n", "\ud800", "é", "🔑" * 10, "a" * 300, "A" * 70_000, "' OR 1=1 --", "%00", "../..", "{}", "[]", "=",
    "AAAA", "01890000-0000-7000-8000-00000000dead", "a@b", [], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, ["x"] * 99,
)  # fmt: skip
SEGMENTS = (
    "", "x", ".", "..", "%2e%2e", "%00", "%ff", "%", "%zz", "%2f", "sync", "documents", "by-name", "null", "a" * 5_000,
    "%F0%9F%94%91", "01890000-0000-7000-8000-00000000dead", "+", "~", "*", ";a=b", ":", "@", "api-keys", "0",
)  # fmt: skip
VALUES = (
    "",
    "0",
    "1",
    "-1",
    "1.5",
    "true",
    "false",
    "TRUE",
    "null",
    "%00",
    "%FF",
    "9" * 30,
    "9" * 5_000,
    "a",
    "%27",
    "+",
)
TAGS = ("*", '"1"', '"2"', 'W/"1"', '"1", "2"', "1", '"', "", '"é"', '"' + "9" * 40 + '"', ",", '"1-1"', "x" * 3_000)

_A, _B = "01890000-0000-7000-8000-0000000000aa", "01890000-0000-7000-8000-0000000000bb"
EXPORT: tuple[dict[str, Any], ...] = (
    {"kind": "header", "format": "strongroom-export", "version": 2, "id": "01890000-0000-7000-8000-00000000beef",
     "epoch": "e", "exportedAt": 1, "clock": 10},
    {"kind": "vault", "uid": _A, "name": "v", "version": 2, "createdAt": 1,
     "updatedAt": 9, "data": "x", "salt": ""},
    {"kind": "document", "uid": _B, "vaultUid": _A,
     "collection": "c", "version": 2, "createdAt": 2, "updatedAt": 3, "data": "AAAA", "hmac": "é"},
    {"kind": "version", "uid": _B, "vaultUid": _A,
     "collection": "c", "version": 1, "createdAt": 2, "updatedAt": 2, "replacedAt": 3, "data": "AAAA"},
    {"kind": "blobVersion", "uid": _A, "version": 1, "updatedAt": 1, "replacedAt": 2,
     "data": "y", "salt": ""},
    {"kind": "trailer", "counts": {"vaults": 1, "documents": 1, "versions": 1, "blobVersions": 1}, "sha256": "00"},
)  # fmt: skip


class Request(NamedTuple):
    """One request, as it is sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes | None


class Mutator:
    """Makes one request after the other; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self.known: list[str] = []  # ids of things that exist
        self.bearers: list[str] = []
        described = ApiDescription(routes.router(Variant.BOTH).endpoints, Variant.BOTH).document
        self._operations = [
            (method.upper(), path, operation)
            for path, item in described["paths"].items()
            for method, operation in item.items()
        ]

    def request(self) -> Request:
        """The next one."""
        method, path, operation = self.chance.choice(self._operations)
        headers: dict[str, str] = {}
        if self.chance.random() < 0.85 and self.bearers:
            headers["Authorization"] = f"Bearer {self.chance.choice(self.bearers)}"
        elif self.chance.random() < 0.5:
            headers["Authorization"] = self.chance.choice(("Bearer", "Bearer x", "Basic eA==", "bearer a.b.c", "x"))
        target = re.sub(r"\{[^}]+\}", lambda _: self._segment(), path) + self._query(operation)
        if self.chance.random() < 0.1:
            target = self._scratched(target)
        for name in ("If-Match", "If-None-Match"):
            if self.chance.random() < 0.15:
                headers[name] = self.chance.choice(TAGS)
        if self.chance.random() < 0.1:
            headers[self.chance.choice(("Origin", "X-Request-Id", "Content-Encoding", "Range", "Expect-CT"))] = "x\x80é"
        body = self._body(operation, headers)
        if self.chance.random() < 0.1:
            method = self.chance.choice(METHODS)
        return Request(method, target, headers, body)

    def _segment(self) -> str:
        if self.known and self.chance.random() < 0.6:
            return self.chance.choice(self.known)
        return self.chance.choice(SEGMENTS)

    def _scratched(self, target: str) -> str:
        at = self.chance.randrange(len(target) + 1)
        sign = self.chance.choice(("/", "//", "?", "&", "=", "%", "#", ";", "a", "%20", "..", "\\"))
        return "/" + (target[:at] + sign + target[at:]).lstrip("/")

    def _query(self, operation: Any) -> str:
        names = [item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"]
        if not names or self.chance.random() < 0.4:
            return "" if self.chance.random() < 0.9 else "?x=y"
        chosen = self.chance.choices([*names, "x", ""], k=self.chance.randrange(1, 4))
        return "?" + "&".join(f"{name}={self.chance.choice(VALUES)}" for name in chosen)

    def _body(self, operation: Any, headers: dict[str, str]) -> bytes | None:
        described = operation.get("requestBody")
        if described is None and self.chance.random() < 0.9:
            return None
        content = {} if described is None else described["content"]
        headers["Content-Type"] = (
            next(iter(content), TYPES[0]) if self.chance.random() < 0.9 else self.chance.choice(TYPES)
        )
        if content and "application/json" not in content:
            return self._lines()
        example = copy.deepcopy(content["application/json"]["example"]) if content else {}
        if isinstance(example, dict):
            self._freshen(example)
        for _ in range(self.chance.choice((0, 0, 1, 1, 2, 5))):
            example = self._mutated(example)
        text = json.dumps(example).encode()
        if self.chance.random() < 0.15:
            text = self._bruised(text)
        return text

    def _lines(self) -> bytes:
        """The file of an export, almost."""
        lines = [
            json.dumps(self._mutated(copy.deepcopy(line)) if self.chance.random() < 0.2 else line).encode()
            for line in EXPORT[: self.chance.randrange(1, len(EXPORT) + 1)]
        ]
        text = b"\n".join(lines) + b"\n"
        return self._bruised(text) if self.chance.random() < 0.15 else text

    def _freshen(self, example: dict[str, Any]) -> None:
        """Let what must be new be new, and what must exist exist, as often as not."""
        for name in ("name", "email"):
            if name in example and self.chance.random() < 0.8:
                word = "".join(self.chance.choices(string.ascii_lowercase, k=12))
                example[name] = f"{word}@example.com" if name == "email" else word
        if "uid" in example and self.chance.random() < 0.5:
            del example["uid"]
        for name in ("vaultUids", "expiresAt"):
            if name in example and self.chance.random() < 0.7:
                del example[name]

    def _mutated(self, value: Any) -> Any:
        roll = self.chance.random()
        if isinstance(value, dict) and value and roll < 0.9:
            name = self.chance.choice(list(value))
            if roll < 0.15:
                del value[name]
            elif roll < 0.25:
                value[self.chance.choice(("x", "", "__proto__", name.upper(), "a" * 3_000))] = value[name]
            else:
                value[name] = self._mutated(value[name])
            return value
        if isinstance(value, list) and value and roll < 0.7:
            value[self.chance.randrange(len(value))] = copy.deepcopy(self.chance.choice(JUNK))
            return value
        return copy.deepcopy(self.chance.choice(JUNK))

    def _bruised(self, text: bytes) -> bytes:
        at = self.chance.randrange(len(text) + 1)
        return self.chance.choice(
            (
                text[:at],
                text[:at] + bytes([self.chance.randrange(256)]) + text[at:],
                text[:at] + bytes([self.chance.randrange(256)]) + text[at + 1 :],
                text * 2,
                b"",
                b"\xef\xbb\xbf" + text,
                b"[" * 5_000,
                b'{"a":' * 3_000,
                quote(text).encode(),
            )
        )
