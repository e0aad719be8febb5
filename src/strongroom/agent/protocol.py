"""Requests and responses between commands and the agent: lines of JSON, one request for each connection.

    request    {"protocol": "1", "operation": "read", …}
    response   {"result": …}, or {"error": {"code": "locked", "message": "…", "details": …}}

A short message of plain texts is written and read here, without the module `json`: its import takes longer than all
else that `strongroom get` does.

Before its response the agent may send any number of other lines:

    question   {"question": {"kind": "code", "message": "…"}}, which is replied to with {"reply": "…"}
    notice     {"notice": "touch the security key"}
    progress   {"progress": {"phase": "pull", "done": 1, "total": 2}}
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Stream(Protocol):
        """The part of a socket that is used."""

        def recv(self, size: int, /) -> bytes: ...  # noqa: D102
        def sendall(self, data: bytes, /) -> None: ...  # noqa: D102


PROTOCOL = "1"
MAX_LINE = 64 << 20  # bytes of a request or a response
_CHUNK = 1 << 16


class Failed(Exception):  # noqa: N818 - an outcome that is told to a person
    """A request that failed. `code` is for programs, the message is a sentence for people."""

    def __init__(self, code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def __reduce__(self) -> Any:
        """How it is copied."""
        return Failed, (self.code, self.message, self.details)


class Lines:
    """A connection as messages, one a line. Its repr shows nothing of them."""

    def __init__(self, stream: Stream, *, limit: int = MAX_LINE) -> None:
        self._stream = stream
        self._limit = limit
        self._buffer = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        line = encode(message)
        if len(line) > self._limit:
            raise Failed("too_large", "The request or its response is too large for the agent.")
        self._stream.sendall(line)

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None where the other side has ended."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > self._limit:
                raise Failed("too_large", "The request or its response is too large for the agent.")
            chunk = self._stream.recv(_CHUNK)
            if not chunk:
                return None
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return decode(line)

    def __repr__(self) -> str:
        return "Lines(...)"


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line. A lone surrogate, which no UTF-8 can have, is refused."""
    if all(
        isinstance(value, str) and value.isprintable() and not {'"', "\\"} & set(value) for value in message.values()
    ):
        return ("{" + ",".join(f'"{name}":"{value}"' for name, value in message.items()) + "}\n").encode()
    import json

    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        raise Failed("invalid", "A value is not text in UTF-8; nothing was done.") from None


def decode(line: bytes) -> dict[str, Any]:
    """A line as a message; anything but an object is refused. The error shows nothing of the line."""
    try:
        if line.startswith(b'{"result":"') and line.endswith(b'"}') and b"\\" not in line and line.count(b'"') == 4:
            return {"result": line[11:-2].decode()}
        import json

        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise Failed("invalid", "A message of the agent's protocol is not JSON, or is no object.")
    return message
