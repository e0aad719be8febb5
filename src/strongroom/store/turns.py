"""Who may have a database: many who serve it, or one who replaces it; and one backup at a time.

Beside a SQLite file lies another, `vault.db-lock`, which servers lock together and a restore alone. It is never locked
for longer than a process lives, and a word in it says that a restore has begun and not finished. On PostgreSQL the same
are advisory locks of the connections.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from strongroom.store.db import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be replaced in any case
    fcntl = None  # type: ignore[assignment]

SERVING: Final = 0x5354524F4E48  # held together by connections that serve, alone by a restore
BACKING_UP: Final = 0x5354524F4E49  # held by the backup that is being made
TRY_TOGETHER: Final = "SELECT pg_try_advisory_lock_shared($1)"
TRY_ALONE: Final = "SELECT pg_try_advisory_lock($1)"


class FileLock:
    """A lock on a file of its own; let go at the latest when the process ends."""

    def __init__(self, path: Path, like: Path | None = None) -> None:
        self._descriptor = -1
        self._descriptor = open_for_owner(path, like or path.parent)

    def together(self) -> bool:
        """Take it, beside others who do the same. False if somebody has it alone."""
        return self._taken(alone=False)

    def alone(self) -> bool:
        """Take it, and leave nobody else. False if anybody has it."""
        return self._taken(alone=True)

    def _taken(self, *, alone: bool) -> bool:
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def word(self) -> str:
        """What is written in it."""
        return os.pread(self._descriptor, 100, 0).decode("ascii", "replace")

    @word.setter
    def word(self, text: str) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode("ascii"), 0)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


def lock_of(path: Path) -> FileLock:
    """The lock of the database in this file."""
    return FileLock(path.with_name(f"{path.name}-lock"), path if path.exists() else path.parent)


def open_for_owner(path: Path, like: Path) -> int:
    """Open a file, and make it if it is not there. What root makes belongs to the owner of `like`.

    The service's user must be able to open it too.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = like.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


@contextmanager
def starting(path: Path) -> Iterator[None]:
    """Those who are about to open this file take turns: one looks at its log, and the others wait until it is done."""
    if fcntl is None:
        yield
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:  # one who may not even list it; whoever writes there can
        yield
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_served(path: Path) -> bool:
    """Whether somebody has this file open to serve or to change it. Nothing is made or changed to find out."""
    if fcntl is None:
        return False
    with starting(path), suppress(FileNotFoundError):
        try:
            descriptor = os.open(path.with_name(f"{path.name}-lock"), os.O_RDONLY)
        except PermissionError:
            return True  # nobody can tell, so nothing is taken for granted
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def word_of(path: Path) -> str:
    """What the lock of this file says, without making one."""
    with suppress(OSError):
        return path.with_name(f"{path.name}-lock").read_text("ascii", "replace")
    return ""


def served(path: Path, check: Callable[[], None]) -> FileLock:
    """The lock of this file, taken by one of those who serve it. The first of them checks it before any other comes."""
    with starting(path):
        lock = lock_of(path)
        try:
            _take(lock, path, check)
        except BaseException:
            lock.close()
            raise
    return lock


def _take(lock: FileLock, path: Path, check: Callable[[], None]) -> None:
    first = lock.alone()
    if first and not lock.word:
        check()
    if not lock.together():
        raise CannotOpen(f"The database {path} is being restored; start again when that is done.")
    if lock.word:
        raise CannotOpen(
            f"A restore of {path} was interrupted; run the same 'strongroom restore' again, which finishes it."
        )
