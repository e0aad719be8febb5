"""Runs migrations on a SQLite file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

from strongroom.store import file_owners, migrations
from strongroom.store.exceptions import CannotOpen
from strongroom.store.sqlite import database_file

if TYPE_CHECKING:
    from strongroom.store.migrations import Migration

_TYPES: Final = {"bigint": "INTEGER", "strict": " STRICT", "text": "TEXT", "sqlite": "", "postgres": "-- "}


def migrate(connection: apsw.Connection, now: int, known: list[Migration] | None = None, *, apply: bool = True) -> None:
    """Bring a SQLite file up to date, each step in a transaction of its own, after a copy of what is there.

    Several processes may start at once: the second waits for the lock, and finds the step done. Without `apply`, a
    file that is not up to date is refused.
    """
    known = known or migrations.load()
    if not apply and not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").fetchall():
        raise migrations.not_current(known, {})
    connection.execute(migrations.RECORD.format(**_TYPES))
    applied = migrations.applied_steps(known, connection.execute(migrations.APPLIED).fetchall())
    missing = [step for step in known if step.number not in applied]
    if missing and not apply:
        raise migrations.not_current(known, applied)
    if applied and missing:
        _copy_aside(connection, max(applied))
    for step in missing:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not connection.execute("SELECT 1 FROM schema_migrations WHERE number = ?", (step.number,)).fetchall():
                connection.execute(step.template.format(**_TYPES))
                connection.execute(
                    "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)", (step.number, step.record, step.checksum, now)
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _copy_aside(connection: apsw.Connection, number: int) -> None:
    """Copy the file as it is beside itself, unless an earlier start did; only a whole copy gets the name."""
    copy = Path(f"{connection.db_filename('main')}.schema-{number:04}")
    if copy.exists():
        return
    half = Path(f"{copy}.{os.getpid()}.half")
    half.unlink(missing_ok=True)
    with os.fdopen(file_owners.make_file(half), "rb") as made:  # longer than SQLite has it, or its locks would go
        target = apsw.Connection(str(half), flags=database_file.READ_WRITE)
        with target.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1_000)
        target.close()
        if not file_owners.is_same(made.fileno(), half):
            raise CannotOpen(f"Another file took the place of {half} while it was written; start again.")
        os.fsync(made.fileno())
    half.replace(copy)
