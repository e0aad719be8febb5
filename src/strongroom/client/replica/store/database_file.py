"""The file of a replica: created for its owner alone, checked and opened; and the lock of the one that writes."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

import apsw

from strongroom.client.replica.store.schema import FORMAT, SCHEMA, is_empty, require_format
from strongroom.errors import Invalid

_DAMAGED: Final = "Move it away, open a new one and sync; what was not sent yet is in the damaged file alone"
# Each page costs several system calls on its way through the log, and documents of 1 KB leave small ones half empty.
# A file keeps the size that it was made with.
_PAGE_BYTES: Final = 8_192


def damaged(path: Path) -> Invalid:
    """The refusal of a file that is damaged, or was changed."""
    return Invalid({"path": f"is a replica that is damaged: {path.name}. {_DAMAGED}"})


def create(path: Path) -> None:
    """Create a file with access for its owner only, if there is none.

    A file that exists is not opened here: closing it would end the locks that SQLite holds on it in this process.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise Invalid({"path": _unopened(path, error)}) from None


def take_writer_lock(path: Path) -> apsw.Connection | None:
    """The lock of the one process that writes; None where another one has it."""
    beside = path.with_name(f"{path.name}-lock")
    create(beside)
    require_private(beside)
    lock = apsw.Connection(str(beside))
    lock.set_busy_timeout(0)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        lock.close()
        return None
    except apsw.Error as error:
        lock.close()
        raise Invalid({"path": f"cannot be locked: {beside.name}: {_said(error)}"}) from None
    return lock


def require_private(path: Path) -> None:
    """Refuse what is not a file of one's own; take away what others may do with it."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise Invalid({"path": _unopened(path, error)}) from None
    wrong = None if os.access(path, os.R_OK | os.W_OK) else errno.EACCES
    wrong = errno.ELOOP if stat.S_ISLNK(mode) else errno.EISDIR if stat.S_ISDIR(mode) else wrong
    if wrong is not None:
        raise Invalid({"path": _unopened(path, OSError(wrong, os.strerror(wrong)))})


def open_file(path: Path, *, writes: bool) -> apsw.Connection:
    """Open the file; the writer makes its tables if there are none."""
    require_private(path)
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(1_000)
    try:
        if writes:
            if not is_empty(db):
                require_format(db, path)  # before anything in the file is changed
            db.execute(f"PRAGMA page_size = {_PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            erase_deleted(db)
            db.execute("BEGIN IMMEDIATE")
            if is_empty(db):
                db.execute(SCHEMA)
                db.execute("INSERT INTO facts (name, value) VALUES ('format', ?)", (FORMAT,))
            db.execute("COMMIT")
        else:
            db.execute("PRAGMA query_only = 1; PRAGMA synchronous = FULL")
            require_format(db, path)
    except apsw.BusyError:
        db.close()
        raise Invalid({"path": "is in use by another program"}) from None
    except apsw.NotADBError:
        db.close()
        raise Invalid({"path": f"is not a replica: {path.name} is another file. It was not changed"}) from None
    except apsw.CorruptError:
        db.close()
        raise damaged(path) from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError) as error:
        db.close()
        raise Invalid({"path": f"cannot be used: {path.name}: {_said(error)}"}) from None
    except BaseException:
        db.close()
        raise
    return db


def erase_deleted(db: apsw.Connection) -> None:
    """Have what is deleted or replaced overwritten in the file; in its log it stays until that is truncated."""
    db.execute("PRAGMA secure_delete = ON")


def truncate_log(db: apsw.Connection) -> bool:
    """Move the log into the file and leave nothing in it; False where somebody reads it just now, or the disk fails."""
    try:
        return not next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))[0]
    except apsw.Error:
        return False  # what was committed stands; whoever calls this tries again


def _said(error: apsw.Error) -> str:
    """An error of SQLite, or what it means for the disk."""
    meant = {apsw.FullError: "the disk is full", apsw.ReadOnlyError: "the disk is read-only"}
    return meant.get(type(error), "the disk is full, or has a fault" if isinstance(error, apsw.IOError) else str(error))


def _unopened(path: Path, error: OSError) -> str:
    """Why a file cannot be opened."""
    if error.errno == errno.EISDIR:
        return f"is a folder: {path.name}; a replica is a file"
    if error.errno == errno.ENOENT and path.parent.is_dir():
        return f"does not exist: {path.name}"
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return f"is in a folder that does not exist: {path.parent}"
    if error.errno == errno.ELOOP:
        return f"is a symbolic link: {path.name}; name the file itself"
    return f"cannot be opened: {path.name}: {error.strerror or 'unknown error'}"
