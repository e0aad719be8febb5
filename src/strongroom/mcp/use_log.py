"""The log of every use: one line of JSON each, in a file that only its owner can read. No line contains a value.

A model chooses some of the text: what it asked for and was refused. That stands in the member `asked` alone, cut, and
is escaped to printable ASCII like all else. So it is neither a line of its own nor another member of its line.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Final

from strongroom.programs.private_files import FileRefused

_MOST: Final = 64 << 20  # bytes; then nothing is done until a person has moved the file
_LONGEST: Final = 200  # characters of a text that the model has chosen


class UseLog:
    """A log file. What cannot be logged is not done. A file that was moved away is begun anew."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = self._open()

    def write(self, tool: str, outcome: str, *, asked: str | None = None, **members: str | list[str]) -> None:
        """Add a line: the time, the tool, whether it was allowed, what it was about, and what the model asked for."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        chosen = {} if asked is None else {"asked": asked[:_LONGEST] + ("…" if len(asked) > _LONGEST else "")}
        line = json.dumps({"time": at, "tool": tool, "outcome": outcome, **members, **chosen}).encode() + b"\n"
        try:
            if not self._is_there():
                before, self._descriptor = self._descriptor, self._open()
                os.close(before)
            size = os.fstat(self._descriptor).st_size
            if size + len(line) > _MOST:
                raise FileRefused(f"The log {self._path} is full, so nothing is done: a person has to move it away.")
            if size and os.pread(self._descriptor, 1, size - 1) != b"\n":  # a line that was cut when the disk was full
                line = b"\n" + line
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

    def _is_there(self) -> bool:
        """Whether the open file still has its name."""
        opened = os.fstat(self._descriptor)
        try:
            return os.path.samestat(opened, os.lstat(self._path))
        except FileNotFoundError:
            return False

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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
