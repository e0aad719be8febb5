"""Recovers from a damaged write-ahead log: it is set aside, and the database goes on with what can be read.

The first process that opens a database to serve it checks its log before SQLite does (write_ahead_log.py). A damaged
one is copied beside the file; then the last sound state is searched: the file with the readable part of the log, or the
file alone, where the log had been copied into it further than it can be read. It gets a new epoch, so that every client
learns that the server may have gone back in time. Until all of that is done the copy has the name of one that is
pending, so that after a kill the next start does it again.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import apsw

from strongroom.store import file_owners
from strongroom.store.exceptions import CannotOpen
from strongroom.store.sqlite import database_file, write_ahead_log

if TYPE_CHECKING:
    from pathlib import Path

    from strongroom.store.sqlite.write_ahead_log import LogState

_PART: Final = ".part"  # a copy that is not whole yet
_PENDING: Final = ".pending"  # a whole copy of a log that is still to be dealt with
_SALVAGE: Final = "'strongroom salvage' brings what can be read into a new file"


def inspect(path: Path) -> LogState:
    """Inspect the log of a database that no process has open; one whose recovery is unfinished counts as damaged."""
    log = write_ahead_log.inspect(path)
    return log._replace(damaged=True) if _kept(path, _PENDING) else log


def refuse(path: Path) -> None:
    """Refuse a database whose log is damaged: only a server decides to go on without what is lost."""
    log = inspect(path)
    if log.damaged:
        raise CannotOpen(
            f"The write-ahead log of {path} is damaged: {log.readable} of {log.frames} frames can be read. "
            "'strongroom serve' keeps it aside and goes on with what can be read; "
            f"'strongroom restore FILE' puts a backup in its place; {_SALVAGE}."
        )


def kept_logs(path: Path) -> list[Path]:
    """The damaged logs that were set aside beside this file."""
    return [one for one in _kept(path, "") if not one.name.endswith((_PART, _PENDING))]


def recover(path: Path, now: int) -> str | None:
    """Set a damaged log aside and begin a new lineage; the notice for the operator, or None if it is not damaged."""
    log = inspect(path)
    if not log.damaged:
        return None
    pending = _set_aside(path, now)
    with_log = _sound_state(path, log, pending)
    if with_log:
        _keep_file(path, pending)
    else:
        _truncate(path.with_name(f"{path.name}-wal"))
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    connection = database_file.connect(path)
    try:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'lineage'").fetchall():
            connection.execute("DELETE FROM lineage")  # the server begins another when it finds none
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()
    aside = pending.with_name(pending.name.removesuffix(_PENDING))
    pending.rename(aside)
    database_file.sync_folder(path.parent)
    return (
        f"The write-ahead log of {path} was damaged: {log.readable} of {log.frames} frames could be read, and what was "
        f"written after them may be missing. The log is kept as {aside}. Clients notice by a new epoch and send again "
        f"what they have; 'strongroom salvage {path} TARGET --log {aside}' may bring out more."
    )


def _kept(path: Path, suffix: str) -> list[Path]:
    return sorted(path.parent.glob(f"{glob.escape(path.name)}-wal.damaged-*{suffix}"))


def finish(path: Path) -> None:
    """Finish the recovery of an earlier start by renaming its copies: the file is about to be replaced."""
    for pending in _kept(path, _PENDING):
        pending.rename(pending.with_name(pending.name.removesuffix(_PENDING)))


def _set_aside(path: Path, now: int) -> Path:
    """Copy the log beside itself, readable by its owner only; an earlier start may have done so."""
    for half in _kept(path, _PART):
        half.unlink()
    for pending in _kept(path, _PENDING):
        return pending
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now / 1000))
    name = path.with_name(f"{path.name}-wal.damaged-{stamp}")
    number = 1
    while name.exists():
        number += 1
        name = name.with_name(f"{path.name}-wal.damaged-{stamp}-{number}")
    half, pending = name.with_name(name.name + _PART), name.with_name(name.name + _PENDING)
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        with suppress(FileNotFoundError), path.with_name(f"{path.name}-wal").open("rb") as source:
            shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    half.rename(pending)
    database_file.sync_folder(path.parent)
    return pending


def _keep_file(path: Path, pending: Path) -> Path:
    """Copy the file itself too, before pages of a damaged log are put into it."""
    stamp = pending.name.removesuffix(_PENDING).rpartition(".damaged-")[2]
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    half = aside.with_name(f"{aside.name}{_PART}")
    if aside.exists():  # of an earlier start, which had not begun to change anything
        return aside
    half.unlink(missing_ok=True)
    try:
        with os.fdopen(file_owners.make_file(half), "wb") as target, path.open("rb") as source:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
    except OSError as error:
        half.unlink(missing_ok=True)
        raise CannotOpen(
            f"The write-ahead log of {path} is damaged, and the file cannot be copied before it is recovered: "
            f"{error.strerror}. Make room beside it, and start again; nothing was changed."
        ) from None
    half.rename(aside)
    database_file.sync_folder(path.parent)
    return aside


def _sound_state(path: Path, log: LogState, pending: Path) -> bool:
    """Whether the file goes on with the readable part of its log, or without any; refused if it is sound with neither.

    A log that was copied into the file further than it can be read would put old pages over new ones.
    """
    further = (log.copied is not None and log.copied >= log.readable) or _holds_readable(path, log)
    for with_log in (False, True) if further else (True, False):
        if _is_sound(path, with_log=with_log):
            return with_log
    with suppress(OSError):
        pending.unlink()  # the log itself is still there, untouched
    raise CannotOpen(
        f"The write-ahead log of {path} is damaged: {log.readable} of {log.frames} frames can be read, and the "
        "database is not sound with them nor without them. Nothing was changed. 'strongroom restore FILE' puts a "
        f"backup in its place, and keeps this; {_SALVAGE}."
    )


def _holds_readable(path: Path, log: LogState) -> bool:
    """Whether the file holds all that the readable part of the log does, or later pages: then it needs no log.

    A page that is none of both may be of a frame that cannot be read; it is taken for one only where other pages show
    that frames behind the damage were copied.
    """
    newest: dict[int, bytes] = {}
    later: dict[int, set[bytes]] = {}
    verified = 0
    with suppress(FileNotFoundError):
        for frame, content in write_ahead_log.verified_frames(path.with_name(f"{path.name}-wal"), path):
            digest = hashlib.sha256(content).digest()
            if frame.number <= log.readable:
                newest[frame.page] = digest
            else:
                verified += 1
                later.setdefault(frame.page, set()).add(digest)
    size, missing, evidence = write_ahead_log.page_size(path), 0, False
    with path.open("rb") as file:
        for page, digest in newest.items():
            file.seek((page - 1) * size)
            here = hashlib.sha256(file.read(size)).digest()
            if here != digest:
                evidence = evidence or here in later.get(page, ())
                missing += here not in later.get(page, ())
    return not missing or (evidence and missing <= log.frames - log.readable - verified)


def _is_sound(path: Path, *, with_log: bool) -> bool:
    """Whether a state of the database holds together in all its pages, indexes and references, and is one of ours."""
    try:
        connection = database_file.connect_unshared(path) if with_log else database_file.connect_immutable(path)
        try:
            return (
                connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
                and not connection.execute("PRAGMA foreign_key_check").fetchall()
                and bool(connection.execute("SELECT 1 FROM schema_migrations LIMIT 1").fetchall())
            )
        finally:
            connection.close()
    except (apsw.Error, UnicodeDecodeError):
        return False


def _truncate(log: Path) -> None:
    with suppress(FileNotFoundError), os.fdopen(file_owners.open_plain(log, os.O_RDWR), "rb+") as file:
        file.truncate(0)
        os.fsync(file.fileno())
