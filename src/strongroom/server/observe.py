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
_STRANGERS: Final = 100  # lines of one second, for requests of callers who have not proven who they are

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
        self._second = 0  # for which strangers' requests are counted
        self._strangers = self._left_out = 0

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
        *,
        known: bool = True,
    ) -> None:
        """Note a request that was answered; one that the server failed at is an error.

        A stream is noted when it has `ended`, and why: its time is no latency. Of callers who are not `known` a bounded
        number is noted, or they could fill the disk at no cost; at the level `debug`, all of them.
        """
        level = "info" if status < 500 or status in {503, 507} else "error"
        bounded = not known and level == "info" and self._least > _LEVELS["debug"]
        if _LEVELS[level] < self._least or (bounded and not self._has_room()):
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

    def _has_room(self) -> bool:
        """Whether one more line of a stranger's request is written in this second; if not, it is counted."""
        second = int(time.monotonic())
        if second != self._second:
            self._tell_left_out()
            self._second, self._strangers = second, 0
        if self._strangers < _STRANGERS:
            self._strangers += 1
            return True
        if not self._left_out:
            with suppress(RuntimeError):  # without a loop, the next request tells
                asyncio.get_running_loop().call_later(1, self._tell_left_out)
        self._left_out += 1
        return False

    def _tell_left_out(self) -> None:
        """Tell how many requests were left out, if any were."""
        number, self._left_out = self._left_out, 0
        if not number:
            return
        if self._plain:
            self._add_line(f"{_now()[11:23]}  info  {number} more requests without a good token were not logged")
            return
        self._add({"time": _now(), "level": "info", "event": "requests", "leftOut": number})

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

    def close(self) -> None:
        """Write all that is left to tell."""
        self._tell_left_out()
        self.flush()


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
