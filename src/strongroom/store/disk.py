"""The file under a SQLite database: how it is made and opened, and what to do when the disk fails."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import apsw

from strongroom.store import owners, turns

if TYPE_CHECKING:
    from pathlib import Path


BUSY_MS: Final = 5_000  # how long to wait for another process that is writing
CHECKPOINT_PAGES: Final = 4_000  # of the log; a page that is written often is copied into the file once in so many

# SQLite from 3.7.0 on can corrupt a WAL database when a checkpoint and a commit meet; fixed in these.
_FIXED: Final = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


def has_wal_fault(version: str) -> bool:
    """Whether this version of SQLite can corrupt a database in WAL mode."""
    major, minor, patch = (int(part) for part in [*version.split("."), "0", "0"][:3])
    if (major, minor) >= (3, 53):
        return False
    fixed = _FIXED.get((major, minor))
    return fixed is None or patch < fixed


def make_file(path: Path) -> turns.FileLock:
    """Make the file and its folder, readable by their owner only, unless a restore is at work there; its lock."""
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder; DB_PATH must name a file")
    owners.make_folder(path.parent)
    lock = turns.served(path)
    os.close(owners.open_file(path))
    return lock


def stop_process(error: BaseException) -> None:
    """The disk failed under a commit: what the file holds now is unknown to this process, so it must not go on."""
    os.write(
        2, f"strongroom: the database failed ({type(error).__name__}); stopping so that nothing is lost.\n".encode()
    )
    os._exit(1)


def bytes_of(path: str) -> int:
    """How large a file is; one that is not there has none."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a path made for one question
    except FileNotFoundError:
        return 0


def connect(path: Path) -> apsw.Connection:
    """A connection with every setting that durability and safety rest on."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=256)
    connection.set_busy_timeout(BUSY_MS)
    # Without this promise, SQLite prepares a statement anew whenever a value that it is given changes.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for pragma in (
        "journal_mode = WAL",
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


def write_anew(connection: apsw.Connection, folder: Path, wait_ms: int) -> None:
    """Write the whole database again without its gaps, in this folder, and fold its log."""
    os.environ.setdefault("SQLITE_TMPDIR", str(folder))  # where the data may lie, and there is room
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("VACUUM")
    connection.set_busy_timeout(wait_ms)
    with suppress(apsw.BusyError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
