"""The file under a SQLite database: how it is made, and what to do when the disk fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

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
