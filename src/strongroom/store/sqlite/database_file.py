"""The file under a SQLite database: how it is created and opened, and what to do when the disk fails."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import apsw

from strongroom.store import file_owners, locks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# SQLite would follow a link that took the place of a file since it was checked; folders above may be links.
READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
BUSY_MS: Final = 5_000  # how long to wait for another process that is writing
TRUNCATE_WAIT_MS: Final = 100  # how long writers may wait for the log to be truncated
CHECKPOINT_PAGES: Final = 4_000  # of the log; a page that is written often is copied into the file once in so many

DAMAGE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)  # the file or its disk cannot be trusted any more
DAMAGED_EXIT: Final = 74  # the exit code of a server that met it, as sysexits.h has it for an error of the disk

# SQLite from 3.7.0 on can corrupt a WAL database when a checkpoint and a commit meet; fixed in these.
_FIXED: Final = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


def has_wal_fault(version: str) -> bool:
    """Whether this version of SQLite can corrupt a database in WAL mode."""
    major, minor, patch = (int(part) for part in [*version.split("."), "0", "0"][:3])
    if (major, minor) >= (3, 53):
        return False
    fixed = _FIXED.get((major, minor))
    return fixed is None or patch < fixed


def make_file(path: Path, check: Callable[[], None]) -> locks.FileLock:
    """Create the file and its folder, readable by their owner only, unless a restore is at work there; its lock.

    The first process to open it runs `check`.
    """
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder; DB_PATH must name a file")
    file_owners.make_folder(path.parent)
    lock = locks.lock_to_serve(path, check)
    os.close(file_owners.open_file(path))
    return lock


def stop_process(path: Path, error: BaseException) -> None:
    """End the process, because a commit failed or pages cannot be read: what the file holds is unknown.

    With damage it ends with a code of its own: to start again at once would only meet it again.
    """
    is_damaged = isinstance(error, DAMAGE)
    said = damaged(path, error) if is_damaged else f"the database failed ({type(error).__name__})"
    try:
        os.set_blocking(2, False)  # a pipe may have no reader
        os.write(2, f"strongroom: {said.rstrip('.')}; stopping so that nothing is lost.\n".encode())
    finally:
        os._exit(1 if isinstance(error, apsw.IOError) or not is_damaged else DAMAGED_EXIT)  # a disk may come back


def damaged(path: Path, error: BaseException) -> str:
    """The warning about a file whose pages cannot be read."""
    return (
        f"The database {path} is damaged, or its disk fails ({type(error).__name__}). 'strongroom doctor' says where; "
        "'strongroom restore FILE' puts a backup in its place; 'strongroom salvage' brings what can be read into a new "
        "file."
    )


def bytes_of(path: str) -> int:
    """The size of a file; 0 if there is none."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a path made for this call only
    except FileNotFoundError:
        return 0


def connect(path: Path) -> apsw.Connection:
    """A connection with every setting that durability and safety rest on."""
    connection = apsw.Connection(str(path.parent.resolve() / path.name), flags=READ_WRITE, statementcachesize=256)
    connection.set_busy_timeout(BUSY_MS)
    # Without this promise, SQLite prepares a statement anew whenever a value that it is given changes.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    _enable_wal(connection)
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "temp_store = MEMORY",
        "secure_delete = ON",
        f"journal_size_limit = {64 * 1024 * 1024}",
        f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _enable_wal(connection: apsw.Connection) -> None:
    """Turn the write-ahead log on. SQLite does not wait here for others that open or close the file, so this does."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def connect_read_only(path: Path) -> apsw.Connection:
    """A connection that changes no file: not the database, not its log, not the index of the log.

    An ordinary one writes into the index, and the last one to close copies the log into the file. Beside a server the
    index is read as it is. Where no process has the file open, one is made in memory; without a log only the file is
    read.
    """
    if all(path.with_name(f"{path.name}{suffix}").exists() for suffix in ("-wal", "-shm")) and locks.is_served(path):
        return _read_only(path, "readonly_shm=1")
    return connect_unshared(path)


def connect_unshared(path: Path) -> apsw.Connection:
    """A read-only connection to a file that no other process has open; the index of its log is made in memory."""
    if not bytes_of(f"{path}-wal"):
        return connect_immutable(path)
    connection = _read_only(path, "vfs=unix-none")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    return connection


def connect_immutable(path: Path) -> apsw.Connection:
    """A read-only connection that ignores the log."""
    return _read_only(path, "immutable=1")


def _read_only(path: Path, how: str) -> apsw.Connection:
    name = f"file:{quote(str(path))}?{how}"
    if not bytes_of(str(path)):
        name = "file::memory:"  # SQLite deletes the log of a file that holds nothing, even where it may only read
    connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.set_busy_timeout(BUSY_MS)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def sync_folder(folder: Path) -> None:
    """Call fsync on a folder, so that the names in it are on the disk."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def vacuum(connection: apsw.Connection, folder: Path) -> None:
    """Run VACUUM with its temporary files in this folder, and truncate the log."""
    os.environ.setdefault("SQLITE_TMPDIR", str(folder))  # where the data may lie, and there is room
    connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("VACUUM")
    finally:  # also where the disk became full on the way: the log would keep the room that was left
        connection.set_busy_timeout(TRUNCATE_WAIT_MS)
        with suppress(apsw.BusyError, apsw.FullError):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
