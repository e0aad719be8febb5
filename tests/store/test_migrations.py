"""Migrations: once each, recorded, safe to be killed in, safe to be run by many at once."""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from strongroom import store
from strongroom.store import migrations, open_database
from strongroom.store.migrations import Migration
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.programs import processes
from tests.kit.servers.populated_database import alter, rows_of
from tests.kit.servers.postgres import postgres

pytestmark = pytest.mark.without_schema

NEXT = Migration(2, "0002_next", "CREATE TABLE next_thing (id {bigint} PRIMARY KEY){strict};")


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with one step more."""
    known = migrations.load()[:1]
    monkeypatch.setattr(migrations, "load", lambda: [*known, NEXT])


@pytest.fixture
def first_only(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    known = migrations.load()[:1]
    monkeypatch.setattr(migrations, "load", lambda: known)
    return monkeypatch


@async_test
async def test_a_copy_is_kept_before_a_step_and_the_data_stays(
    tmp_path: Path, clock: Clock, first_only: pytest.MonkeyPatch
) -> None:
    """The copy is whole, readable by its owner only, and of the schema before."""
    path = tmp_path / "vault.db"
    db = open_database(str(path), clock)
    await db.write(store.accounts.insert, "u", "e@x", "hash")
    await db.close()
    assert not list(tmp_path.glob("*.schema-*"))
    known = migrations.load()
    first_only.setattr(migrations, "load", lambda: [*known, NEXT])
    db = open_database(str(path), clock)
    assert await db.read(store.accounts.by_email, "e@x") is not None
    await db.close()
    [kept] = tmp_path.glob("*.schema-*")
    assert kept.name == "vault.db.schema-0001"
    assert kept.stat().st_mode & 0o777 == 0o600
    copy = apsw.Connection(str(kept))
    assert copy.execute("SELECT email FROM users").fetchall() == [("e@x",)]
    assert copy.execute("SELECT max(number) FROM schema_migrations").fetchall() == [(1,)]
    assert copy.pragma("integrity_check") == "ok"
    copy.close()


def test_a_step_that_fails_leaves_nothing_of_itself(
    tmp_path: Path, clock: Clock, first_only: pytest.MonkeyPatch
) -> None:
    """Half a step is no step."""
    path = str(tmp_path / "vault.db")
    asyncio.run(open_database(path, clock).close())
    known = migrations.load()
    bad = Migration(2, "0002_bad", "CREATE TABLE half (id INTEGER);\nCREATE TABLE users (id INTEGER);")
    first_only.setattr(migrations, "load", lambda: [*known, bad])
    with pytest.raises(store.CannotOpen):
        open_database(path, clock)
    connection = apsw.Connection(path)
    assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'half'").fetchall() == []
    connection.close()
    first_only.setattr(migrations, "load", lambda: [*known, NEXT])
    asyncio.run(open_database(path, clock).close())


@async_test
async def test_what_there_was_before_the_ledgers_is_counted(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that brings ledgers counts live documents and blobs, and the clock goes on after the latest moment."""
    known = migrations.load()
    monkeypatch.setattr(migrations, "load", lambda: known[:2])
    await open_database(where, clock).close()
    for statement in (
        "INSERT INTO users (id, email, created_at, updated_at) VALUES ('u', 'e@x', 1, 1), ('n', 'n@x', 1, 1)",
        (
            "INSERT INTO vaults (user_id, uid, name, data, salt, version, created_at, updated_at)"
            " VALUES ('u', 'a', 'a', 'blob', 'salt', 1, 1, 70), ('u', 'b', 'b', NULL, NULL, 1, 1, 90)"
        ),
        (
            "INSERT INTO documents (user_id, uid, vault_uid, collection, data, hmac, version, created_at, updated_at,"
            " deleted_at) VALUES ('u', '1', 'a', 'c', 'AAAA', 'é', 1, 1, 60, NULL),"
            " ('u', '2', 'a', 'c', 'AA', NULL, 2, 1, 70, 70), ('u', '3', 'b', 'c', 'A', NULL, 1, 1, 90, NULL)"
        ),
    ):
        await alter(where, statement)
    monkeypatch.setattr(migrations, "load", lambda: known)
    await open_database(where, clock).close()
    rows = await rows_of(where)
    assert [(row[1], *row[8:]) for row in rows["vaults"]] == [("a", 1, 14, 258, 514), ("b", 1, 1, 0, 257)]
    assert rows["ledgers"] == [("u", 90, 2, 15, 0, 771)]


def later(number: int, first_line: str = "") -> Migration:
    """A step that this program does not know."""
    template = f"{first_line}\nCREATE TABLE thing_{number} (id {{bigint}} PRIMARY KEY){{strict}};\n"
    return Migration(number, f"{number:04}_later", template)


def promise(number: int) -> str:
    return f"-- serves from {number}"


NEWEST = migrations.load()[-1].number


@pytest.mark.parametrize(
    ("steps", "fits"),
    [
        ([later(NEWEST + 1, promise(NEWEST))], True),
        ([later(NEWEST + 1, promise(1))], True),
        ([later(NEWEST + 1, promise(NEWEST)), later(NEWEST + 2, promise(NEWEST - 1))], True),
        ([later(NEWEST + 1)], False),
        ([later(NEWEST + 1, promise(NEWEST + 1))], False),
        ([later(NEWEST + 1), later(NEWEST + 2, promise(NEWEST))], False),
        ([later(NEWEST + 1, promise(NEWEST)), later(NEWEST + 2, promise(NEWEST + 1))], False),
        ([later(NEWEST + 1, "-- or so, " + promise(NEWEST)[3:])], False),
    ],
)
@async_test
async def test_a_newer_database_is_served_if_every_step_promised_so(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, steps: list[Migration], *, fits: bool
) -> None:
    """Then the older program starts, is ready and writes; else it is refused. The newer one comes back in any case."""
    known = migrations.load()
    monkeypatch.setattr(migrations, "load", lambda: [*known, *steps])
    await open_database(where, clock).close()
    monkeypatch.setattr(migrations, "load", lambda: known)
    if fits:
        for may in (True, False):
            db = open_database(where, clock, migrate=may)
            assert await db.write(store.schema.is_current)
            await db.write(store.accounts.insert, f"u{may}", f"{may}@x", "hash")
            await db.close()
    else:
        with pytest.raises(store.CannotOpen, match=f"knows up to {NEWEST}; install a newer strongroom"):
            open_database(where, clock)
    monkeypatch.setattr(migrations, "load", lambda: [*known, *steps])
    await open_database(where, clock).close()


def test_a_step_that_promises_only_adds() -> None:
    """A program that does not know of it neither misses something nor trips over it."""
    assert adds_only(later(8, promise(7)).template)
    for template in (
        "ALTER TABLE users DROP COLUMN email;",
        "ALTER TABLE users ADD COLUMN a {bigint} NOT NULL;",
        "CREATE UNIQUE INDEX i ON users (email);",
        "UPDATE users SET email = '';",
        "ALTER TABLE users ADD COLUMN a {bigint}; UPDATE users SET a = 1, email = '';",
        "ALTER TABLE users ADD COLUMN a {bigint}; UPDATE vaults SET a = 1;",
        "DROP TABLE users;",
    ):
        assert not adds_only(template)
    for step in migrations.load():
        assert step.record == step.name or adds_only(step.template), step.name


def adds_only(template: str) -> bool:
    """Whether all that a step does is new tables, plain indexes, and columns that may be left out of an INSERT.

    A column that it adds it may also fill.
    """
    bare = re.sub(r"--.*", "", template)
    column = r"ALTER TABLE \w+ ADD COLUMN \w+ [\w{}]+(( NOT NULL)? DEFAULT \S+)?"
    added = re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", bare)
    filled = "|".join(rf"UPDATE {table} SET {name} =(?!.*,\s*\w+ =).*" for table, name in added) or "(?!)"
    good = re.compile(rf"(CREATE TABLE \w+ .*|CREATE INDEX \w+ ON .*|{column}|{filled})", re.DOTALL)
    return all(good.fullmatch(statement.strip()) for statement in bare.split(";") if statement.strip())


@async_test
async def test_a_schema_that_is_not_current_can_be_refused(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is to be migrated: nothing at all is made or changed, and the sentence says what to do."""
    with pytest.raises(store.CannotOpen, match=r"has no schema yet.*strongroom db migrate"):
        open_database(where, clock, migrate=False)
    if "://" in where:
        assert await rows_of(where) == {}
    else:
        assert not Path(where).exists()
    known = migrations.load()
    monkeypatch.setattr(migrations, "load", lambda: known[:-1])
    await open_database(where, clock).close()
    before = await rows_of(where)
    monkeypatch.setattr(migrations, "load", lambda: known)
    words = f"has schema {known[-2].number}, this program needs {known[-1].number}"
    with pytest.raises(store.CannotOpen, match=words):
        open_database(where, clock, migrate=False)
    assert await rows_of(where) == before
    await open_database(where, clock).close()
    await open_database(where, clock, migrate=False).close()


_KILLED = """
import os, signal, sys, apsw
from strongroom.store import migrations, open_database
known = migrations.load()[:1]
steps = "".join(f"CREATE TABLE extra_{n} (id {{bigint}} PRIMARY KEY){{strict}};\\n" for n in range(20))
migrations.load = lambda: [*known, migrations.Migration(2, "0002_extra", steps)]
seen = 0
def watch(cursor, sql, bindings):
    global seen
    seen += 1
    if seen == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return True
apsw.connection_hooks.append(lambda connection: setattr(connection, "exec_trace", watch))
open_database(sys.argv[1], lambda: 0)
print(seen)
"""


def test_killed_at_any_statement_and_started_again_it_finishes(tmp_path: Path) -> None:
    """The process is killed before every single statement of the start, in turn."""
    path = tmp_path / "vault.db"

    def start(kill_at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _KILLED, str(path), str(kill_at)]
        return processes.run(command, capture_output=True, text=True, check=False)

    at = 0
    while True:
        at += 5
        done = start(at)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert at > 30
    connection = apsw.Connection(str(path))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'extra%' AND type = 'table'")
    assert tables.fetchall() == [(20,)]
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def _open(where: str, results: multiprocessing.queues.Queue[str]) -> None:
    try:
        asyncio.run(open_database(where, lambda: 0).close())
        results.put("opened")
    except BaseException as error:  # noqa: BLE001 - the parent wants to know
        results.put(repr(error))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_ten_nodes_may_start_at_once(tmp_path: Path, engine: str) -> None:
    """One migrates, the others wait, all come up."""
    where = str(tmp_path / "vault.db") if engine == "sqlite" else postgres().fresh()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    results: multiprocessing.queues.Queue[str] = context.Queue()
    nodes = [context.Process(target=_open, args=(where, results)) for _ in range(10)]
    for node in nodes:
        node.start()
    outcomes = [results.get(timeout=60) for _ in nodes]
    for node in nodes:
        node.join()
    assert outcomes == ["opened"] * 10


@pytest.mark.usefixtures("newer")
def test_no_half_copy_is_left(tmp_path: Path, clock: Clock) -> None:
    """A start without anything to keep keeps nothing."""
    asyncio.run(open_database(str(tmp_path / "vault.db"), clock).close())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["vault.db", "vault.db-lock"]
