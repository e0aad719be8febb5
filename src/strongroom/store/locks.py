"""Who may have a database: many who serve it, or one who replaces it; and one backup at a time.

Beside a SQLite file lies `vault.db-lock`, which servers lock shared and a restore exclusively. It is never held
beyond the life of a process, and a word in it says that a restore has begun and not finished. On PostgreSQL the same
are advisory locks of the connections.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom.store import file_owners
from strongroom.store.exceptions import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be replaced in any case
    fcntl = None  # type: ignore[assignment]

SERVING: Final = 0x5354524F4E48  # held shared by connections that serve, exclusive by a restore
BACKING_UP: Final = 0x5354524F4E49  # held by the backup that is being made
TRY_SHARED: Final = "SELECT pg_try_advisory_lock_shared($1)"
TRY_EXCLUSIVE: Final = "SELECT pg_try_advisory_lock($1)"
HALF: Final = ".half"  # ends the name of a backup that is being written
_STAMP: Final = re.compile(r"\d{8}T\d{6}Z(-\d+)?")  # what a restore writes into the lock
LOCK_SECONDS: Final = 30  # how long to wait for one who is starting; it looks at the log, of which 64 MiB take a second
_PAUSE_SECONDS: Final = 0.05  # between two tries
_UNFINISHED: Final = re.compile(rf"\..+\.\d+{re.escape(HALF)}")


class FileLock:
    """A lock on a file of its own; let go at the latest when the process ends."""

    def __init__(self, path: Path, like: Path | None = None) -> None:
        self._descriptor = -1
        self._path = path
        self._descriptor = file_owners.open_lock(path, like)

    def shared(self) -> bool:
        """Take it, beside others who do the same. False if somebody has it alone."""
        return self._taken(exclusive=False)

    def exclusive(self) -> bool:
        """Take it, and leave nobody else. False if anybody has it."""
        return self._taken(exclusive=True)

    def _taken(self, *, exclusive: bool) -> bool:
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def word(self) -> str:
        """What is written in it."""
        text = os.pread(self._descriptor, 100, 0).decode("ascii", "replace")
        _check_word(text, self._path)
        return text

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


def _check_word(text: str, lock: Path) -> None:
    if text and not _STAMP.fullmatch(text):
        raise CannotOpen(f"{lock} holds what no restore has written; look at it, and remove it.")


def abandoned(folder: Path, *, remove: bool = False) -> list[Path]:
    """The unfinished backups in a folder that nobody writes any more; removed, if that is wanted."""
    found = []
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):
                    found += [path] if _let_go(path, remove=remove) else []
    return found


def _let_go(path: Path, *, remove: bool) -> bool:
    """Whether it is a piece of an archive that nobody has locked; removed under the lock, so that nobody begins."""
    with path.open("rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        head = file.read(11)
        ours = not head or head.startswith((b"strongroom ", b"age-encrypt"))
        if ours and remove:
            path.unlink()
    return ours


def begin_half(path: Path, *, for_service: bool) -> int:
    """Make the file of an unfinished backup, locked for as long as the descriptor or a copy of it is open.

    For the service, it belongs to the owner of its folder; else to whoever makes it, for password hashes are in it.
    """
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if for_service:
            file_owners.give(descriptor, path.parent)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return descriptor
        os.close(descriptor)  # another one took it for abandoned before it was locked


def _lock_path(path: Path) -> Path:
    """The lock of a database, by whichever of its names it is called."""
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}-lock")


def lock_of(path: Path) -> FileLock:
    """The lock of the database in this file."""
    return FileLock(_lock_path(path), path if path.exists() else path.parent)


@contextmanager
def starting(path: Path) -> Iterator[None]:
    """Those who are about to open this file take turns: one looks at its log, and the others wait until it is done.

    Any process that may list the folder can lock it too, so nobody waits for ever.
    """
    if fcntl is None:
        yield
        return
    try:
        folder = os.open(_lock_path(path).parent, os.O_RDONLY)
    except OSError:  # one who may not even list it; whoever writes there can
        yield
        return
    try:
        _wait_for_turn(folder, path)
        yield
    finally:
        os.close(folder)


def _wait_for_turn(folder: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                lock = _lock_path(path)
                raise CannotOpen(
                    f"Another process has locked the folder {lock.parent} for {LOCK_SECONDS} seconds, so that "
                    f"{lock.name} in it cannot be taken. It may be a start that recovers a damaged log; 'lslocks' and "
                    f"'fuser -v {lock.parent}' show which process it is. Wait for it or end it, and try again."
                ) from None
        else:
            return
        time.sleep(_PAUSE_SECONDS)


def is_served(path: Path) -> bool:
    """Whether somebody has this file open to serve or to change it. Nothing is made or changed to find out."""
    if fcntl is None:
        return False
    with starting(path):
        try:
            descriptor = file_owners.open_plain(_lock_path(path))
        except FileNotFoundError:
            return False
        except OSError:
            return True  # nobody can tell, so nothing is taken for granted
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def word_of(path: Path) -> str:
    """What the lock of this file says, without making one. Another name of some file is no lock, and says nothing."""
    try:
        descriptor = file_owners.open_plain(_lock_path(path))
    except OSError:
        return ""
    try:
        if os.fstat(descriptor).st_nlink > 1:
            return ""
        return os.read(descriptor, 100).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def refuse_interrupted(path: Path) -> None:
    """Refuse a database whose restore was interrupted: its log may be moved away already, and itself not."""
    word = word_of(path)
    _check_word(word, _lock_path(path))
    if word:
        raise _interrupted(path)


def _interrupted(path: Path) -> CannotOpen:
    return CannotOpen(
        f"A restore of {path} was interrupted; run the same 'strongroom restore' again, which finishes it."
    )


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
    first = lock.exclusive()
    if first and not lock.word:
        check()
    if not lock.shared():
        raise CannotOpen(
            f"The database {path} is being restored, or another process has locked {_lock_path(path)}; "
            "start again when that is done."
        )
    if lock.word:
        raise _interrupted(path)
