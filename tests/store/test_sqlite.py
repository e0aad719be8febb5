"""The SQLite engine: settings, group commit, failing disks."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom import store
from strongroom.errors import InternalError, Refusal, StorageFull, Unauthorized, Unavailable
from strongroom.store import CannotOpen, Tx, open_database
from strongroom.store.session_check import SessionCheck
from strongroom.store.sqlite.database_file import has_wal_fault
from strongroom.store.sqlite.engine import SqliteDatabase
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.store.engine_rows import add, everything, owner, vault


@pytest.mark.parametrize(
    ("version", "faulty"),
    [
        ("3.7.0", True),
        ("3.40.1", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.45.0", True),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.2", True),
        ("3.51.3", False),
        ("3.52.0", True),
        ("3.53.0", False),
        ("3.54.1", False),
        ("4.0", False),
    ],
)
def test_versions_with_the_wal_fault_are_known(version: str, *, faulty: bool) -> None:
    """Every version up to 3.51.2 can corrupt a file, but for two backports."""
    assert has_wal_fault(version) is faulty


def test_a_faulty_sqlite_is_refused(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate stands before the file is touched."""
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(CannotOpen, match=r"3\.51\.2 can corrupt"):
        open_database(str(tmp_path / "x.db"), clock)
    assert not (tmp_path / "x.db").exists()


def test_the_file_is_for_its_owner_only(tmp_path: Path, clock: Clock) -> None:
    """Password hashes are in it."""
    old = os.umask(0)
    try:
        path = tmp_path / "deep" / "folder" / "vault.db"
        db = open_database(str(path), clock)
    finally:
        os.umask(old)
    files = sorted(path.parent.iterdir())
    assert len(files) == 4
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    asyncio.run(db.close())


def test_durable_settings_hold_on_every_connection(tmp_path: Path, clock: Clock) -> None:
    """FULL means that a commit waits for the disk."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "secure_delete": 1,
        "mmap_size": 0,
        "cell_size_check": 1,
        "temp_store": 2,
    }
    for connection in (db._writer.connection, db._reader):
        assert {name: connection.pragma(name) for name in wanted} == wanted
    assert db._reader.pragma("query_only") == 1
    asyncio.run(db.close())


@async_test
async def test_cached_pages_are_released_but_for_those_in_use(tmp_path: Path, clock: Clock) -> None:
    """Those of short reads, of lists, and of the writer unless its thread may have it."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    db._writer.connection.execute("CREATE TABLE filler AS SELECT randomblob(1000000) AS data").fetchall()
    async with db.snapshot():
        pass  # its connection is kept
    connections = {"writer": db._writer.connection, "short reads": db._reader, "lists": db._readers[0]}

    def full() -> set[str]:
        return {
            name
            for name, connection in connections.items()
            if connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0] > 500_000
        }

    for busy, kept in ((False, set()), (True, {"writer"})):
        for connection in connections.values():
            connection.execute("SELECT max(hex(data)) FROM filler").fetchall()
        assert full() == set(connections)
        db._writer.busy = busy
        db.release_memory()
        assert full() == kept
    db._writer.busy = False
    await db.close()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("file", b"this is not a database, but long enough to be read as one" * 20, "is not a database"),
        ("dir", None, "folder"),
    ],
)
def test_what_is_no_database_is_refused_in_a_sentence(
    tmp_path: Path, clock: Clock, name: str, content: bytes | None, says: str
) -> None:
    """No traceback, and the file stays as it was."""
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(CannotOpen, match=says):
        open_database(str(path), clock)
    if content is not None:
        assert path.read_bytes() == content


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path, clock: Clock) -> None:
    """An older program must not write into what it does not understand."""
    path = str(tmp_path / "x.db")
    asyncio.run(open_database(path, clock).close())
    connection = apsw.Connection(path)
    connection.execute("INSERT INTO schema_migrations VALUES (9999, 'from the future', '', 0)")
    connection.close()
    with pytest.raises(CannotOpen, match=r"9999.*newer strongroom"):
        open_database(path, clock)


def test_a_changed_migration_is_refused(tmp_path: Path, clock: Clock) -> None:
    """Steps are recorded with what they held."""
    path = str(tmp_path / "x.db")
    asyncio.run(open_database(path, clock).close())
    connection = apsw.Connection(path)
    connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE number = 1")
    connection.close()
    with pytest.raises(CannotOpen, match="0001_initial differs"):
        open_database(path, clock)


@async_test
async def test_an_action_that_awaits_something_else_is_a_fault(tmp_path: Path, clock: Clock) -> None:
    """Inside a transaction nothing is awaited but the transaction; the rule is enforced, and the engine goes on."""
    db = open_database(str(tmp_path / "x.db"), clock)

    async def dawdles(_tx: Tx) -> None:
        await asyncio.sleep(0)

    for run in (db.read, db.write):
        with pytest.raises(RuntimeError, match="awaited something other"):
            await run(dawdles)
    assert await db.write(store.accounts.insert, "u", "e@x", "hash") is not None
    await db.close()


class _Slow:
    """Counts commits, and lets the test hold them back."""

    def __init__(self, db: SqliteDatabase) -> None:
        self.commits = 0
        self._commit: Callable[[Any], Any] = db._writer._commit
        db._writer._commit = self  # type: ignore[method-assign]

    def __call__(self, batch: Any) -> Any:
        self.commits += 1
        return self._commit(batch)


@async_test
async def test_writes_that_arrive_together_share_a_commit(tmp_path: Path, clock: Clock) -> None:
    """A hundred writers at once wait for the disk a few times, not a hundred."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    slow = _Slow(db)
    await asyncio.gather(*(db.write(store.accounts.insert, f"u{n}", f"e{n}@x", "hash") for n in range(100)))
    assert slow.commits <= 3
    await db.close()


@async_test
async def test_no_answer_leaves_before_its_commit(tmp_path: Path, clock: Clock) -> None:
    """Neither a result nor a refusal: until the commit, neither is true."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    held: list[Callable[[], None]] = []
    db._writer._run_on_thread = held.append  # type: ignore[method-assign, assignment]
    first = asyncio.create_task(db.write(store.accounts.insert, "u", "e@x", "hash"))
    second = asyncio.create_task(db.write(store.accounts.insert, "w", "e@x", "hash"))
    while not held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done()
    assert not second.done()
    held.pop()()
    assert await first is not None
    assert await second is None
    await db.close()


@async_test
async def test_a_failed_commit_fails_all_and_is_fatal(tmp_path: Path, clock: Clock) -> None:
    """When the disk cannot be trusted, no write is acknowledged, and the process is to stop."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    fatal: list[BaseException] = []
    db.on_fatal = fatal.append
    real = db._writer.connection

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def execute(self, sql: str, *args: Any) -> Any:
            if sql == "COMMIT":
                raise apsw.IOError("fsync failed")
            return real.execute(sql, *args)

    db._writer.connection = Broken()  # type: ignore[assignment]
    outcomes = await asyncio.gather(
        *(db.write(store.accounts.insert, f"u{n}", f"e{n}@x", "hash") for n in range(5)), return_exceptions=True
    )
    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    assert [type(error) for error in fatal] == [apsw.IOError]
    with pytest.raises(Unavailable):
        await db.write(store.accounts.insert, "x", "x@x", "hash")
    db._writer.connection = real
    assert await db.read(store.accounts.by_email, "e0@x") is None
    await db.close()


@async_test
async def test_another_process_that_writes_is_waited_for(tmp_path: Path, clock: Clock) -> None:
    """Its lock holds up our writers, not the loop, and no write is lost."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    other = apsw.Connection(str(tmp_path / "x.db"))
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(db.write(store.accounts.insert, "u", "e@x", "hash"))
    for _ in range(50):
        await asyncio.sleep(0.001)
        assert await db.read(store.accounts.by_email, "e@x") is None
    assert not waiting.done()
    other.execute("COMMIT")
    assert await waiting is not None
    other.close()
    await db.close()


@async_test
async def test_long_and_short_writes_keep_their_order(tmp_path: Path, clock: Clock) -> None:
    """A long write runs elsewhere, but in its turn."""
    db = open_database(str(tmp_path / "x.db"), clock)
    await owner(db)
    await vault(db)
    await asyncio.gather(*((db.write_long if n % 4 == 0 else db.write)(add, f"d{n:02}") for n in range(24)))
    assert [document.uid for document in await everything(db)] == [f"d{n:02}" for n in range(24)]
    await db.close()


@pytest.mark.parametrize(("error", "refusal"), [(apsw.FullError, StorageFull), (apsw.BusyError, Unavailable)])
@async_test
async def test_a_statement_that_meets_a_full_disk_is_refused_as_a_commit_is(
    tmp_path: Path, clock: Clock, error: type[apsw.Error], refusal: type[Refusal]
) -> None:
    """Also where SQLite keeps the transaction, and the other writes in it go on."""
    db = open_database(str(tmp_path / "x.db"), clock)

    async def meets(_tx: Tx) -> None:
        raise error("from the disk")

    outcomes = await asyncio.gather(
        db.write(meets), db.write(store.accounts.insert, "u", "e@x", "hash"), return_exceptions=True
    )
    assert isinstance(outcomes[0], refusal)
    assert await db.read(store.accounts.by_email, "e@x") is not None
    with pytest.raises(refusal):
        await db.write(meets)
    await db.close()


def test_a_start_waits_for_another_that_begins_to_use_the_log(tmp_path: Path, clock: Clock) -> None:
    """Two processes open a new file: the one that comes second waits, though SQLite itself does not here."""
    path = tmp_path / "vault.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE; CREATE TABLE other (x)")
    timer = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
    timer.start()
    asyncio.run(open_database(str(path), clock).close())
    timer.join()
    other.close()


NOT_TEXT = Sql("SELECT CAST(x'41ff' AS TEXT) FROM documents")


@pytest.mark.parametrize("where", ["read", "read_checked", "snapshot", "write", "write_long"])
@async_test
async def test_a_text_that_is_none_leaves_no_statement_open(tmp_path: Path, clock: Clock, where: str) -> None:
    """The log can be truncated at once: the connection that met it reads nothing any more."""
    db = open_database(str(tmp_path / "x.db"), clock)
    await owner(db)
    await vault(db)
    await db.write(add, "d1")

    async def meets(tx: Tx) -> None:
        with pytest.raises(InternalError):
            await tx.value(NOT_TEXT)

    if where == "snapshot":
        async with db.snapshot() as tx:
            await meets(tx)
    else:
        check = [SessionCheck(Sql("SELECT 1"), lambda found: found)] if where == "read_checked" else []
        await getattr(db, where)(*check, meets)
    assert await db.truncate_log()
    await db.close()


@async_test
async def test_a_caller_without_a_session_learns_of_no_damage(tmp_path: Path, clock: Clock) -> None:
    """The refusal comes first, also where the session and a row that cannot be read are read in one statement."""
    db = open_database(str(tmp_path / "x.db"), clock)
    await owner(db)
    await vault(db)
    await db.write(add, "d1")
    warned: list[str] = []
    db.warn = warned.append

    def refuse(_found: object) -> None:
        raise Unauthorized

    with pytest.raises(Unauthorized):
        await db.read_checked(SessionCheck(Sql("SELECT 1"), refuse), lambda tx: tx.value(NOT_TEXT))
    assert not warned
    await db.close()
