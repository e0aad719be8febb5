"""One HTTP request in the words of a peer, and its bytes on the wire."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any

VALUE = "\x00"  # stands where a version or a cursor goes
WIDTH = 20  # a value inside a body is padded with blanks to this width, so that Content-Length never changes


@dataclass(frozen=True)
class PeerRequest:
    """A request. Where it holds VALUE, the client puts what the last answer said (a version, a cursor)."""

    method: str
    path: str
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200

    def filled(self, value: str) -> PeerRequest:
        """The same request with the value in its place."""
        return PeerRequest(
            self.method,
            self.path.replace(VALUE, value),
            None if self.body is None else self.body.replace(VALUE, value.ljust(WIDTH)),
            {name: text.replace(VALUE, value) for name, text in self.headers.items()},
            self.status,
        )


@dataclass(frozen=True)
class RequestTemplate:
    """A request as bytes: `before`, then the value of `slot` padded to `pad`, then `after`."""

    before: bytes
    after: bytes
    slot: int  # -1: there is no value
    pad: int
    status: int
    least: int  # an answer's body has at least this many bytes
    most: int
    first: bytes | None = None  # the value with which a list in pages begins; its time runs from here
    last: bool = True  # False: another page follows, and the answer is only a part of what is timed


def request_template(
    ask: PeerRequest,
    host: str,
    *,
    slot: int = -1,
    least: int = 0,
    most: int = 1 << 30,
    first: bytes | None = None,
    last: bool = True,
) -> RequestTemplate:
    """The bytes of a request."""
    body = "" if ask.body is None else ask.body
    length = len(body.encode()) + (WIDTH - 1) * body.count(VALUE)
    headers = {"Host": host, **ask.headers}
    if ask.body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(length)}
    lines = [f"{ask.method} {ask.path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items()), "", body]
    text = "\r\n".join(lines)
    before, _, after = text.partition(VALUE)
    pad = WIDTH if VALUE in body else 0
    place = slot if VALUE in text else -1
    return RequestTemplate(before.encode(), after.encode(), place, pad, ask.status, least, most, first, last)


@dataclass(frozen=True)
class Reply:
    """An answer, read the slow and careful way: for preparing and checking, not for timing."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.raw)


def send(host: str, ask: PeerRequest) -> Reply:
    """Send one request and read its answer."""
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        headers = dict(ask.headers)
        if ask.body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(ask.method, ask.path, ask.body, headers)
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def expect(host: str, ask: PeerRequest) -> Reply:
    """Send one request; anything but the status it names is an error."""
    reply = send(host, ask)
    if reply.status != ask.status:
        raise WrongAnswer(f"{ask.method} {ask.path}: {reply.status} instead of {ask.status}: {reply.raw[:300]!r}")
    return reply


class WrongAnswer(Exception):  # noqa: N818 - said to the one who runs the benchmark
    """A peer does not answer as it must; it is not timed."""
