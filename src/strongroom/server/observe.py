"""One line a request, and one for each fault: JSON, or for people at a terminal plain text.

Never a body, a token, a key, a query value or an email.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import time
import traceback
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec

_encode = msgspec.json.Encoder().encode
_FLUSH_SECONDS: Final = 0.05
_FLUSH_LINES: Final = 512


_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Log:
    """Lines on a file descriptor, written in small batches so that a request does not wait for the terminal."""

    def __init__(self, descriptor: int = 2, level: str = "info", *, plain: bool = False) -> None:
        self._descriptor = descriptor
        self._least = _LEVELS[level]
        self._plain = plain
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def request(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        size: int,
        request_id: str,
        account: str | None,
        ended: str | None = None,
    ) -> None:
        """Note a request that was answered; one that the server failed at is an error.

        A stream is noted when it has `ended`, and why: its time is no latency.
        """
        level = "info" if status < 500 or status in {503, 507} else "error"
        if _LEVELS[level] < self._least:
            return
        if self._plain:
            self._add_line(
                f"{_now()[11:23]}  {status}  {method:6} {route}  {seconds * 1000:.1f} ms  {size} B  {request_id}"
                f"{'' if account is None else '  ' + account}{'' if ended is None else '  ended: ' + ended}"
            )
            return
        # Every part is of our own making or of a checked form, so nothing needs escaping.
        who = "null" if account is None else f'"{account}"'
        event, why = ("request", "") if ended is None else ("stream", f',"ended":"{ended}"')
        self._add_line(
            f'{{"time":"{_now()}","level":"{level}","event":"{event}","method":"{method}","route":"{route}",'
            f'"status":{status},"ms":{seconds * 1000:.3f},"bytes":{size},"requestId":"{request_id}",'
            f'"account":{who}{why}}}'
        )

    def fault(self, error: BaseException, request_id: str) -> None:
        """Note a fault of our own: its kind and where it was, not its message, which could hold what a user sent."""
        frames = traceback.extract_tb(error.__traceback__)
        trace = [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]  # noqa: PTH119
        if self._plain:
            self._add_line(f"{_now()[11:23]}  error  {type(error).__name__} at {' < '.join(trace[::-1])}  {request_id}")
            return
        self._add(
            {
                "time": _now(),
                "level": "error",
                "event": "fault",
                "error": type(error).__name__,
                "trace": trace,
                "requestId": request_id,
            }
        )

    def say(self, level: str, message: str) -> None:
        """Note something of the server's own life."""
        if _LEVELS.get(level, 0) < self._least:
            return
        if self._plain:
            self._add_line(f"{_now()[11:23]}  {level}  {_CONTROLS.sub(' ', message)}")
            return
        self._add({"time": _now(), "level": level, "event": "server", "message": message})

    def _add(self, fields: dict[str, Any]) -> None:
        self._add_line(_encode(fields).decode())

    def _add_line(self, line: str) -> None:
        self._lines.append(line)
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
        view = memoryview("".join(f"{line}\n" for line in lines).encode())
        with suppress(OSError):
            while view:
                view = view[os.write(self._descriptor, view) :]


class Silent(Log):
    """For embedding: the host application has a log of its own."""

    def _add_line(self, line: str) -> None:
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
    moment = time.time_ns() // 1_000_000
    return f"{_second(moment // 1000)}.{moment % 1000:03}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def to_stderr(level: str = "info", form: str = "auto") -> Log:
    """The log of a server that runs by itself: for people where they look on, else for programs."""
    plain = sys.stderr.isatty() if form == "auto" else form == "text"
    return Log(sys.stderr.fileno(), level, plain=plain)
