"""The agent's log: what it did and when, without a name, a value or a key."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Final

_MOST: Final = 1 << 20  # bytes; then it begins anew, and the one before is kept once


class Log:
    """A file that only its owner can read. A log that cannot be written stops nothing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Add a line with the time."""
        spelled = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n".encode(errors="replace")
        with self._lock, suppress(OSError):
            with suppress(FileNotFoundError):
                if os.lstat(self._path).st_size > _MOST:
                    os.replace(self._path, f"{self._path}.1")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, spelled)
            finally:
                os.close(descriptor)
