"""The reference: how h11 reads a stream of requests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import h11

_APART: Final = re.compile(rb"^([A-Z]+) +(\S+) +(HTTP/)")


@dataclass
class Seen:
    """A request as the reference reads it."""

    method: str
    target: str
    request_id: str
    expects: bool
    switches: bool  # CONNECT, whose body is none, or an upgrade: nothing that follows it is HTTP
    body: bytes = b""
    end: int | None = None  # where in the stream it ends; None where it is not complete


@dataclass
class Reading:
    """What the reference makes of a stream."""

    requests: list[Seen] = field(default_factory=list)
    end: str = "open"  # or "refused", "closed" by the client's own wish, "switched" to another protocol
    why: str = ""


def reference(stream: bytes) -> Reading:
    """Let h11 read a stream: a connection for each request, until one is refused, incomplete or the last."""
    reading, rest = Reading(), stream
    while rest := _prepared(rest):
        conn = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        conn.receive_data(rest)
        try:
            seen = _head(conn)
            if seen is None:
                return reading
            reading.requests.append(seen)
            if seen.method != "CONNECT" and not _read_body(conn, seen):
                return reading
        except h11.RemoteProtocolError as error:
            reading.end, reading.why = "refused", str(error)
            return reading
        rest = conn.trailing_data[0]
        seen.end = len(stream) - len(rest)
        if seen.switches or conn.their_state is h11.MUST_CLOSE:
            reading.end = "switched" if seen.switches else "closed"
            return reading
    return reading


def _prepared(rest: bytes) -> bytes:
    """A stream as h11 takes it, where RFC 9112 lets a server be more lenient than h11 is.

    Empty lines before a request are ignored (2.2), and the parts of its first line may stand further apart (3).
    """
    rest = rest.lstrip(b"\r\n")
    first, end, more = rest.partition(b"\n")
    return _APART.sub(rb"\1 \2 \3", first) + end + more


def _head(conn: h11.Connection) -> Seen | None:
    """The head of the next request; None if it is not complete. What RFC 9112 lets a server refuse is refused."""
    event = conn.next_event()
    if not isinstance(event, h11.Request):
        return None
    told = {name for name, _ in event.headers}
    if event.http_version not in {b"1.1", b"1.0"}:
        raise h11.RemoteProtocolError("another version of HTTP")
    if b"transfer-encoding" in told and (b"content-length" in told or event.http_version == b"1.0"):
        raise h11.RemoteProtocolError("chunks with a length, or of HTTP/1.0")
    ids = [value.decode("latin-1") for name, value in event.headers if name == b"x-request-id"]
    expects = conn.they_are_waiting_for_100_continue
    return Seen(event.method.decode(), event.target.decode("latin-1"), ", ".join(ids), expects, _switches(event))


def _switches(request: h11.Request) -> bool:
    told = {name for name, _ in request.headers}
    options = b",".join(value for name, value in request.headers if name == b"connection").lower().split(b",")
    upgrades = b"upgrade" in told and b"upgrade" in {option.strip() for option in options}
    return request.method == b"CONNECT" or upgrades


def _read_body(conn: h11.Connection, seen: Seen) -> bool:
    """Read the body as far as it is here; whether it is complete."""
    while True:
        event = conn.next_event()
        if isinstance(event, h11.Data):
            seen.body += event.data
        else:
            return isinstance(event, h11.EndOfMessage)
