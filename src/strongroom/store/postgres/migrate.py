"""Runs migrations on a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.store import migrations

if TYPE_CHECKING:
    import asyncpg

    from strongroom.store.migrations import Migration

_TYPES: Final = {"bigint": "BIGINT", "strict": "", "text": "BYTEA", "sqlite": "-- ", "postgres": ""}
_LOCK: Final = 0x5354524F4E47  # the advisory lock under which one node migrates while the others wait


async def migrate(connection: asyncpg.Connection, now: int, *, apply: bool = True) -> None:
    """Bring a PostgreSQL database up to date. Ten nodes may start at once: one migrates, the others wait for it."""
    await connection.execute("SET statement_timeout = 0")
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    known = migrations.load()
    if not apply and await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        raise migrations.not_current(known, {})
    await connection.execute(migrations.RECORD.format(**_TYPES))
    applied = migrations.applied_steps(known, await connection.fetch(migrations.APPLIED))
    missing = [step for step in known if step.number not in applied]
    if missing and not apply:
        raise migrations.not_current(known, applied)
    for step in missing:
        async with connection.transaction():
            await _apply(connection, step, now)
    await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def build(connection: asyncpg.Connection, steps: list[Migration], now: int) -> None:
    """Create the tables of these migrations where there are none, in the transaction that is open."""
    await connection.execute(migrations.RECORD.format(**_TYPES))
    for step in steps:
        await _apply(connection, step, now)


async def _apply(connection: asyncpg.Connection, step: Migration, now: int) -> None:
    await connection.execute(step.template.format(**_TYPES))
    await connection.execute(
        "INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)", step.number, step.record, step.checksum, now
    )
