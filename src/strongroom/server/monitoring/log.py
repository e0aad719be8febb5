"""The log: one line a request and one for each fault, as JSON, or as plain text on a terminal.

Never a body, a token, a key, a query value or an email.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_encode = msgspec.json.Encoder().encode
_FLUSH_SECONDS: Final = 0.05
_FLUSH_LINES: Final = 512
_FLUSH_TIMEOUT: Final = 1.0  # seconds, when the process ends
_MAX_QUEUED_BYTES: Final = 256 * 1024  # bytes of lines that are not written yet
_UNAUTHENTICATED_LINES: Final = 100  # a second, for requests without a valid token

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Log:
    """Lines on a file descriptor, written in small batches so that a request does not wait for the terminal."""

    def __init__(self, descriptor: int = 2, level: str = "info", *, plain: bool = False) -> None:
        self._writer = _Writer(descriptor, self._dropped)
        self._least = _LEVELS[level]
        self._plain = plain
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._second = 0  # for which unauthenticated requests are counted
        self._unauthenticated = self._suppressed = 0

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
        """Log a request; one that the server failed at is an error.

        A stream is logged when it has `ended`, and why: its time is no latency. Of callers that are not `known` a
        bounded number is logged, or they could fill the disk at no cost; at the level `debug`, all of them.
        """
        level = "info" if status < 500 or status in {503, 507} else "error"
        bounded = not known and level == "info" and self._least > _LEVELS["debug"]
        if _LEVELS[level] < self._least or (bounded and not self._within_limit()):
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

    def _within_limit(self) -> bool:
        """Whether one more unauthenticated request is logged in this second; if not, it is counted."""
        second = int(time.monotonic())
        if second != self._second:
            self._log_suppressed()
            self._second, self._unauthenticated = second, 0
        if self._unauthenticated < _UNAUTHENTICATED_LINES:
            self._unauthenticated += 1
            return True
        if not self._suppressed:
            with suppress(RuntimeError):  # without a loop, the next request logs it
                asyncio.get_running_loop().call_later(1, self._log_suppressed)
        self._suppressed += 1
        return False

    def _log_suppressed(self) -> None:
        """Log how many requests were not logged, if any."""
        number, self._suppressed = self._suppressed, 0
        if not number:
            return
        if self._plain:
            self._add_line(f"{_now()[11:23]}  info  {number} more requests without a good token were not logged")
            return
        self._add({"time": _now(), "level": "info", "event": "requests", "leftOut": number})

    def fault(self, error: BaseException, request_id: str) -> None:
        """Log an unexpected exception: its type and traceback, not its message, which could hold what a user sent."""
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
        """Log a message of the server."""
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
            self._submit()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._submit)
            except RuntimeError:
                self.flush()

    def _submit(self) -> None:
        """Pass the collected lines to the writer thread."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self._writer.put("".join([f"{line}\n" for line in lines]).encode(), len(lines))

    def _dropped(self, number: int) -> bytes:
        """The line that says how many lines were dropped."""
        if self._plain:
            return f"{_now()[11:23]}  warning  {number} lines were not written here: nobody read them\n".encode()
        return _encode({"time": _now(), "level": "warning", "event": "log", "logLinesLost": number}) + b"\n"

    def flush(self) -> None:
        """Write the collected lines, or give up after a second where nothing reads them."""
        self._submit()
        self._writer.wait(_FLUSH_TIMEOUT)

    def close(self) -> None:
        """Write everything that is left."""
        self._log_suppressed()
        self.flush()


class _Writer:
    """A writer thread, so that a blocked log does not block requests.

    Its queue is bounded. Lines that do not fit are dropped and counted, and the number is written as soon as the log
    can be written again. A log that cannot be written at all is no reason to stop serving.
    """

    def __init__(self, descriptor: int, dropped_line: Callable[[int], bytes]) -> None:
        self._descriptor = descriptor
        self._dropped_line = dropped_line
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._held = 0  # bytes that are queued or being written
        self._dropped = 0  # lines since the last report of dropped lines
        self._thread: threading.Thread | None = None

    def put(self, text: bytes, lines: int) -> None:
        """Queue lines to be written."""
        with self._changed:
            if self._held and self._held + len(text) > _MAX_QUEUED_BYTES:
                self._dropped += lines
                return
            self._waiting.append(text)
            self._held += len(text)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until everything is written, or until the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held and not self._dropped, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._dropped)
                text, lost = b"".join(self._waiting), self._dropped
                self._waiting.clear()
                self._dropped = 0
            self._write(self._dropped_line(lost) + text if lost else text)
            with self._changed:
                self._held -= len(text)
                self._changed.notify_all()

    def _write(self, text: bytes) -> None:
        view = memoryview(text)
        with suppress(OSError):
            while view:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:  # another process shares it, and made it non-blocking
                    select.select([], [self._descriptor], [])


class Silent(Log):
    """A log that writes nothing, for embedding."""

    def _add_line(self, line: str) -> None:
        pass


def _now() -> str:
    timestamp = time.time_ns() // 1_000_000
    return f"{_second(timestamp // 1000)}.{timestamp % 1000:03}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def to_stderr(level: str = "info", form: str = "auto") -> Log:
    """A log on standard error: plain text on a terminal, else JSON."""
    plain = sys.stderr.isatty() if form == "auto" else form == "text"
    return Log(sys.stderr.fileno(), level, plain=plain)
