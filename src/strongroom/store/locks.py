"""Advisory locks on a database: shared by servers, exclusive for a restore; and one for the backup that is made.

Beside a SQLite file lies `vault.db-lock`, which servers lock shared and a restore exclusively. It is never held
beyond the life of a process, and a mark in it says that a restore has begun and not finished. On PostgreSQL the same
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
EXPORTING: Final = 0x5354524F4E4A  # with an account, held by the export of it that is being read
TRY_SHARED: Final = "SELECT pg_try_advisory_lock_shared($1)"
TRY_EXCLUSIVE: Final = "SELECT pg_try_advisory_lock($1)"
HALF: Final = ".half"  # ends the name of a backup that is being written
_STAMP: Final = re.compile(r"\d{8}T\d{6}Z(-\d+)?")  # what a restore writes into the lock
LOCK_SECONDS: Final = 30  # how long to wait for a process that starts; it checks the log, of which 64 MiB take a second
_PAUSE_SECONDS: Final = 0.05  # between two tries
_UNFINISHED: Final = re.compile(rf"\..+\.\d+{re.escape(HALF)}")


class FileLock:
    """A lock on a file of its own; released at the latest when the process ends."""

    def __init__(self, path: Path, like: Path | None = None) -> None:
        self._descriptor = -1
        self._path = path
        self._descriptor = file_owners.open_lock(path, like)

    def shared(self) -> bool:
        """Take the lock shared. False if another process has it exclusively."""
        return self._flock(exclusive=False)

    def exclusive(self) -> bool:
        """Take the lock exclusively. False if another process has it."""
        return self._flock(exclusive=True)

    def _flock(self, *, exclusive: bool) -> bool:
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def restore_mark(self) -> str:
        """The mark of a restore that has begun and not finished, or an empty text."""
        text = os.pread(self._descriptor, 100, 0).decode("ascii", "replace")
        _check_mark(text, self._path)
        return text

    @restore_mark.setter
    def restore_mark(self, text: str) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode("ascii"), 0)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


def _check_mark(text: str, lock: Path) -> None:
    if text and not _STAMP.fullmatch(text):
        raise CannotOpen(f"{lock} holds what no restore has written; look at it, and remove it.")


def abandoned(folder: Path, *, remove: bool = False) -> list[Path]:
    """Unfinished backups in a folder that no process writes any more; with `remove`, they are deleted."""
    found = []
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):
                    found += [path] if _is_abandoned(path, remove=remove) else []
    return found


def _is_abandoned(path: Path, *, remove: bool) -> bool:
    """Whether it is a part of an archive that no process has locked; deleted under the lock, against a race."""
    with path.open("rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        head = file.read(11)
        ours = not head or head.startswith((b"strongroom ", b"age-encrypt"))
        if ours and remove:
            path.unlink()
    return ours


def create_unfinished(path: Path, *, for_service: bool) -> int:
    """Create the file of an unfinished backup, locked for as long as the descriptor or a copy of it is open.

    For the service, it belongs to the owner of its folder; else to the user of the command: it holds password hashes.
    """
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if for_service:
            file_owners.chown_like(descriptor, path.parent)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return descriptor
        os.close(descriptor)  # another process took it for abandoned before it was locked


def _lock_path(path: Path) -> Path:
    """The lock of a database, by whichever of its names it is called."""
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}-lock")


def lock_of(path: Path) -> FileLock:
    """The lock of the database in this file."""
    return FileLock(_lock_path(path), path if path.exists() else path.parent)


@contextmanager
def start_lock(path: Path) -> Iterator[None]:
    """A lock for processes that open this file: one checks its log, and the others wait until it is done.

    Any process that may list the folder can lock it too, so the wait has a timeout.
    """
    if fcntl is None:
        yield
        return
    try:
        folder = os.open(_lock_path(path).parent, os.O_RDONLY)
    except OSError:  # a user who may not even list it; a process that writes there can
        yield
        return
    try:
        _wait_for_lock(folder, path)
        yield
    finally:
        os.close(folder)


def _wait_for_lock(folder: int, path: Path) -> None:
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
    """Whether a process has this file open to serve or to change it. The check creates and changes nothing."""
    if fcntl is None:
        return False
    with start_lock(path):
        try:
            descriptor = file_owners.open_plain(_lock_path(path))
        except FileNotFoundError:
            return False
        except OSError:
            return True  # unknown, so it is taken for served
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def restore_mark_of(path: Path) -> str:
    """The restore mark in the lock of this file, without creating one. A hard link to some file is no lock."""
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
    mark = restore_mark_of(path)
    _check_mark(mark, _lock_path(path))
    if mark:
        raise _interrupted(path)


def _interrupted(path: Path) -> CannotOpen:
    return CannotOpen(
        f"A restore of {path} was interrupted; run the same 'strongroom restore' again, which finishes it."
    )


def lock_to_serve(path: Path, check: Callable[[], None]) -> FileLock:
    """Take the lock of this file shared, to serve it. The first process runs `check` before any other has the lock."""
    with start_lock(path):
        lock = lock_of(path)
        try:
            _take(lock, path, check)
        except BaseException:
            lock.close()
            raise
    return lock


def _take(lock: FileLock, path: Path, check: Callable[[], None]) -> None:
    first = lock.exclusive()
    if first and not lock.restore_mark:
        check()
    if not lock.shared():
        raise CannotOpen(
            f"The database {path} is being restored, or another process has locked {_lock_path(path)}; "
            "start again when that is done."
        )
    if lock.restore_mark:
        raise _interrupted(path)
