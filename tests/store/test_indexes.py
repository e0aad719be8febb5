"""No statement without an index: every one that the store knows, as each engine plans it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

import strongroom.store
from strongroom.store import open_database
from strongroom.store.postgres import combined_writes as on_postgres
from strongroom.store.queries import documents, versions
from strongroom.store.sqlite import combined_writes
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.rows import each_row
from tests.kit.servers.postgres import postgres

# What reads a whole table, and may: one row is all there is, or it is made of the parameters.
WHOLE = {"lineage", "freed", "sized"}
# Which of many are gone: by key, or along the whole index while that is the shorter way.
BY_SIZE = {"access_status._ENDED", "access_status._REVOKED"}


def _statements() -> dict[str, Sql]:
    found: dict[str, Sql] = {}
    for module in pkgutil.walk_packages(strongroom.store.__path__, "strongroom.store."):
        _, _, room, *file = module.name.split(".")
        if room in {"migrations", "maintenance"} or file == ["stats"]:  # which go through whole tables on purpose
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Sql):
                found[f"{(file or [room])[0]}.{name}"] = value
    for collections in (0, 1, 3):
        for show in documents.Show:
            found[f"documents.list {collections} {show.name}"] = documents._list(collections, show)
        for of_one in (False, True):
            found[f"versions.history {collections} {of_one}"] = versions._history(collections, of_one=of_one)
    return found


STATEMENTS = _statements()


def test_there_are_statements_to_check() -> None:
    """The collection of them works."""
    assert len(STATEMENTS) > 50
    assert "documents._GET" in STATEMENTS


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> apsw.Connection:
    """A database of the newest schema."""
    path: Path = tmp_path_factory.mktemp("indexes") / "vault.db"
    open_database(str(path), lambda: 1)
    return apsw.Connection(str(path))


ON_SQLITE = {name: (sql.sqlite, dict.fromkeys(sql.names)) for name, sql in STATEMENTS.items() if sql.sqlite}
ON_SQLITE |= {
    f"combined_writes.{name}": (text, dict.fromkeys(map(str, range(9))))
    for name, text in {**vars(combined_writes), "_heads": combined_writes._heads(3)}.items()
    if isinstance(text, str) and text.split()[0] in {"SELECT", "INSERT", "UPDATE", "DELETE"}
}


@each_row("name", ON_SQLITE)
def test_sqlite_searches_and_does_not_scan(file: apsw.Connection, name: str) -> None:
    """Every table of a statement is searched by an index, or by its key."""
    text, parameters = ON_SQLITE[name]
    rows = file.execute(f"EXPLAIN QUERY PLAN {text}", parameters).fetchall()
    _refuse([str(row[3]) for row in rows if _scans(str(row[3]))], text)


def _scans(step: str) -> bool:
    words = step.split()
    if words[0] != "SCAN" or "VIRTUAL TABLE" in step or words[1] in WHOLE or words[1].startswith("("):
        return False
    return step != "SCAN CONSTANT ROW" and not words[1].isdigit()


def _refuse(bad: list[str], text: str) -> None:
    assert not bad, f"{bad} in {text}"


@async_test
async def test_postgresql_searches_and_does_not_scan() -> None:
    """The same there, with plans that do not know the values, as they are made for prepared statements."""
    url = postgres().fresh()
    open_database(url, lambda: 1)
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
        faults = {
            name: bad
            for name, sql in STATEMENTS.items()
            if name not in BY_SIZE and (bad := await _bad_steps(connection, sql))
        }
        assert not faults
    finally:
        await connection.close()


async def _bad_steps(connection: Any, sql: Sql) -> list[str]:
    await connection.execute(f"PREPARE asked AS {sql.postgres}")
    try:
        nothing = f"({', '.join(['NULL'] * len(sql.names))})" if sql.names else ""
        plan = [row[0].strip() for row in await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE asked{nothing}")]
    finally:
        await connection.execute("DEALLOCATE asked")
    bad = []
    for at, step in enumerate(plan):
        if "Seq Scan on" in step and step.split("Seq Scan on ")[1].split()[0] not in WHOLE:
            bad.append(step)
        if "Index" in step and "Scan" in step and not any("Index Cond" in line for line in plan[at + 1 : at + 3]):
            bad.append(f"{step}, from end to end")
    return bad


_ACCOUNTS = """
    INSERT INTO users (id, email, created_at, updated_at)
    SELECT n, n, 1, 1 FROM generate_series(1, 400) AS n;
    INSERT INTO ledgers (user_id, clock, documents, bytes) SELECT id, 1, 0, 0 FROM users;
    INSERT INTO vaults (user_id, uid, name, version, created_at, updated_at, documents, bytes, kept)
    SELECT id, n || ' of ' || id, n, 1, 1, 1, 0, 0, 0
      FROM users, generate_series(1, CASE id WHEN '1' THEN 20000 ELSE 2 END) AS n;
    INSERT INTO documents (user_id, uid, vault_uid, collection, data, version, created_at, updated_at)
    SELECT id, n || ' of ' || id, '1 of ' || id, 'c', 'data', 1, n, n
      FROM users, generate_series(1, CASE id WHEN '1' THEN 20000 ELSE 5 END) AS n;
"""
_HISTORY = """
    INSERT INTO versions (user_id, uid, vault_uid, collection, data, version, created_at, updated_at, replaced_at)
    SELECT user_id, uid, vault_uid, collection, data, 1, 1, 1, 1 FROM documents;
"""


_MANY_SMALL_ACCOUNTS = (
    _ACCOUNTS.replace("400", "1000")
    .replace("CASE id WHEN '1' THEN 20000 ELSE 2 END", "1")
    .replace("CASE id WHEN '1' THEN 20000 ELSE 5 END", "3")
)


@pytest.mark.parametrize("state", ["no statistics", "with statistics", "no history yet"])
@pytest.mark.parametrize("accounts", [_ACCOUNTS, _MANY_SMALL_ACCOUNTS], ids=["one large", "all small"])
@pytest.mark.parametrize("statement", ["_CREATE", "_REPLACE"])
@async_test
async def test_a_combined_write_reads_its_own_rows_alone(statement: str, accounts: str, state: str) -> None:
    """The plan for all accounts reads by key: not through a large account, nor through a table of many small ones.

    And it costs no more than one for the values at hand: PostgreSQL then plans the statement once, not at each write.
    """
    url = postgres().fresh()
    open_database(url, lambda: 1)
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(accounts)
        if state != "no history yet":
            await connection.execute(_HISTORY)
        if state != "no statistics":
            await connection.execute("ANALYZE")
        sql: Sql = getattr(on_postgres, statement)
        text = re.sub(r"\(SELECT coalesce\(sum\(kept\), 0\) FROM vaults.*?\)", "0", sql.postgres)  # of all vaults
        await connection.execute(f"PREPARE asked AS {text}")
        given = ", ".join(_ONE_WRITE[name] for name in sql.names)
        for _ in range(8):
            await connection.execute(f"EXPLAIN EXECUTE asked({given})")
        counted = "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE name = 'asked'"
        [counts] = await connection.fetch(counted)
        assert tuple(counts) == (5, 3)
        plan = [row[0].strip() for row in await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE asked({given})")]
        scans = [at for at, step in enumerate(plan) if re.search(r" on (documents|versions|vaults)\b", step)]
        if state == "no history yet":  # the plan reads what there is, which is little, until there are statistics
            scans = [at for at in scans if " on versions" not in plan[at]]
        scans = [at for at in scans if "Scan" in plan[at]]
        assert scans
        for at in scans:
            by_key = re.match(r"Index Cond: .*user_id = .*\buid = ", plan[at + 1])
            # Where no account has a second vault, the account alone leads to its vault.
            of_one = accounts is _MANY_SMALL_ACCOUNTS and "on vaults" in plan[at] and "Index Cond" in plan[at + 1]
            assert by_key or of_one, "\n".join(plan)
        # Which old versions are too many is found out once for a document, not for each of its versions.
        assert not any("Filter" in step and "SubPlan" in step for step in plan), "\n".join(plan)
    finally:
        await connection.close()


_ONE_WRITE = {
    "user_id": "'7'",
    "now": "5",
    "count": "1",
    "keyring_version": "NULL",
    "most_bytes": "NULL",
    "most_documents": "NULL",
    "most_row_bytes": "NULL",
    "more_row_bytes": "257",
    "most_versions": "10",
    "most_retained": "NULL",
    "more_bytes": "4",
    "uids": "ARRAY['1 of 7']",
    "vault_uids": "ARRAY['1 of 7']",
    "collections": "ARRAY['c']",
    "datas": "ARRAY['text']",
    "hmacs": "ARRAY[NULL::bytea]",
    "versions": "ARRAY[1]",
    "new_versions": "ARRAY[NULL::bigint]",
    "sizes": "ARRAY[4]",
}
