"""One structured line a request, and one for each fault. Never a body, a token, a key, a query value or an email."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_encode = msgspec.json.Encoder().encode
_FLUSH_SECONDS: Final = 0.05
_FLUSH_LINES: Final = 512


class Log:
    """JSON lines on a file descriptor, written in small batches so that a request does not wait for the terminal."""

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def request(
        self, method: str, route: str, status: int, seconds: float, size: int, request_id: str, account: str | None
    ) -> None:
        """Note a request that was answered."""
        self._add(
            {
                "time": _now(),
                "level": "info",
                "event": "request",
                "method": method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 3),
                "bytes": size,
                "requestId": request_id,
                "account": account,
            }
        )

    def fault(self, error: BaseException, request_id: str) -> None:
        """Note a fault of our own: its kind and where it was, not its message, which could hold what a user sent."""
        frames = traceback.extract_tb(error.__traceback__)
        self._add(
            {
                "time": _now(),
                "level": "error",
                "event": "fault",
                "error": type(error).__name__,
                "trace": [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames],  # noqa: PTH119
                "requestId": request_id,
            }
        )

    def say(self, level: str, message: str) -> None:
        """Note something of the server's own life."""
        self._add({"time": _now(), "level": level, "event": "server", "message": message})

    def _add(self, fields: dict[str, Any]) -> None:
        self._lines.append(_encode(fields))
        if len(self._lines) >= _FLUSH_LINES:
            self.flush()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
            except RuntimeError:
                self.flush()

    def flush(self) -> None:
        """Write what has gathered. A log that cannot be written is no reason to stop serving."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        view = memoryview(b"".join(line + b"\n" for line in lines))
        with suppress(OSError):
            while view:
                view = view[os.write(self._descriptor, view) :]


class Silent(Log):
    """For embedding: the host application has a log of its own."""

    def _add(self, fields: dict[str, Any]) -> None:
        pass


class Forward(logging.Handler):
    """Libraries' own warnings go to the same place, in the same form."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Note what a library says; of an exception only its kind."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        self._log.say(
            record.levelname.lower(),
            record.getMessage().partition("\n")[0] if kind is None else f"{record.name}: {kind}",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_stderr() -> Log:
    """The log of a server that runs by itself."""
    return Log(sys.stderr.fileno())
