"""Schema migrations: numbered SQL files, each run once and recorded, by sqlite/migrate.py or postgres/migrate.py.

The files say {bigint}, {strict} and {text} where the engines differ; a line that begins with {sqlite} or {postgres} is
for that engine alone.

A step that only adds may promise so in its first line: `-- serves from 6`. The promise is recorded with the step's
name, so that a program that knows the schema up to 6, and not this step, goes on serving beside newer ones. Without
it, a program refuses a database that has a step which it does not know.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strongroom.store.exceptions import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number {bigint} PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at {bigint} NOT NULL
){strict}
"""
HALF_COPIED: Final = 0  # recorded like a step for as long as `strongroom db copy` has not finished with a database
APPLIED: Final = "SELECT number, checksum, name FROM schema_migrations"
_PROMISE = re.compile(r"-- serves from (\d+)\n")
_PROMISED = re.compile(r", serves from (\d+)$")


class Migration(NamedTuple):
    """One migration: a step of the schema."""

    number: int
    name: str
    template: str

    @property
    def checksum(self) -> str:
        """The checksum of the file, recorded when it is run."""
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


def not_current(known: list[Migration], applied: dict[int, str]) -> CannotOpen:
    """The refusal of a database that lacks a migration, where none may be applied."""
    has = f"has schema {max(applied)}" if applied else "has no schema yet"
    return CannotOpen(
        f"The database {has}, this program needs {known[-1].number}; "
        "run 'strongroom db migrate', or serve without --no-migrate."
    )


def applied_steps(known: list[Migration], rows: Iterable[Any]) -> dict[int, str]:
    """Checksums of the applied migrations, checked; without those of newer programs that promise to fit this one."""
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
