"""Restore: replaces a database by what an archive holds, all of it or nothing; and the old database is kept.

On SQLite a new file is filled and verified beside the old one, and then takes its name; the old one keeps another. A
mark in the lock says that this has begun, so that no server starts on half of it. On PostgreSQL all is one transaction:
the old tables move into a schema of their own, new ones are filled and verified, and then it is committed.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.store import file_owners, locks
from strongroom.store.exceptions import CannotOpen
from strongroom.store.maintenance.backup import pages_of, steps_of
from strongroom.store.maintenance.copy import LINEAGE, MARKS, STEPS, Tally, read_back, tables
from strongroom.store.maintenance.copy_endpoints import endpoint, opened, transaction
from strongroom.store.maintenance.endpoint_protocol import CannotCopy, CopyEndpoint, quoted
from strongroom.store.sqlite import database_file, log_recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.archive import Reader
    from strongroom.store.maintenance.copy import Watcher

_USERS: Final = "users"
_KEPT: Final = "before"
_FILES: Final = ("-wal", "-shm", "")  # of one database; the file itself is moved last


class Restored(NamedTuple):
    """The result of a restore."""

    rows: int
    into: str  # which database that was, without a password
    kept: str | None  # where the old database is now
    warning: str | None = None


async def check_target(where: str, *, new: bool) -> Path:
    """Refuse what `restore` would refuse, before anything is read; a folder near the database, for a large file."""
    target = endpoint("target", where)
    if target.engine == "sqlite":
        path = Path(target.identity)
        if not locks.restore_mark_of(path):  # else the same command goes on with an interrupted restore
            _refuse_target(path, await _holds_accounts(target) if new else target.exists, new=new)
        return next(folder for folder in path.parents if folder.is_dir())
    async with opened(target, to_fill=True):
        _refuse_target(target.identity, await (_has_users(target) if new else _has_our_tables(target)), new=new)
    return Path(gettempdir())


async def _holds_accounts(target: CopyEndpoint) -> bool:
    """Whether a file has accounts; one that cannot be read may have some. A server that was started once left none."""
    if not target.exists:
        return False
    try:
        async with opened(target, to_fill=False):
            return await _has_users(target)
    except (CannotCopy, CannotOpen):
        return True


async def _has_users(target: CopyEndpoint) -> bool:
    return _USERS in await target.tables() and bool(await target.query(f"SELECT 1 FROM {_USERS} LIMIT 1"))


async def _has_our_tables(target: CopyEndpoint) -> bool:
    return bool(await _our_tables(target))


def _refuse_target(named: object, there: bool, *, new: bool) -> None:  # noqa: FBT001 - a fact, no option
    if there and new:
        raise CannotCopy(
            f"There is a database with accounts already: {named}. Nothing was restored. Leave out --new to replace it; "
            "what is there is then kept beside the new one."
        )
    if not there and not new:
        raise CannotCopy(
            f"There is no database to replace: {named} is not there, or empty. Nothing was restored. If the service "
            "keeps its data elsewhere, say where: by DB_PATH or DATABASE_URL in the environment or in the settings "
            "file that the server reads, or by --db-path; 'strongroom config' shows what counts here. To make a new "
            "database there, say --new."
        )


async def restore(
    where: str, archive: Reader, epoch: str, now: int, watcher: Watcher, *, new: bool = False
) -> Restored:
    """Replace the database by what an archive holds. The archive must have been verified before."""
    await check_target(where, new=new)
    target = endpoint("target", where)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now / 1000))
    if target.engine == "sqlite":
        return await _into_a_file(Path(target.identity), archive, epoch, now, stamp, watcher)
    return await _into_postgres(target, archive, epoch, now, stamp, watcher)


async def _into_a_file(path: Path, archive: Reader, epoch: str, now: int, stamp: str, watcher: Watcher) -> Restored:
    is_folder_new = not path.parent.exists()
    try:
        file_owners.make_folder(path.parent)
        lock = locks.lock_of(path)
    except OSError as error:
        how = f" As root: install -d -m 0700 -o USER -g USER {path.parent}, for the service's user."
        needs_root = isinstance(error, PermissionError) and is_folder_new
        raise CannotCopy(f"Cannot write beside {path}: {error.strerror}.{how if needs_root else ''}") from None
    try:
        if not lock.exclusive():
            raise CannotCopy(f"A server is using {path}; stop it, and try again.")
        _ = lock.restore_mark  # one that no restore wrote is refused before anything is made
        fresh = path.with_name(f"{path.name}.restoring")
        _remove(fresh)
        owner = file_owners.owner_of(path)
        try:
            rows = await _filled(fresh, path if owner is not None else None, archive, epoch, now, watcher)
        except BaseException:
            _remove(fresh)
            raise
        aside = _switch(path, fresh, lock, stamp)
        return Restored(rows, str(path), aside, _of_root(path) if is_folder_new else _of_another(path, owner))
    except OSError as error:
        raise CannotCopy(f"Cannot restore {path}: {error.strerror}; run the same command again.") from None
    finally:
        lock.close()


def _of_another(path: Path, owner: int | None) -> str | None:
    """A warning, where the file has another owner than the one that it replaces."""
    mine = file_owners.owner_of(path)
    if owner is None or mine == owner:
        return None
    return (
        f"{path} belongs to user {mine}, and what it replaces belonged to user {owner}, who may not be able to open "
        f"it; run as root: chown {owner} {path}"
    )


def _of_root(path: Path) -> str | None:
    """A warning, where root had to create the folder, and it belongs to root as the one above it does."""
    if not file_owners.is_root() or file_owners.owner_of(path.parent):
        return None
    return (
        f"{path.parent} was not there; it and {path.name} belong to root, and a service that runs as another user "
        f"cannot open them; for the user strongroom, type: chown -R strongroom: {path.parent}"
    )


async def _filled(fresh: Path, like: Path | None, archive: Reader, epoch: str, now: int, watcher: Watcher) -> int:
    """Make a new file and fill it; how many rows it has. Another that takes its name meanwhile is not taken for it."""
    descriptor = file_owners.make_file(fresh, like)
    try:
        rows = await _rows_in(fresh, archive, epoch, now, watcher)
        if not file_owners.is_same(descriptor, fresh):
            raise _replaced(fresh)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)  # not before SQLite has closed it: its locks would go with the first descriptor
    return rows


def _replaced(fresh: Path) -> CannotCopy:
    return CannotCopy(f"Another file took the place of {fresh} while it was filled. Nothing was restored.")


async def _rows_in(fresh: Path, archive: Reader, epoch: str, now: int, watcher: Watcher) -> int:
    target = endpoint("target", str(fresh))
    if target.identity != str(fresh):  # a link, by now
        raise _replaced(fresh)
    async with opened(target, to_fill=True):
        await target.build(steps_of(archive.manifest), now)
        await target.query("PRAGMA journal_mode = OFF")  # half of this file is worth nothing, so nothing guards it
        await target.query("PRAGMA synchronous = OFF")
        async with transaction(target):
            rows = await _fill(target, archive, epoch, now, watcher)
        await target.query("PRAGMA journal_mode = WAL")
        if await target.query("PRAGMA quick_check(1)") != [("ok",)]:
            raise CannotCopy("What was restored is not sound; the disk may be failing. Nothing was replaced.")
    return rows


def _switch(path: Path, fresh: Path, lock: locks.FileLock, stamp: str) -> str | None:
    """Rename the old files, and give the new one their name. After a kill here the mark in the lock remains."""
    if not lock.restore_mark:
        lock.restore_mark = _unused(stamp, lambda stamp: _kept_as(path, stamp).exists())
    aside = _kept_as(path, lock.restore_mark)
    log_recovery.finish(path)
    for suffix in _FILES:
        old = path.with_name(path.name + suffix)
        renamed = aside.with_name(aside.name + suffix)
        if old.exists() and not renamed.exists():
            old.rename(renamed)
    fresh.rename(path)
    database_file.sync_folder(path.parent)
    lock.restore_mark = ""
    return str(aside) if aside.exists() else None


def _kept_as(path: Path, stamp: str) -> Path:
    return path.with_name(f"{path.name}.{_KEPT}-{stamp}")


def _unused(stamp: str, is_taken: Callable[[str], bool]) -> str:
    """A name for what is replaced: two restores within one second have two."""
    names = itertools.chain([stamp], (f"{stamp}-{number}" for number in itertools.count(2)))
    return next(name for name in names if not is_taken(name))


def _remove(fresh: Path) -> None:
    for suffix in _FILES:
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)


async def _into_postgres(
    target: CopyEndpoint, archive: Reader, epoch: str, now: int, stamp: str, watcher: Watcher
) -> Restored:
    async with opened(target, to_fill=True):
        if not (await target.query(locks.TRY_EXCLUSIVE, locks.SERVING))[0][0]:
            raise CannotCopy(f"A server is using {target.named[4:]}; stop all nodes, and try again.")
        async with transaction(target):
            aside = await _set_aside(target, stamp)
            await target.build(steps_of(archive.manifest), now)
            rows = await _fill(target, archive, epoch, now, watcher)
            await target.update_statistics(tables(steps_of(archive.manifest)))
    return Restored(rows, target.identity, None if aside is None else f"the schema {aside}")


async def begin_epoch(where: str, epoch: str, now: int) -> tuple[str, str]:
    """Begin another lineage on what is there; where that is, and the epoch before. No server may run meanwhile."""
    target = endpoint("database", where)
    if target.engine == "sqlite":
        try:
            locks.refuse_interrupted(Path(target.identity))
            if not target.exists:
                raise CannotCopy(f"{target.named} does not exist; say where it is with DB_PATH or --db-path.")
            lock = locks.lock_of(Path(target.identity))
            if not lock.exclusive() or lock.restore_mark:
                raise CannotCopy(f"{target.named} is served, or is being restored; stop the server, and try again.")
            log_recovery.refuse(Path(target.identity))
        except OSError as error:
            raise CannotCopy(f"{target.named} cannot be locked: {error.strerror}.") from None
        except CannotOpen as error:
            raise CannotCopy(str(error)) from None
    async with opened(target, to_fill=True):
        if target.engine != "sqlite" and not (await target.query(locks.TRY_EXCLUSIVE, locks.SERVING))[0][0]:
            raise CannotCopy(f"A server is using {target.named[4:]}; stop all nodes, and try again.")
        if LINEAGE not in await target.tables():
            raise CannotCopy(f"{target.named} has no epoch; bring its schema up to date first: strongroom db migrate")
        async with transaction(target):
            before = await target.query(f"SELECT epoch FROM {LINEAGE}")
            await _begin_lineage(target, epoch, now)
    return target.identity, before[0][0] if before else "none"


async def _begin_lineage(target: CopyEndpoint, epoch: str, now: int) -> None:
    await target.query(f"DELETE FROM {LINEAGE}")
    await target.query(f"INSERT INTO {LINEAGE} (id, epoch, began_at) VALUES (1, $1, $2)", epoch, now)


async def _our_tables(target: CopyEndpoint) -> set[str]:
    return {STEPS, MARKS, *_all_names()} & await target.tables()


async def _set_aside(target: CopyEndpoint, stamp: str) -> str | None:
    """Move the tables of a service into a schema of their own; its name."""
    ours = await _our_tables(target)
    if not ours:
        return None
    schemas = {name for (name,) in await target.query("SELECT nspname FROM pg_namespace")}
    begin = f"strongroom_{_KEPT}_"
    schema = begin + _unused(stamp.lower(), lambda name: begin + name in schemas)
    await target.query(f"CREATE SCHEMA {quoted(schema)}")
    for name in sorted(ours):
        await target.query(f"ALTER TABLE {quoted(name)} SET SCHEMA {quoted(schema)}")
    return schema


def _all_names() -> set[str]:
    from strongroom.store.maintenance.copy import LEFT_OUT

    return {*LEFT_OUT, *(table.name for table in tables())}


async def _fill(target: CopyEndpoint, archive: Reader, epoch: str, now: int, watcher: Watcher) -> int:
    """Write all rows, read them back, begin a new lineage. In one transaction, so that half of it never counts."""
    wanted = {table.name: table for table in tables(steps_of(archive.manifest))}
    sums = dict.fromkeys(wanted, Tally())
    total = archive.manifest.rows
    done = 0
    for name, page in pages_of(archive, list(wanted.values())):
        await target.add(wanted[name], page)
        sums[name] = sums[name].plus(page)
        done += len(page)
        watcher.moved("restoring", done, total)
        await asyncio.sleep(0)
    done = 0
    for name, table in wanted.items():
        seen = await read_back(target, table, lambda rows: watcher.moved("checking", rows, total), done)
        done += seen.rows
        if seen != sums[name]:
            raise CannotCopy(f"{target.named} does not hold what the archive holds of {name}. Nothing was replaced.")
    if LINEAGE in wanted:
        await _begin_lineage(target, epoch, now)
    return total
