"""Copies a whole database into another, whichever engines are behind them.

The source is locked against writing and read once, from the first row to the last. A page of rows is committed on the
target together with a mark: how many rows of the table are there now, and the sum of their hashes. After a kill the
source is read from its first row again; what a mark covers must give the mark's sum, and what follows is copied. So no
row comes twice, and a source that has changed in between is always noticed: then the half copy is emptied and begun
anew. At the end the target is locked and read back, and must give the same sums as the source.

A sum of hashes does not depend on the order of the rows: two databases may sort the same texts differently.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing, suppress
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import apsw
import msgspec

from strongroom.store import migrations, open_database
from strongroom.store.exceptions import CannotOpen
from strongroom.store.maintenance.copy_endpoints import endpoint, opened, transaction
from strongroom.store.maintenance.endpoint_protocol import CannotCopy, CopyEndpoint, Row, Table, quoted
from strongroom.store.sqlite.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from strongroom.store.migrations import Migration

__all__ = ["LEFT_OUT", "CannotCopy", "Watcher", "copy", "tables"]

# Tables whose rows are forgotten soon in any case, and should be in no copy that outlives them.
LEFT_OUT: Final = {
    "failures": "wrong passwords, tokens and keys of the last day, counted by address",
    "signups": "registrations of the last hour, counted by address",
    "key_shares": "shares of the keys of saved sessions, which the next unlock replaces",
}
STEPS: Final = "schema_migrations"  # each database records the steps of its own schema
LINEAGE: Final = "lineage"
_OF_VAULTS: Final = ("documents", "blob_versions")  # no reference says so: a deleted vault's wait for their deletion
_OWN: Final = (LINEAGE, "secrets")  # an empty target may have begun its own; the copy goes on with the source's
MARKS: Final = "copy_progress"  # a table of the target, for as long as the copy is not whole


class Watcher(Protocol):
    """Receives the progress of a copy, a backup or a restore."""

    def moved(self, doing: str, done: int, total: int) -> None:
        """So many rows of so many are done."""

    def said(self, sentence: str) -> None:
        """Something that the operator should know."""

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        """Both sides hold the same rows, so many of each table on either side.

        Called before the commit that makes the target whole: after a kill in between, the next run calls it again.
        """


class Tally(NamedTuple):
    """A number of rows, and the sum of their hashes."""

    rows: int = 0
    sum: int = 0

    def plus(self, rows: Iterable[Row]) -> Tally:
        """With these rows as well. MessagePack gives a row one spelling, and no two rows the same."""
        count, total = self
        for row in rows:
            count += 1
            total += int.from_bytes(hashlib.sha256(msgspec.msgpack.encode(row)).digest())
        return Tally(count, total % 2**256)


class _Changed(Exception):  # noqa: N818 - a reason to begin again
    """The source does not hold what was copied from it before."""


def tables(steps: list[Migration] | None = None) -> list[Table]:
    """All tables that the migrations make but for those left out; a table comes after those that it refers to."""
    return list(_tables(tuple(steps or migrations.load())))


@lru_cache(maxsize=2)
def _tables(steps: tuple[Migration, ...]) -> tuple[Table, ...]:
    """The tables of these migrations, which are run in memory to see."""
    scratch = apsw.Connection(":memory:")
    migrate(scratch, 0, list(steps))
    found: dict[str, Table] = {}
    parents: dict[str, set[str]] = {}
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY name"
    for name in [str(row[0]) for row in scratch.execute(names)]:
        if name in {STEPS, *LEFT_OUT}:
            continue
        columns: list[Any] = scratch.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
        key = sorted((position, column) for column, _, position in columns if position)
        if not key:
            raise LookupError(f"{name} has no primary key to copy it by: give it one, or leave it out with a reason")
        found[name] = Table(
            name=name,
            columns=tuple(column for column, _, _ in columns),
            texts=tuple(column for column, kind, _ in columns if kind == "TEXT"),
            key=tuple(column for _, column in key),
        )
        references = scratch.execute('SELECT "table" FROM pragma_foreign_key_list(?)', (name,))
        parents[name] = {str(row[0]) for row in references} | ({"vaults"} if name in _OF_VAULTS else set())
    scratch.close()
    return tuple(found[name] for name in TopologicalSorter(parents).static_order() if name in found)


async def copy(source_address: str, target_address: str, clock: Callable[[], int], watcher: Watcher) -> None:
    """Copy a whole service, or go on where a copy was interrupted; returns when both sides are known to agree."""
    source, target = endpoint("source", source_address), endpoint("target", target_address)
    if source.identity == target.identity or _same_file(source, target):
        raise CannotCopy("The source and the target are the same database.")
    wanted = tables()
    async with opened(source):
        await _refuse_an_older_schema(source)
        async with transaction(source, source.begin_reading):
            await source.lock([*(table.name for table in wanted), STEPS])
            begun = target.exists and await _is_begun(source, target, wanted)
            if not begun:
                with target.translate_errors():
                    await open_database(target_address, clock).close()
            async with opened(target, to_fill=True):
                if not begun:
                    await _begin(source, target, wanted, clock())
                sums = await _fill_from_the_mark(source, target, wanted, watcher)
                await target.update_statistics(wanted)
                await _verify(target, wanted, sums, watcher)


def _same_file(source: CopyEndpoint, target: CopyEndpoint) -> bool:
    """Whether two paths lead to one file, through a link for instance."""
    with suppress(OSError):
        return Path(source.identity).samefile(target.identity)
    return False


async def schema_of(source: CopyEndpoint) -> list[Migration]:
    """The steps that a database has taken. One that this program does not know is refused."""
    if STEPS not in await source.tables():
        raise CannotCopy(f"{source.named} is not a database of strongroom.")
    known = migrations.load()
    applied: dict[int, str] = dict(await source.query(f"SELECT number, checksum FROM {STEPS}"))
    try:
        migrations.check(known, applied)
    except CannotOpen as error:
        raise CannotCopy(f"{source.named} cannot be copied: {error}") from None
    return [step for step in known if step.number in applied]


async def _refuse_an_older_schema(source: CopyEndpoint) -> None:
    """Refuse a source whose schema is not the one of this program. A source is never migrated."""
    steps, known = await schema_of(source), migrations.load()
    if len(steps) < len(known):
        number = steps[-1].number if steps else 0
        raise CannotCopy(
            f"{source.named} has schema {number}, this program has {known[-1].number}; "
            "start the server on it once, which brings it up to date, and copy then."
        )


async def _is_begun(source: CopyEndpoint, target: CopyEndpoint, wanted: Sequence[Table]) -> bool:
    """Whether the target holds half of a copy from this source. If not, it must be empty; it is not touched here."""
    async with opened(target):
        there = await target.tables()
        if MARKS in there:
            begun_from = (await target.query(f"SELECT source FROM {MARKS} LIMIT 1"))[0][0]
            if begun_from != source.identity:
                raise CannotCopy(
                    f"{target.named} holds half of a copy from {begun_from}; name that source, or an empty target."
                )
            applied = set(await target.query(f"SELECT number, checksum FROM {STEPS}"))
            known = {(step.number, step.checksum) for step in migrations.load()}
            if applied != known | {(migrations.HALF_COPIED, "")}:
                raise CannotCopy(
                    f"{target.named} holds half of a copy that another release of strongroom began; "
                    "name an empty target."
                )
            return True
        foreign = STEPS not in there
        for table in wanted:
            if (
                table.name not in _OWN
                and table.name in there
                and (foreign or await target.query(f"SELECT 1 FROM {quoted(table.name)} LIMIT 1"))
            ):
                raise CannotCopy(f"{target.named} is not empty; name one that is, for nothing is ever written over.")
        return False


async def _begin(source: CopyEndpoint, target: CopyEndpoint, wanted: Sequence[Table], now: int) -> None:
    """Make the marks, and with them the sign that keeps servers from opening half of a copy."""
    async with transaction(target):
        await target.query(
            f"CREATE TABLE {MARKS}"
            " (name TEXT PRIMARY KEY, source TEXT NOT NULL, copied BIGINT NOT NULL, hashes TEXT NOT NULL)"
        )
        for name in _OWN:
            await target.query(f"DELETE FROM {name}")
        for table in wanted:
            await target.query(f"INSERT INTO {MARKS} VALUES ($1, $2, 0, '0')", table.name, source.identity)
        await target.query(f"INSERT INTO {STEPS} VALUES ($1, 'half a copy', '', $2)", migrations.HALF_COPIED, now)


async def _fill_from_the_mark(
    source: CopyEndpoint, target: CopyEndpoint, wanted: Sequence[Table], watcher: Watcher
) -> dict[str, Tally]:
    """Copy what is not there yet. What the source holds altogether, by table."""
    try:
        return await _fill(source, target, wanted, watcher)
    except _Changed:
        watcher.said("The source has changed since the copy was begun; starting over.")
        async with transaction(target):
            await target.empty(wanted)
            await target.query(f"UPDATE {MARKS} SET copied = 0, hashes = '0'")
        return await _fill(source, target, wanted, watcher)


async def _fill(
    source: CopyEndpoint, target: CopyEndpoint, wanted: Sequence[Table], watcher: Watcher
) -> dict[str, Tally]:
    found = await target.query(f"SELECT name, copied, hashes FROM {MARKS}")
    marks = {name: Tally(copied, int(hashes, 16)) for name, copied, hashes in found}
    total = sum([(await source.query(f"SELECT count(*) FROM {quoted(table.name)}"))[0][0] for table in wanted])
    done = 0
    sums: dict[str, Tally] = {}
    for table in wanted:
        mark, seen = marks[table.name], Tally()
        async with aclosing(source.pages(table)) as pages:
            async for page in pages:
                known = page[: max(0, mark.rows - seen.rows)]
                fresh = page[len(known) :]
                seen = seen.plus(known)
                if known and seen.rows == mark.rows and seen != mark:
                    raise _Changed
                if fresh:
                    before, seen = seen, seen.plus(fresh)
                    await _put(target, table, fresh, before, seen)
                done += len(page)
                watcher.moved("copying", done, total)
                await asyncio.sleep(0)  # lets an interrupt in: SQLite alone never waits for anything
        if seen.rows < mark.rows:
            raise _Changed
        sums[table.name] = seen
    return sums


async def _put(target: CopyEndpoint, table: Table, page: Sequence[Row], before: Tally, after: Tally) -> None:
    """Write a page, and move the mark from where it must be to where it is then, in one transaction."""
    async with transaction(target):
        moved = await target.query(
            f"UPDATE {MARKS} SET copied = $1, hashes = $2 WHERE name = $3 AND copied = $4 RETURNING copied",
            after.rows,
            f"{after.sum:x}",
            table.name,
            before.rows,
        )
        if not moved:
            raise CannotCopy(f"{target.named} is being filled by another copy; let that one finish.")
        await target.add(table, page)


async def read_back(target: CopyEndpoint, table: Table, progress: Callable[[int], None], done: int) -> Tally:
    """The tally of a table that was filled; `progress` is called with the rows read, after `done` of other tables."""
    seen = Tally()
    async with aclosing(target.pages(table)) as pages:
        async for page in pages:
            seen = seen.plus(page)
            progress(done + seen.rows)
            await asyncio.sleep(0)
    return seen


async def _verify(target: CopyEndpoint, wanted: Sequence[Table], sums: dict[str, Tally], watcher: Watcher) -> None:
    """Read the target back. Only if it holds exactly what the source holds does it become a database to be served."""
    total = sum(tally.rows for tally in sums.values())
    done = 0
    back: dict[str, Tally] = {}
    async with transaction(target):
        await target.lock(table.name for table in wanted)
        for table in wanted:
            back[table.name] = await read_back(
                target, table, lambda rows: watcher.moved("verifying", rows, total), done
            )
            done += back[table.name].rows
        wrong = [
            f"{name} ({sums[name].rows} rows in the source, {back[name].rows} in the target)"
            for name in sums
            if sums[name] != back[name]
        ]
        if wrong:
            raise CannotCopy(
                f"{target.named} does not hold what the source holds of {', '.join(wrong)}; "
                "something else has written to it, so copy into one that is empty."
            )
        watcher.verified({name: (sums[name].rows, back[name].rows) for name in sums})
        await target.query(f"DROP TABLE {MARKS}")
        await target.query(f"DELETE FROM {STEPS} WHERE number = $1", migrations.HALF_COPIED)
