"""The program of a command: opened when it is checked, so that what was checked is what runs."""

from __future__ import annotations

import os
import stat
from typing import Final, Self

from strongroom.programs.private_files import FileRefused, require_trusted, trusted_path

_DEEPEST: Final = 4  # interpreters that are scripts themselves, as in the kernel
_LONGEST: Final = 256  # bytes of the line that names an interpreter


class Program:
    """A program that nobody but this user and root can write or replace. A context manager.

    `file` is what to execute. Of a binary on Linux it is the descriptor that was checked. Of a script it is the path
    without links, because the interpreter opens it by its name; its interpreter is checked in the same way.
    """

    def __init__(self, path: str, deepest: int = _DEEPEST) -> None:
        try:
            true = trusted_path(path, last_link=True)
            self.descriptor = os.open(true, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise FileRefused(f"The program {path} cannot be run: {error.strerror}.") from None
        try:
            is_script = self._check(path, true, deepest)
        except BaseException:
            self.close()
            raise
        by_descriptor = not is_script and os.path.isdir("/proc/self/fd")  # noqa: PTH112
        self.file: Final = f"/proc/self/fd/{self.descriptor}" if by_descriptor else true

    def _check(self, path: str, true: str, deepest: int) -> bool:
        """Refuse what is no program, or what others can write; whether it is a script."""
        found = os.fstat(self.descriptor)
        if not stat.S_ISREG(found.st_mode) or not os.access(true, os.X_OK):
            raise FileRefused(f"The program {path} cannot be run: it is no executable file.")
        require_trusted(true, found)
        interpreter = _interpreter(true)
        if interpreter is None:
            return False
        if not interpreter.startswith("/") or not deepest:
            raise FileRefused(f"The program {path} cannot be run: its first line names no interpreter.")
        Program(interpreter, deepest - 1).close()
        return True

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _interpreter(path: str) -> str | None:
    """The interpreter of a script; None of a binary, and of a program that may be executed and not read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            line = file.readline(_LONGEST)
    except PermissionError:
        return None
    except OSError as error:
        raise FileRefused(f"The program {path} cannot be run: {error.strerror}.") from None
    if not line.startswith(b"#!"):
        return None
    words = line[2:].split(maxsplit=1)
    return os.fsdecode(words[0]) if words else ""
