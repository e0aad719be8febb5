"""Retries at start until the database can be reached."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from strongroom.store import CannotReach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from strongroom.server.monitoring.log import Log

T = TypeVar("T")
_FIRST_PAUSE: Final = 0.25  # seconds; each is longer than the one before
_MAX_PAUSE: Final = 5.0


def retry(attempt: Callable[[], T], seconds: int, log: Log | None) -> T:
    """Retry with exponential backoff until an attempt reaches the database, or until the timeout."""
    began, pause, waited = time.monotonic(), _FIRST_PAUSE, False
    with _exit_on_signals():
        while True:
            try:
                made = attempt()
            except CannotReach as error:
                left = began + seconds - time.monotonic()
                if left <= 0:
                    raise
                if not waited and log is not None:
                    sentence = str(error).removesuffix(".")
                    log.say("warning", f"{sentence}; trying again for {seconds} seconds (DB_WAIT_SECONDS).")
                    log.flush()
                waited = True
            else:
                if waited and log is not None:
                    log.say("info", f"PostgreSQL was reached after {time.monotonic() - began:.0f} seconds.")
                return made
            time.sleep(min(pause, left))
            pause = min(2 * pause, _MAX_PAUSE)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the process with code 0, also as the first process of a container."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: os._exit(0)) for number in numbers]  # nothing is open yet
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
