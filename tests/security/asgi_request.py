"""One ASGI request straight to the application: raw bytes in the path, and an address of its own for each caller."""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

_numbers = itertools.count(1)


def fresh_address() -> str:
    """An address that nobody has called from before: no limit of another caller is met by accident."""
    number = next(_numbers)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


class Answer(NamedTuple):
    """What came back, to the byte."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    @property
    def code(self) -> str:
        """The word of a refusal; empty where there is none."""
        return str(self.json()["error"]["code"]) if self.status >= 400 else ""

    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)

    def header(self, name: str) -> str:
        """A header's value, empty where there is none."""
        return dict(self.headers).get(name.encode(), b"").decode()


async def ask(
    app: Any,
    method: str,
    target: str,
    bearer: str | None = None,
    body: Any = None,
    *,
    headers: tuple[tuple[str, str], ...] = (),
    address: str | None = None,
    agent: str = "tests",
    content_type: str = "application/json",
) -> Answer:
    """Send one request. The request id is always the same, so that answers can be compared to the byte."""
    raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = [(b"host", b"server"), (b"x-request-id", b"compared"), (b"user-agent", agent.encode())]
    sent += [(name.encode(), value.encode("latin-1")) for name, value in headers]
    if bearer is not None:
        sent.append((b"authorization", b"Bearer " + bearer.encode("utf-8", "surrogatepass")))
    if body is not None:
        sent += [(b"content-type", content_type.encode()), (b"content-length", str(len(raw)).encode())]
    path, _, query = target.encode().partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": sent,
        "client": (address or fresh_address(), 5),
        "server": ("server", 80),
    }
    incoming = iter([{"type": "http.request", "body": raw, "more_body": False}])
    status, answered, chunks = 0, (), []

    async def receive() -> Any:
        return next(incoming, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        nonlocal status, answered
        if message["type"] == "http.response.start":
            status, answered = message["status"], tuple(message["headers"])
        else:
            chunks.append(bytes(message.get("body", b"")))

    await app(scope, receive, send)
    return Answer(status, answered, b"".join(chunks))
