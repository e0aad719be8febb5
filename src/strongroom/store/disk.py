"""The file under a SQLite database: how it is made, and what to do when the disk fails."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

from strongroom.store import turns

if TYPE_CHECKING:
    from pathlib import Path


def make_file(path: Path) -> turns.FileLock:
    """Make the file and its folder, readable by their owner only, unless a restore is at work there; its lock."""
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder; DB_PATH must name a file")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = turns.served(path)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
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


def write_anew(connection: apsw.Connection, folder: Path, wait_ms: int) -> None:
    """Write the whole database again without its gaps, in this folder, and fold its log."""
    os.environ.setdefault("SQLITE_TMPDIR", str(folder))  # where the data may lie, and there is room
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("VACUUM")
    connection.set_busy_timeout(wait_ms)
    with suppress(apsw.BusyError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
