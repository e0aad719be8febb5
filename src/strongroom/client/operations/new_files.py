"""New files on this device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Callable[[bytes], object]]:
    """An atomic write: a file that only its owner can read, renamed to its name when it is complete."""
    target = Path(path)
    part = target.with_name(f"{target.name}.part")
    made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(made, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise
