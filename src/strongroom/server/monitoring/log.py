"""One line a request, and one for each fault: JSON, or for people at a terminal plain text.

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
_FLUSH_PATIENCE: Final = 1.0  # seconds, when the process ends
_MOST_WAITING: Final = 256 * 1024  # bytes of lines that nobody reads
_STRANGERS: Final = 100  # lines of one second, for requests of callers who have not proven who they are

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Log:
    """Lines on a file descriptor, written in small batches so that a request does not wait for the terminal."""

    def __init__(self, descriptor: int = 2, level: str = "info", *, plain: bool = False) -> None:
        self._writer = _Writer(descriptor, self._lost)
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
            self._hand_over()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._hand_over)
            except RuntimeError:
                self.flush()

    def _hand_over(self) -> None:
        """Give what has gathered to the thread that writes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            self._writer.put("".join([f"{line}\n" for line in lines]).encode(), len(lines))

    def _lost(self, number: int) -> bytes:
        """The line that tells that so many are missing."""
        if self._plain:
            return f"{_now()[11:23]}  warning  {number} lines were not written here: nobody read them\n".encode()
        return _encode({"time": _now(), "level": "warning", "event": "log", "logLinesLost": number}) + b"\n"

    def flush(self) -> None:
        """Write what has gathered, or give up in a timestamp where nobody reads."""
        self._hand_over()
        self._writer.wait(_FLUSH_PATIENCE)

    def close(self) -> None:
        """Write all that is left to tell."""
        self._tell_left_out()
        self.flush()


class _Writer:
    """Writes on a thread of its own, so that a log that nobody reads holds nobody up.

    What waits to be written is bounded. What comes when that is full is left out and counted, and the number is
    written as soon as somebody reads again. A log that cannot be written at all is no reason to stop serving.
    """

    def __init__(self, descriptor: int, lost_line: Callable[[int], bytes]) -> None:
        self._descriptor = descriptor
        self._lost_line = lost_line
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._held = 0  # bytes that wait or are being written
        self._lost = 0  # lines that were left out since that was told
        self._thread: threading.Thread | None = None

    def put(self, text: bytes, lines: int) -> None:
        """Take so many lines, to be written soon."""
        with self._changed:
            if self._held and self._held + len(text) > _MOST_WAITING:
                self._lost += lines
                return
            self._waiting.append(text)
            self._held += len(text)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until all is written, for so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held and not self._lost, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._lost)
                text, lost = b"".join(self._waiting), self._lost
                self._waiting.clear()
                self._lost = 0
            self._write(self._lost_line(lost) + text if lost else text)
            with self._changed:
                self._held -= len(text)
                self._changed.notify_all()

    def _write(self, text: bytes) -> None:
        view = memoryview(text)
        with suppress(OSError):
            while view:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:  # somebody shares it, and made it so
                    select.select([], [self._descriptor], [])


class Silent(Log):
    """For embedding: the host application has a log of its own."""

    def _add_line(self, line: str) -> None:
        pass


def _now() -> str:
    timestamp = time.time_ns() // 1_000_000
    return f"{_second(timestamp // 1000)}.{timestamp % 1000:03}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def to_stderr(level: str = "info", form: str = "auto") -> Log:
    """The log of a server that runs by itself: for people where they look on, else for programs."""
    plain = sys.stderr.isatty() if form == "auto" else form == "text"
    return Log(sys.stderr.fileno(), level, plain=plain)
