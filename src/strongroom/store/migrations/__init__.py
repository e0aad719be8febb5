"""Numbered SQL files, each run once and recorded. They say {bigint}, {strict} and {text} where the engines differ.

A step that only adds may promise so in its first line: `-- serves from 6`. The promise is recorded with the step's
name, so that a program that knows the schema up to 6, and not this step, goes on serving beside newer ones. Without
it, a program refuses a database that has a step which it does not know.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from strongroom.store import file_owners
from strongroom.store.exceptions import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw
    import asyncpg

_RECORD = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number {bigint} PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at {bigint} NOT NULL
){strict}
"""
_SQLITE = {"bigint": "INTEGER", "strict": " STRICT", "text": "TEXT"}
_POSTGRES = {"bigint": "BIGINT", "strict": "", "text": "BYTEA"}
HALF_COPIED = 0  # recorded like a step for as long as `strongroom db copy` has not finished with a database
_LOCK = 0x5354524F4E47  # the advisory lock under which one node migrates while the others wait
_APPLIED = "SELECT number, checksum, name FROM schema_migrations"
_PROMISE = re.compile(r"-- serves from (\d+)\n")
_PROMISED = re.compile(r", serves from (\d+)$")


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    template: str

    @property
    def checksum(self) -> str:
        """What the file held when it was run."""
        return hashlib.sha256(self.template.encode()).hexdigest()

    @property
    def record(self) -> str:
        """The name under which it is recorded, with its promise if it gives one."""
        promise = _PROMISE.match(self.template)
        return self.name if promise is None else f"{self.name}, serves from {promise[1]}"


def load() -> list[Migration]:
    """All migrations, in order."""
    return list(_read())


@cache
def _read() -> tuple[Migration, ...]:
    """The files, which do not change while a process runs."""
    files = sorted(
        (item for item in resources.files(__package__).iterdir() if item.name.endswith(".sql")),
        key=lambda item: item.name,
    )
    return tuple(
        Migration(int(item.name[:4]), item.name.removesuffix(".sql"), item.read_text("utf-8")) for item in files
    )


def migrate_sqlite(
    connection: apsw.Connection, now: int, known: list[Migration] | None = None, *, may: bool = True
) -> None:
    """Bring a SQLite file up to date, each step in a transaction of its own, after a copy of what is there.

    Several processes may start at once: whoever comes second waits for the lock, and finds the step done. If nothing
    may be done to it, a file that is not up to date is refused.
    """
    known = known or load()
    if not may and not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").fetchall():
        raise not_current(known, {})
    connection.execute(_RECORD.format(**_SQLITE))
    applied = _fitting(known, connection.execute(_APPLIED).fetchall())
    missing = [step for step in known if step.number not in applied]
    if missing and not may:
        raise not_current(known, applied)
    if applied and missing:
        _keep_copy(connection, max(applied))
    for step in missing:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not connection.execute("SELECT 1 FROM schema_migrations WHERE number = ?", (step.number,)).fetchall():
                connection.execute(step.template.format(**_SQLITE))
                connection.execute(
                    "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)", (step.number, step.record, step.checksum, now)
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _keep_copy(connection: apsw.Connection, number: int) -> None:
    """Copy the file as it is beside itself, unless an earlier start did; only a whole copy gets the name."""
    kept = Path(f"{connection.db_filename('main')}.schema-{number:04}")
    if kept.exists():
        return
    half = Path(f"{kept}.{os.getpid()}.half")
    half.unlink(missing_ok=True)
    with os.fdopen(
        file_owners.make_file(half), "rb"
    ) as made:  # open for longer than SQLite has it, or its locks would go
        target = type(connection)(str(half), flags=file_owners.READ_WRITE)
        with target.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1_000)
        target.close()
        if not file_owners.is_same(made.fileno(), half):
            raise CannotOpen(f"Another file took the place of {half} while it was written; start again.")
        os.fsync(made.fileno())
    half.replace(kept)


async def migrate_postgres(connection: asyncpg.Connection, now: int, *, may: bool = True) -> None:
    """Bring a PostgreSQL database up to date. Ten nodes may start at once: one migrates, the others wait for it."""
    await connection.execute("SET statement_timeout = 0")
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    known = load()
    if not may and await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        raise not_current(known, {})
    await connection.execute(_RECORD.format(**_POSTGRES))
    applied = _fitting(known, await connection.fetch(_APPLIED))
    missing = [step for step in known if step.number not in applied]
    if missing and not may:
        raise not_current(known, applied)
    for step in missing:
        async with connection.transaction():
            await _take(connection, step, now)
    await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def build_postgres(connection: asyncpg.Connection, steps: list[Migration], now: int) -> None:
    """Make the tables of these steps where there are none, in the transaction that is open."""
    await connection.execute(_RECORD.format(**_POSTGRES))
    for step in steps:
        await _take(connection, step, now)


async def _take(connection: asyncpg.Connection, step: Migration, now: int) -> None:
    await connection.execute(step.template.format(**_POSTGRES))
    await connection.execute(
        "INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)", step.number, step.record, step.checksum, now
    )


def not_current(known: list[Migration], applied: dict[int, str]) -> CannotOpen:
    """What to say of a database that lacks a step, where none is to be taken."""
    has = f"has schema {max(applied)}" if applied else "has no schema yet"
    return CannotOpen(
        f"The database {has}, this program needs {known[-1].number}; "
        "run 'strongroom db migrate', or serve without --no-migrate."
    )


def _fitting(known: list[Migration], rows: Iterable[Any]) -> dict[int, str]:
    """What was applied, without the steps of newer programs that have promised to fit this one; the rest is checked."""
    applied = {}
    for number, checksum, name in rows:
        promised = _PROMISED.search(name)
        if number <= known[-1].number or promised is None or int(promised[1]) > known[-1].number:
            applied[number] = checksum
    check(known, applied)
    return applied


def check(known: list[Migration], applied: dict[int, str]) -> None:
    """Refuse a database that a newer program, or another one, has written."""
    newest = known[-1].number
    if HALF_COPIED in applied:
        raise CannotOpen("The database is half of a copy; run the same 'strongroom db copy' again to finish it.")
    if applied and max(applied) > newest:
        raise CannotOpen(
            f"The database has schema {max(applied)}, this program knows up to {newest}; install a newer strongroom."
        )
    for step in known:
        if step.number in applied and applied[step.number] != step.checksum:
            raise CannotOpen(
                f"The database's schema step {step.name} differs from this program's; do not mix releases."
            )
