"""One request's connection, as the operation sees it: it may ask the person, and tell how far it is."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Final

from strongroom.agent.protocol import Failed, Lines

_TIME_TO_REPLY: Final = 300.0  # seconds for a person to find a phone or a security key
_TIME_TO_READ: Final = 30.0  # seconds for a command to take its response


class Conversation:
    """The connection of one request."""

    def __init__(self, connected: socket.socket) -> None:
        self._connected = connected
        self._lines = Lines(connected)
        self._connected.settimeout(_TIME_TO_READ)

    def ask(self, kind: str, message: str) -> str | None:
        """What the person replies to a question; None for no reply."""
        self._connected.settimeout(_TIME_TO_REPLY)
        try:
            self._lines.send({"question": {"kind": kind, "message": message}})
            reply = self._lines.receive()
        except OSError:
            reply = None
        finally:
            self._connected.settimeout(_TIME_TO_READ)
        said = (reply or {}).get("reply")
        return said if isinstance(said, str) else None

    def notice(self, text: str) -> None:
        """Tell the person what to do."""
        with suppress(OSError):
            self._lines.send({"notice": text})

    def progress(self, phase: str, done: int, total: int | None) -> None:
        """Tell how far the operation is."""
        with suppress(OSError):
            self._lines.send({"progress": {"phase": phase, "done": done, "total": total}})

    def reply(self, result: Any) -> None:
        """Send the result, and end."""
        try:
            with suppress(OSError):
                self._lines.send({"result": result})
        except Failed as failed:
            self.fail(failed)
        self._connected.close()

    def fail(self, failed: Failed) -> None:
        """Send what failed, and end."""
        with suppress(OSError, Failed):
            self._lines.send({"error": {"code": failed.code, "message": failed.message, "details": failed.details}})
        self._connected.close()

    def __repr__(self) -> str:
        return "Conversation(...)"
