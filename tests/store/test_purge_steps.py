"""What a step of a purge costs: pages and instructions of SQLite, counted and not timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom.store import open_database
from strongroom.store.queries import documents, keyrings, versions
from strongroom.store.statement import Sql
from tests.support.rows import each_row

ROWS = 64
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
    made = {size: tmp_path_factory.mktemp("steps") / "vault.db" for size in (100, 200_000)}
    for size, path in made.items():
        fill(path, ROWS, size)
    return made


@each_row("name", FINDING)
def test_a_step_does_not_read_the_content_of_what_it_finds(files: dict[int, Path], name: str) -> None:
    """It knows the sizes without: else each step would read 64 rows, however large, in order to purge one of them."""
    small, large = (pages_read(path, FINDING[name]) for path in files.values())
    assert large < small + 4 * ROWS  # a page for each row that is looked at, not fifty
