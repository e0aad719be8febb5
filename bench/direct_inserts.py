"""Rows straight into strongroom's tables, on either engine: what is measured is not how they came in."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import apsw
import asyncpg

from bench.dataset import COLLECTION, HMAC, payload, uuid7
from bench.streams import Person

COLUMNS = (
    "user_id",
    "uid",
    "vault_uid",
    "collection",
    "data",
    "hmac",
    "version",
    "created_at",
    "updated_at",
    "deleted_at",
)
VERSION_COLUMNS = (*COLUMNS, "replaced_at")


def rows(
    person: str, vault: str, count: int, first: int, size: int, deleted_at: int | None
) -> Iterator[tuple[Any, ...]]:
    """Documents a millisecond apart, as the store keeps them."""
    for number in range(count):
        moment = first + number
        data = payload(number) if size == 1_024 else "A" * size
        yield (person, uuid7(moment), vault, COLLECTION, data, HMAC, 1, moment, moment, deleted_at)


async def put_in(where: str, table: str, columns: tuple[str, ...], filling: Iterator[tuple[Any, ...]]) -> None:
    """Rows straight into a table: what is measured is not how they came in."""
    if "://" not in where:
        connection = apsw.Connection(where)
        connection.set_busy_timeout(10_000)
        connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
        marks = ", ".join("?" * len(columns))
        with connection:
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", filling)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return
    database = await asyncpg.connect(where)
    await database.set_type_codec("bytea", schema="pg_catalog", encoder=str.encode, decoder=bytes, format="binary")
    await database.copy_records_to_table(table, records=filling, columns=columns)
    await database.execute(f"VACUUM ANALYZE {table}")
    await database.close()


async def run_sql(where: str, statement: str) -> None:
    """One statement of the benchmark's own."""
    if "://" not in where:
        connection = apsw.Connection(where)
        connection.set_busy_timeout(10_000)
        connection.execute(statement)
        connection.close()
        return
    database = await asyncpg.connect(where)
    await database.execute(statement)
    await database.close()


def owner(person: Person) -> str:
    """Whose token it is."""
    part = person.token.split(".")[1]
    found: str = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]
    return found
