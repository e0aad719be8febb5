"""Backup: a snapshot of a whole database, written into an archive while writers go on; and its verification."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import NoneType
from typing import TYPE_CHECKING, Final

from strongroom.archive import BadArchive, Manifest, Reader, TableInfo, Writer
from strongroom.store import locks, migrations
from strongroom.store.maintenance.copy import LINEAGE, schema_of, tables
from strongroom.store.maintenance.copy_endpoints import endpoint, opened, transaction
from strongroom.store.maintenance.endpoint_protocol import CannotCopy, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from strongroom.archive import Row, Sink, Source
    from strongroom.store.maintenance.copy import Watcher
    from strongroom.store.maintenance.endpoint_protocol import CopyEndpoint, Table
    from strongroom.store.migrations import Migration

_TEXT: Final = (str, NoneType)
_INTEGER: Final = (int, NoneType)


class Busy(Exception):  # noqa: N818 - an outcome
    """Another node is making a backup."""


async def backup(
    where: str, sink: Sink, program: str, now: int, watcher: Watcher, *, exclusive: bool = False
) -> tuple[Manifest, str]:
    """Write an archive; its manifest and its checksum. No reader or writer waits for it but for the disk.

    Rows that cannot be read are left out, and so are those that refer to them; each is reported to the watcher.

    With `exclusive`, Busy if another node of a PostgreSQL is making an exclusive backup.
    """
    database = endpoint("database", where)
    async with opened(database):
        if (
            exclusive
            and database.engine == "postgresql"
            and not (await database.query(locks.TRY_EXCLUSIVE, locks.BACKING_UP))[0][0]
        ):
            raise Busy
        async with transaction(database, database.begin_snapshot):
            return await _write(database, sink, program, now, watcher)


async def _write(database: CopyEndpoint, sink: Sink, program: str, now: int, watcher: Watcher) -> tuple[Manifest, str]:
    steps = await schema_of(database)
    if not steps:
        raise CannotCopy(f"{database.named} has no schema yet; there is nothing to keep.")
    wanted = tables(steps)
    left_out = await database.unreadable(wanted)
    for rows in left_out.values():
        for row in rows:
            watcher.said(f"left out, for it cannot be read: {row.name}")
    listed = tuple(
        [
            TableInfo(
                name=table.name,
                columns=table.columns,
                rows=(await database.query(f"SELECT count(*) FROM {quoted(table.name)}"))[0][0]
                - len(left_out.get(table.name, ())),
            )
            for table in wanted
        ]
    )
    manifest = Manifest(
        program=program,
        engine=database.engine,
        created_at=now,
        epoch=await _epoch(database, steps),
        schema=steps[-1].number,
        steps={str(step.number): step.checksum for step in steps},
        tables=listed,
    )
    out = Writer(sink, manifest)
    done = 0
    for position, table in enumerate(wanted):
        async with aclosing(database.pages(table, left_out.get(table.name, ()))) as pages:
            async for page in pages:
                out.rows(position, page)
                done += len(page)
                watcher.moved("backing up", done, manifest.rows)
                await asyncio.sleep(0)  # lets an interrupt in
    return manifest, out.end()


async def _epoch(database: CopyEndpoint, steps: list[Migration]) -> str | None:
    """The lineage of the database that is archived, if it has one."""
    if all(table.name != LINEAGE for table in tables(steps)):
        return None
    found = await database.query(f"SELECT epoch FROM {LINEAGE}")
    return found[0][0] if found else None


def verify(source: Source, watcher: Watcher, doing: str = "verifying") -> Reader:
    """Read an archive to its end. It is whole, and fit for this program, or BadArchive says why not."""
    reader = Reader(source)
    done = 0
    for _, page in pages_of(reader, tables(steps_of(reader.manifest))):
        done += len(page)
        watcher.moved(doing, done, reader.manifest.rows)
    return reader


def pages_of(reader: Reader, wanted: Sequence[Table]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of an archive, page by page, if each value is of the kind that its column has.

    SQLite would store a text where a number belongs, and every reader of it would fail.
    """
    kinds = {
        table.name: tuple(_TEXT if column in table.texts else _INTEGER for column in table.columns) for table in wanted
    }
    for name, page in reader.pages():
        kind = kinds[name]
        if any(type(value) not in allowed for row in page for value, allowed in zip(row, kind, strict=True)):
            raise BadArchive(f"The archive is damaged: a value of {name} is of the wrong kind. Take another one.")
        yield name, page


def steps_of(manifest: Manifest) -> list[Migration]:
    """The steps of the schema that an archive was made with."""
    known = migrations.load()
    if manifest.schema > known[-1].number:
        raise BadArchive(
            f"The archive has schema {manifest.schema}, this program knows up to {known[-1].number}; "
            "install a newer strongroom."
        )
    steps = [step for step in known if str(step.number) in manifest.steps]
    fits = bool(steps) and steps[-1].number == manifest.schema
    if not fits or {str(step.number): step.checksum for step in steps} != manifest.steps:
        raise BadArchive("The archive was made with another schema than this program's; do not mix releases.")
    wanted = [(table.name, table.columns) for table in tables(steps)]
    if [(table.name, table.columns) for table in manifest.tables] != wanted:
        raise BadArchive("The archive holds other tables than its schema has.")
    return steps
