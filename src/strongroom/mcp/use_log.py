"""The log of every use: one line of JSON each, in a file that only its owner can read. No line contains a value."""

from __future__ import annotations

import json
import os
import stat
import time

from strongroom.programs.private_files import FileRefused


class UseLog:
    """A log file. What cannot be logged is not done."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = self._open()

    def write(self, tool: str, outcome: str, **members: str | int | list[str]) -> None:
        """Add a line: the time, the tool, whether it was allowed, and what it was about."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": at, "tool": tool, "outcome": outcome, **members}).encode() + b"\n"
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise FileRefused(
                f"The log {self._path} cannot be written, so nothing is done: {error.strerror}."
            ) from None
        if written < len(line):
            raise FileRefused(f"The log {self._path} cannot be written, so nothing is done: the disk is full.")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise FileRefused(f"The log {self._path} cannot be opened: {error.strerror}.") from None
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
            return descriptor
        os.close(descriptor)
        raise FileRefused(f"The log {self._path} is no file of yours.")
