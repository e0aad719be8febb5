"""What a step of a purge costs, counted and not timed: pages, instructions and entries of indexes that it reads."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from strongroom.actions import retention, sessions
from strongroom.model import RetentionPolicy
from strongroom.store import Database, open_database
from strongroom.store.postgres.connection import connect
from strongroom.store.queries import documents, keyrings, retained, versions
from strongroom.store.sqlite.engine import SqliteDatabase
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.rows import each_row
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import alter
from tests.kit.servers.postgres import postgres

ROWS = 64
LARGE = 200_000
FINDING = {
    "trash": documents._DELETED_BEFORE,
    "trash of a vault": documents._TRASH_OF_VAULT,
    "trash of a collection": documents._TRASH_OF_COLLECTION,
    "versions": versions._REPLACED_BEFORE,
    "versions of a document": versions._OF,
    "blobs": versions._BLOBS_REPLACED_BEFORE,
    "blobs of a vault": versions._OF_BLOB,
    "keyrings": keyrings._REPLACED_BEFORE,
}
GIVEN: dict[str, Any] = {"user_id": "a", "vault_uid": "v", "collection": "c", "uid": "1"}
GIVEN |= {"reached": 0, "before": ROWS, "limit": ROWS}
NUMBERS = "WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"


def fill(path: Path, count: int, size: int) -> None:
    """An account with so many rows of this size in its trash, and in each kind of history."""
    open_database(str(path), lambda: 1)
    connection = apsw.Connection(str(path))
    given = {"count": count, "data": "A" * size}
    connection.execute("INSERT INTO users (id, email, created_at, updated_at) VALUES ('a', 'a', 1, 1)")
    connection.execute("INSERT INTO ledgers (user_id, clock, documents, bytes) VALUES ('a', 1, 0, 0)")
    connection.execute(
        "INSERT INTO vaults (user_id, uid, name, version, created_at, updated_at) VALUES"
        " ('a', 'v', 'v', 9999999, 1, 1), ('a', '1', '1', 9999999, 1, 1)"
    )
    common = "user_id, uid, vault_uid, collection, data, hmac, created_at, updated_at"
    row = "'a', n, 'v', 'c', :data, 'h', n, n"
    of_one = "'a', '1', 'v', 'c', :data, 'h', n, n"
    for columns, values in (
        (f"documents ({common}, version, deleted_at)", f"{row}, 2, n"),
        (f"versions ({common}, version, replaced_at)", f"{row}, 1, n"),
        (f"versions ({common}, version, replaced_at)", f"{of_one}, n + 1, n"),
        ("blob_versions (user_id, uid, version, data, salt, updated_at, replaced_at)", "'a', '1', n, :data, 's', n, n"),
        ("keyring_versions (user_id, version, updated_at, replaced_at, keyring, kdf)", "'a', n, n, n, :data, 'k'"),
    ):
        connection.execute(f"INSERT INTO {columns} {NUMBERS} SELECT {values} FROM numbers", given)
    connection.close()


def pages_read(path: Path, sql: Sql) -> int:
    """How many pages a statement reads that has none in memory."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert len(connection.execute(sql.numbered, sql.values(GIVEN)).fetchall()) == ROWS
    read = connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]
    connection.close()
    return read


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Files with small rows, and with rows of fifty pages."""
    made = {size: tmp_path_factory.mktemp("steps") / "vault.db" for size in (100, LARGE)}
    for size, path in made.items():
        fill(path, ROWS, size)
    return made


@each_row("name", FINDING)
def test_a_step_does_not_read_the_content_of_what_it_finds(files: dict[int, Path], name: str) -> None:
    """It knows the sizes without: else each step would read 64 rows, however large, in order to purge one of them."""
    small, large = (pages_read(path, FINDING[name]) for path in files.values())
    assert large < small + 4 * ROWS  # a page for each row that is looked at, not fifty


COUNTING = {
    "trash": (retained._TRASH, [("a", str(n), n) for n in range(1, ROWS + 1)]),
    "versions": (retained._VERSIONS, [("a", "1", n + 1) for n in range(1, ROWS + 1)]),
    "blobs": (retained._BLOBS, [("a", "1", n) for n in range(1, ROWS + 1)]),
}


@each_row("name", COUNTING)
def test_a_step_does_not_sort_the_content_of_what_it_counts(files: dict[int, Path], name: str) -> None:
    """What a vault keeps is counted by sizes: rows are sorted by their vaults in little memory, without content."""
    sql, due = COUNTING[name]
    connection = apsw.Connection(str(files[LARGE]))
    connection.execute("PRAGMA cache_size = 10; BEGIN IMMEDIATE; UPDATE vaults SET kept = 1000000000000")
    before = apsw.memory_used()
    apsw.memory_high_water(reset=True)
    connection.execute(sql.numbered, sql.values({"due": json.dumps(due)}))
    assert apsw.memory_high_water() - before < 4 * LARGE
    assert connection.execute("SELECT min(kept) FROM vaults").fetchall() < [(1000000000000,)], "nothing was counted"
    connection.execute("ROLLBACK")
    connection.close()


COUNT = rounds(2_000, 20_000)
ACCOUNT = """
    INSERT INTO users (id, email, created_at, updated_at) VALUES ('a', 'a', 1, 1);
    INSERT INTO ledgers (user_id, clock, documents, bytes) VALUES ('a', 1, 0, 0);
    INSERT INTO vaults (user_id, uid, name, version, created_at, updated_at) VALUES ('a', 'v', 'v', 1, 1, 1);
    INSERT INTO documents (user_id, uid, vault_uid, collection, data, version, created_at, updated_at)
    VALUES ('a', 'live', 'v', 'c', 'A', 1, 0, 0);
    INSERT INTO sessions (user_id, id, generation, created_at, expires_at) VALUES ('a', 'live', 1, 1, 9000000000000000);
"""
_DOCUMENT = "user_id, uid, vault_uid, collection, data, version, created_at, updated_at"
# What is purged: the index that leads to it, the table, the columns, and the values of row n, which has expired at n.
EXPIRED = (
    ("documents_by_deletion", "documents", f"{_DOCUMENT}, deleted_at", "'a', {n}, 'v', 'c', 'A', 2, n, n, n"),
    ("versions_by_age", "versions", f"{_DOCUMENT}, replaced_at", "'a', 'live', 'v', 'c', 'A', n, n, n, n"),
    (
        "blob_versions_by_age",
        "blob_versions",
        "user_id, uid, version, data, updated_at, replaced_at",
        "'a', 'v', n, 'A', n, n",
    ),
    (
        "vault_changes_by_age",
        "vault_changes",
        "user_id, changed_at, vault_uid, kind, name, version",
        "'a', n, 'v', 'blob', 'v', 1",
    ),
    (
        "keyring_versions_by_age",
        "keyring_versions",
        "user_id, version, updated_at, replaced_at, keyring",
        "'a', n, n, n, 'A'",
    ),
    (
        "refresh_tokens_by_expiry",
        "refresh_tokens",
        "user_id, jti, session_id, generation, created_at, expires_at",
        "'a', {n}, 'live', 1, n, n",
    ),
    ("sessions_by_expiry", "sessions", "user_id, id, generation, created_at, expires_at", "'a', {n}, 1, n, n"),
    ("events_by_time", "events", "user_id, id, type, created_at, address, user_agent", "'a', {n}, 'login', n, '', ''"),
    ("failures_by_time", "failures", "address, account, failed_at", "'', '', n"),
    ("signups_by_time", "signups", "address, signed_up_at", "'', n"),
    (
        "invitations_by_expiry",
        "invitations",
        "uid, code_hash, created_at, expires_at, taken_emails",
        "{n}, {n}, n, n, 0",
    ),
    (
        "login_tickets_by_expiry",
        "login_tickets",
        "ticket_hash, user_id, password, created_at, expires_at",
        "{n}, 'a', '', n, n",
    ),
    ("challenges_by_expiry", "challenges", "challenge_hash, purpose, created_at, expires_at", "{n}, '', n, n"),
)


def expired_rows(table: str, columns: str, values: str) -> str:
    """A statement that adds the rows of a table."""
    numbers = NUMBERS.replace(":count", str(COUNT))
    return f"INSERT INTO {table} ({columns}) {numbers} SELECT {values.format(n='CAST(n AS TEXT)')} FROM numbers"


async def purge(db: Database, sweep: retention.Sweep) -> bool:
    """A step of each purge; whether there may be more to purge."""
    short = await db.write_long(sessions.purge_some, 90, sweep)
    return await db.write_long(retention.purge_some, RetentionPolicy(30, 30), sweep) or short


@async_test
async def test_the_last_step_of_a_purge_costs_what_the_first_does(tmp_path: Path, clock: Clock) -> None:
    """In instructions of SQLite's machine, table by table: they grow with the rows that a statement goes through."""
    path = str(tmp_path / "vault.db")
    db = open_database(path, clock)
    await alter(path, ACCOUNT)
    counted = itertools.count()
    connection = cast("SqliteDatabase", db)._writer.connection
    connection.set_progress_handler(lambda: next(counted) < 0, 50)
    for index, *rows in EXPIRED:
        await alter(path, expired_rows(*rows))
        sweep, more, steps = retention.Sweep(), True, []
        while more:
            before = next(counted)
            more = await purge(db, sweep)
            steps.append(next(counted) - before)
        full = steps[:-2]  # the last two find few rows or none
        assert len(full) > 5, index
        assert max(full) <= 1.5 * min(full), (index, steps)
    await db.close()


@async_test
async def test_no_step_of_a_purge_reads_the_rows_of_earlier_steps(clock: Clock) -> None:
    """On PostgreSQL, beside an open backup, which keeps the index entries of all that was purged meanwhile."""
    where = postgres().fresh()
    db = open_database(where, clock)
    await alter(where, ACCOUNT + "".join(f"{expired_rows(*rows)};" for _, *rows in EXPIRED))
    await alter(where, "VACUUM ANALYZE")
    await alter(where, f"ALTER DATABASE {where.split('?')[0].rsplit('/', 1)[1]} SET enable_seqscan = off")
    backup = await connect(where)
    await backup.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await backup.fetchval("SELECT count(*) FROM documents")
    sweep = retention.Sweep()
    while await purge(db, sweep):
        pass
    await db.close()  # PostgreSQL counts what a connection has read when it ends
    await backup.execute("COMMIT")

    async def read() -> dict[str, int]:
        rows = await backup.fetch("SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes")
        return {name: entries for name, entries in rows if name in [index for index, *_ in EXPIRED]}

    entries = await read()
    while min(entries[index] for index, *_ in EXPIRED) < COUNT:
        await asyncio.sleep(0.01)
        entries = await read()
    assert max(entries.values()) < 4 * COUNT, entries
    # Nor do the steps leave a replaced row of their vault or account for each row, which later ones would go through.
    updated = "SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname IN ('vaults', 'ledgers')"
    assert await backup.fetchval(updated) < COUNT // 8
    await backup.close()
