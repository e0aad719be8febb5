"""A whole service out of an archive, in place of what is there: all of it or nothing, and what was there is kept.

On SQLite a new file is filled and verified beside the old one, and then takes its name; the old one keeps another. A
word in the lock says that this has begun, so that no server starts on half of it. On PostgreSQL all is one transaction:
the old tables move into a schema of their own, new ones are filled and verified, and then it is committed.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.store import turns
from strongroom.store.backup import pages_of, steps_of
from strongroom.store.copy import LINEAGE, MARKS, STEPS, Tally, tables
from strongroom.store.sides import CannotCopy, Side, opened, quoted, side, transaction

if TYPE_CHECKING:
    from strongroom.archive import Reader
    from strongroom.store.copy import Watcher
    from strongroom.store.sides import Table

_KEPT: Final = "before"
_FILES: Final = ("-wal", "-shm", "")  # of one database; the file itself is moved last


class Restored(NamedTuple):
    """What a restore has done."""

    rows: int
    kept: str | None  # where what was there before is now


async def restore(where: str, archive: Reader, epoch: str, now: int, watcher: Watcher) -> Restored:
    """Put what an archive holds in the place of what is there. The archive must have been verified before."""
    target = side("target", where)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now / 1000))
    if target.engine == "sqlite":
        return await _into_a_file(Path(target.identity), archive, epoch, now, stamp, watcher)
    return await _into_postgres(target, archive, epoch, now, stamp, watcher)


async def _into_a_file(path: Path, archive: Reader, epoch: str, now: int, stamp: str, watcher: Watcher) -> Restored:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = turns.lock_of(path)
    except OSError as error:
        raise CannotCopy(f"Cannot write beside {path}: {error.strerror}.") from None
    try:
        if not lock.alone():
            raise CannotCopy(f"A server is using {path}; stop it, and try again.")
        fresh = path.with_name(f"{path.name}.restoring")
        _remove(fresh)
        try:
            rows = await _filled(fresh, archive, epoch, now, watcher)
        except BaseException:
            _remove(fresh)
            raise
        return Restored(rows, _switch(path, fresh, lock, stamp))
    except OSError as error:
        raise CannotCopy(f"Cannot restore {path}: {error.strerror}; run the same command again.") from None
    finally:
        lock.close()


async def _filled(fresh: Path, archive: Reader, epoch: str, now: int, watcher: Watcher) -> int:
    """Fill a new file; how many rows it has."""
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    target = side("target", str(fresh))
    async with opened(target, to_fill=True):
        await target.build(steps_of(archive.manifest), now)
        await target.ask("PRAGMA journal_mode = OFF")  # half of this file is worth nothing, so nothing guards it
        await target.ask("PRAGMA synchronous = OFF")
        async with transaction(target):
            rows = await _fill(target, archive, epoch, now, watcher)
        await target.ask("PRAGMA journal_mode = WAL")
        if await target.ask("PRAGMA quick_check(1)") != [("ok",)]:
            raise CannotCopy("What was restored is not sound; the disk may be failing. Nothing was replaced.")
    with fresh.open("rb+") as file:
        os.fsync(file.fileno())
    return rows


def _switch(path: Path, fresh: Path, lock: turns.FileLock, stamp: str) -> str | None:
    """Give the old files another name and the new one theirs. Whoever is killed here finds the word in the lock."""
    stamp = lock.word or stamp
    lock.word = stamp
    kept = path.with_name(f"{path.name}.{_KEPT}-{stamp}")
    for suffix in _FILES:
        old = path.with_name(path.name + suffix)
        place = kept.with_name(kept.name + suffix)
        if old.exists() and not place.exists():
            old.rename(place)
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    lock.word = ""
    return str(kept) if kept.exists() else None


def _remove(fresh: Path) -> None:
    for suffix in _FILES:
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)


async def _into_postgres(target: Side, archive: Reader, epoch: str, now: int, stamp: str, watcher: Watcher) -> Restored:
    async with opened(target, to_fill=True):
        if not (await target.ask(turns.TRY_ALONE, turns.SERVING))[0][0]:
            raise CannotCopy(f"A server is using {target.named[4:]}; stop all nodes, and try again.")
        async with transaction(target):
            kept = await _set_aside(target, stamp)
            await target.build(steps_of(archive.manifest), now)
            rows = await _fill(target, archive, epoch, now, watcher)
            await target.settle(tables(steps_of(archive.manifest)))
    return Restored(rows, None if kept is None else f"the schema {kept}")


async def _set_aside(target: Side, stamp: str) -> str | None:
    """Move the tables of a service into a schema of their own; its name."""
    ours = {STEPS, MARKS, *_all_names()} & await target.tables()
    if not ours:
        return None
    schema = f"strongroom_{_KEPT}_{stamp.lower()}"
    await target.ask(f"CREATE SCHEMA {quoted(schema)}")
    for name in sorted(ours):
        await target.ask(f"ALTER TABLE {quoted(name)} SET SCHEMA {quoted(schema)}")
    return schema


def _all_names() -> set[str]:
    from strongroom.store.copy import LEFT_OUT

    return {*LEFT_OUT, *(table.name for table in tables())}


async def _fill(target: Side, archive: Reader, epoch: str, now: int, watcher: Watcher) -> int:
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
        seen, done = await _read_back(target, table, done, total, watcher)
        if seen != sums[name]:
            raise CannotCopy(f"{target.named} does not hold what the archive holds of {name}. Nothing was replaced.")
    if LINEAGE in wanted:
        await target.ask(f"DELETE FROM {LINEAGE}")
        await target.ask(f"INSERT INTO {LINEAGE} (id, epoch, began_at) VALUES (1, $1, $2)", epoch, now)
    return total


async def _read_back(target: Side, table: Table, done: int, total: int, watcher: Watcher) -> tuple[Tally, int]:
    seen = Tally()
    async with aclosing(target.pages(table)) as pages:
        async for page in pages:
            seen = seen.plus(page)
            done += len(page)
            watcher.moved("checking", done, total)
            await asyncio.sleep(0)
    return seen, done
