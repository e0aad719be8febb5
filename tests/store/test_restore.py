"""A backup is a snapshot of a database, and a restore puts it back: all of it or nothing."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from strongroom import create_server
from strongroom.archive import BadArchive, Reader, Writer
from strongroom.errors import Unavailable
from strongroom.store import CannotOpen, locks, migrations, open_database
from strongroom.store.maintenance import endpoint_protocol, restore
from strongroom.store.maintenance.backup import Busy, backup, verify
from strongroom.store.maintenance.endpoint_protocol import CannotCopy
from strongroom.store.maintenance.postgres_endpoint import PostgresEndpoint
from strongroom.store.maintenance.sqlite_endpoint import SqliteEndpoint
from strongroom.store.postgres.connection import connect
from strongroom.store.queries import epochs
from tests.kit.asynchronous import async_test
from tests.kit.clock import START, Clock
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import (
    Rows,
    Served,
    alter,
    copied_rows_of,
    live_in,
    rows_of,
    without_lineage,
)
from tests.kit.servers.postgres import postgres
from tests.kit.servers.secret import SECRET
from tests.kit.servers.silent_watcher import SilentWatcher


class Killed(BaseException):
    """Ends a restore as a kill would."""


async def archive_of(where: str, watcher: Any = None) -> bytes:
    file = io.BytesIO()
    await backup(where, file, "1.2.3", START, watcher or SilentWatcher())
    return file.getvalue()


async def put_back(
    where: str, archive: bytes, watcher: Any = None, now: int = START, *, new: bool = False
) -> restore.Restored:
    verify(io.BytesIO(archive), SilentWatcher())
    source = Reader(io.BytesIO(archive))
    return await restore.restore(where, source, "a new epoch", now, watcher or SilentWatcher(), new=new)


@async_test
async def test_every_row_comes_back_under_a_new_epoch(pair: tuple[str, str], clock: Clock) -> None:
    """From each engine into each, NUL characters and large texts included; and what it says of itself is right."""
    source, target = pair
    await live_in(source, clock)
    archive = await archive_of(source)
    before = await copied_rows_of(source)
    manifest = Reader(io.BytesIO(archive)).manifest
    assert manifest.engine == ("postgresql" if "://" in source else "sqlite")
    assert (manifest.program, manifest.created_at, manifest.schema) == ("1.2.3", START, migrations.load()[-1].number)
    assert manifest.epoch == before["lineage"][0][1]
    assert {table.name: table.rows for table in manifest.tables} == {name: len(rows) for name, rows in before.items()}
    done = await put_back(target, archive, new=True)
    assert (done.rows, done.kept, done.warning) == (manifest.rows, None, None)
    after = await copied_rows_of(target)
    assert without_lineage(after) == without_lineage(before)
    assert after["lineage"] == [(1, "a new epoch", START, None)]


@async_test
async def test_what_was_restored_serves(pair: tuple[str, str], clock: Clock) -> None:
    """Tokens, keys and documents are there; clients see that the epoch is another."""
    source, target = pair
    held = await live_in(source, clock)
    await put_back(target, await archive_of(source), new=True)
    async with Served(target, clock) as server:
        listed = f"/vaults/{held.plain['uid']}/documents?since=0"
        for bearer in (held.access, held.key):
            answer = await server.http.get(listed, headers={"authorization": f"Bearer {bearer}"})
            assert answer.json()["documents"] == held.documents
        assert (await server.http.get("/health")).json()["epoch"] == "a new epoch" != held.blob["epoch"]
        assert (await server.login(held.email)).status_code == 200


@async_test
async def test_what_is_replaced_is_kept(where: str, clock: Clock) -> None:
    """As a file, or a schema, with a time in its name; row for row what it was, its write-ahead log included."""
    await live_in(where, clock)
    archive = await archive_of(where)
    await alter(where, "INSERT INTO users (id, email, created_at, updated_at) VALUES ('late', 'l@x', 1, 1)")
    before = await rows_of(where)
    if "://" not in where:
        _leave_a_log(where)
    done = await put_back(where, archive)
    assert done.kept is not None
    assert ("late", "l@x") not in [row[:2] for row in (await rows_of(where))["users"]]
    if "://" in where:
        assert done.kept == "the schema strongroom_before_20241114t160000z"
        connection = await connect(where)
        await connection.execute("SET search_path = strongroom_before_20241114t160000z")
        kept = {
            name: sorted([tuple(r) for r in await connection.fetch(f"SELECT * FROM {name}")], key=repr)
            for name in before
        }
        await connection.close()
        assert kept == before
    else:
        assert done.kept == f"{where}.before-20241114T160000Z"
        kept = await rows_of(done.kept)
        assert ("in the log", "log@x") in [row[:2] for row in kept["users"]]
        assert ("late", "l@x") in [row[:2] for row in kept["users"]]
        assert not Path(f"{where}-wal").exists()


def _leave_a_log(where: str) -> None:
    """Commit something that stays in the write-ahead log, as a server leaves it that was killed."""
    code = (
        "import apsw, os, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        'connection.execute("INSERT INTO users (id, email, created_at, updated_at)'
        " VALUES ('in the log', 'log@x', 1, 1)\")\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, where], check=True)
    assert Path(f"{where}-wal").stat().st_size > 0


# Who is in the way of whom


@async_test
async def test_a_restored_file_is_readable_by_its_owner_only(tmp_path: Path, clock: Clock) -> None:
    """Whatever the umask says: password hashes are in it. So is what was there before."""
    where = str(tmp_path / "vault.db")
    await live_in(where, clock)
    archive = await archive_of(where)
    before = os.umask(0o000)
    try:
        await put_back(where, archive)
        new = str(tmp_path / "new" / "vault.db")
        await put_back(new, archive, new=True)
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"vault.db", "vault.db.before-20241114T160000Z"}
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in files} == {path.name: "0o600" for path in files}
    assert Path(new).parent.stat().st_mode & 0o777 == 0o700


@async_test
async def test_a_restore_waits_for_no_server(where: str, clock: Clock) -> None:
    """It is refused while one runs, and goes through when it has ended; a backup is welcome all the time."""
    await live_in(where, clock)
    async with Served(where, clock) as server:
        await server.person()
        archive = await archive_of(where)
        before = await rows_of(where)
        with pytest.raises(CannotCopy, match="A server is using"):
            await put_back(where, archive)
        assert await rows_of(where) == before
        await server.person()
    assert (await put_back(where, archive)).kept


@async_test
async def test_no_server_starts_while_a_restore_is_at_work(where: str, clock: Clock) -> None:
    """Nor does one that runs already get a new connection."""
    await live_in(where, clock)
    archive = await archive_of(where)
    heard: list[str] = []

    def start(_: str) -> None:
        location: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}
        try:
            create_server(jwt_secret=SECRET, **location)
        except CannotOpen as error:
            heard.append(str(error))

    await put_back(where, archive, SilentWatcher(start))
    assert heard
    assert all("being restored" in words for words in heard)
    await open_database(where, clock).close()


@async_test
async def test_a_node_that_comes_back_during_a_restore_is_refused(clock: Clock) -> None:
    """It lost its connections, and asks for one while the tables are being replaced: 503, and nothing is written."""
    where = postgres().fresh()
    await live_in(where, clock)
    archive = await archive_of(where)
    node = open_database(where, clock)
    heard: list[str] = []

    def ask(_: str) -> None:
        def there() -> None:
            async def run() -> None:
                with pytest.raises(Unavailable) as refused:
                    await node.read(epochs.epoch)
                heard.append(refused.value.message)

            asyncio.run(run())

        thread = threading.Thread(target=there)
        thread.start()
        thread.join()

    await put_back(where, archive, SilentWatcher(ask))
    assert heard
    assert all("being restored" in words for words in heard)
    assert await node.read(epochs.epoch) == "a new epoch"
    await node.close()


@async_test
async def test_one_scheduled_backup_at_a_time_on_all_nodes(clock: Clock) -> None:
    """A second node that wants an exclusive one is refused; one made by hand is not in its way."""
    where = postgres().fresh()
    await live_in(where, clock)
    told: list[type[BaseException]] = []
    steps = itertools.count()

    def second(_: str) -> None:
        if next(steps) % rounds(4, 1):  # each time in `make soak`
            return

        def there() -> None:
            try:
                asyncio.run(backup(where, io.BytesIO(), "x", 1, SilentWatcher(), exclusive=True))
            except Busy as busy:
                told.append(type(busy))
            asyncio.run(backup(where, io.BytesIO(), "x", 1, SilentWatcher()))

        thread = threading.Thread(target=there)
        thread.start()
        thread.join()

    await backup(where, io.BytesIO(), "x", 1, SilentWatcher(second), exclusive=True)
    assert told
    await backup(where, io.BytesIO(), "x", 1, SilentWatcher(), exclusive=True)


# All or nothing


@async_test
async def test_a_backup_is_one_snapshot(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while it is made is not in it, in no table."""
    monkeypatch.setattr(endpoint_protocol, "PAGE_ROWS", 3)
    await live_in(where, clock)
    before = await copied_rows_of(where)
    writes = iter(range(10_000))

    def write(_: str) -> None:
        n = next(writes)
        thread = threading.Thread(
            target=lambda: asyncio.run(
                alter(where, f"INSERT INTO users (id, email, created_at, updated_at) VALUES ('n{n}', 'n{n}@x', 1, 1)")
            )
        )
        thread.start()
        thread.join()

    archive = await archive_of(where, SilentWatcher(write))
    assert next(writes) > 5
    found: Rows = {table.name: [] for table in Reader(io.BytesIO(archive)).manifest.tables}
    for name, page in Reader(io.BytesIO(archive)).pages():
        found[name] += page
    assert {name: sorted(rows, key=repr) for name, rows in found.items()} == before


@async_test
async def test_a_restore_that_dies_has_changed_nothing(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is while it fills and checks; and the next one goes through."""
    monkeypatch.setattr(endpoint_protocol, "PAGE_ROWS", 3)
    await live_in(where, clock)
    archive = await archive_of(where)
    await alter(where, "INSERT INTO users (id, email, created_at, updated_at) VALUES ('late', 'l@x', 1, 1)")
    before = await rows_of(where)
    for step in range(0, 100, 7):
        left = iter(range(step))

        def die(_: str, left: Any = left) -> None:
            if next(left, None) is None:
                raise Killed

        try:
            await put_back(where, archive, SilentWatcher(die))
        except Killed:
            assert await rows_of(where) == before
            await open_database(where, clock).close()
        else:
            break
    else:
        pytest.fail("it never went through")
    assert step > 14
    assert len((await rows_of(where))["users"]) == len(before["users"]) - 1


@pytest.mark.parametrize("at", range(5))
@async_test
async def test_a_switch_that_dies_is_finished_by_the_next_restore(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Between any two renames no server starts, and the old file and its log end up side by side."""
    where = str(tmp_path / "vault.db")
    await live_in(where, clock)
    archive = await archive_of(where)
    before = await rows_of(where)
    _leave_a_log(where)
    renames = iter(range(at))
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if next(renames, None) is None:
            raise Killed
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    try:
        await put_back(where, archive)
    except Killed:
        with pytest.raises(CannotOpen, match="was interrupted; run the same"):
            open_database(where, clock)
        monkeypatch.undo()
        await put_back(where, archive, now=START + 5_000)
    assert without_lineage(await copied_rows_of(where)) == {
        name: rows for name, rows in before.items() if name in await copied_rows_of(where) and name != "lineage"
    }
    kept = await rows_of(f"{where}.before-20241114T160000Z")
    assert ("in the log", "log@x") in [row[:2] for row in kept["users"]]
    await open_database(where, clock).close()
    assert locks.lock_of(Path(where)).restore_mark == ""


@async_test
async def test_a_restore_that_reads_back_otherwise_is_undone(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that got lost on the way into the database is noticed, and nothing is replaced."""
    await live_in(where, clock)
    archive = await archive_of(where)
    before = await rows_of(where)
    kind: Any = PostgresEndpoint if "://" in where else SqliteEndpoint
    real = kind.add

    async def lossy(self: Any, table: Any, page: Any) -> None:
        await real(self, table, page[1:] if table.name == "events" else page)

    monkeypatch.setattr(kind, "add", lossy)
    with pytest.raises(CannotCopy, match="does not hold what the archive holds of events"):
        await put_back(where, archive)
    assert await rows_of(where) == before


@async_test
async def test_an_archive_whose_rows_refer_to_nothing_is_not_put_in_place(where: str, clock: Clock) -> None:
    """It is whole and says what it holds, but a row is missing that another refers to: nothing is replaced."""
    await live_in(where, clock)
    archive = Reader(io.BytesIO(await archive_of(where)))
    before = await rows_of(where)
    pages = [(name, page if name != "users" else page[1:]) for name, page in archive.pages()]
    tables = tuple(
        msgspec.structs.replace(table, rows=table.rows - (table.name == "users")) for table in archive.manifest.tables
    )
    bad = io.BytesIO()
    out = Writer(bad, msgspec.structs.replace(archive.manifest, tables=tables))
    names = [table.name for table in tables]
    for name, page in pages:
        out.rows(names.index(name), page)
    out.end()
    with pytest.raises(CannotCopy, match=r"not sound|does not take the rows"):
        await put_back(where, bad.getvalue())
    assert await rows_of(where) == before


@async_test
async def test_an_unsound_file_is_not_put_in_place(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows are there, but an index is not: the new file is looked at before it takes the place of the old one."""
    where = str(tmp_path / "vault.db")
    await live_in(where, clock)
    archive = await archive_of(where)
    before = await rows_of(where)
    real = restore._fill

    async def spoil(target: Any, *more: Any) -> int:
        rows = await real(target, *more)
        await target.query("PRAGMA writable_schema = ON")
        await target.query("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'documents_by_time'")
        await target.query("PRAGMA writable_schema = RESET")
        return rows

    monkeypatch.setattr(restore, "_fill", spoil)
    with pytest.raises(CannotCopy, match=r"not sound|damaged"):
        await put_back(where, archive)
    assert await rows_of(where) == before
    assert not list(tmp_path.glob("*restoring*"))


# Other schemas


@async_test
async def test_an_archive_of_an_older_schema_is_restored_and_then_brought_up_to_date(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target gets the schema of the archive; the server that opens it does the rest."""
    source, target = pair
    steps = migrations.load()
    with monkeypatch.context() as past:
        past.setattr(migrations, "load", lambda: steps[:1])
        await open_database(source, clock).close()
    await alter(source, "INSERT INTO users (id, email, created_at, updated_at) VALUES ('old', 'o@x', 1, 1)")
    archive = await archive_of(source)
    assert Reader(io.BytesIO(archive)).manifest.schema == 1
    await put_back(target, archive, new=True)
    assert len((await rows_of(target))["schema_migrations"]) == 1
    async with Served(target, clock) as server:
        assert (await server.http.get("/health")).json()["epoch"]
    rows = await rows_of(target)
    assert len(rows["schema_migrations"]) == len(steps)
    assert [row[0] for row in rows["users"]] == ["old"]


@async_test
async def test_an_archive_of_a_newer_or_another_schema_is_refused(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is touched."""
    await live_in(where, clock)
    archive = await archive_of(where)
    before = await rows_of(where)
    steps = migrations.load()
    with monkeypatch.context() as past:
        past.setattr(migrations, "load", lambda: steps[:-1])
        with pytest.raises(BadArchive, match="install a newer strongroom"):
            await put_back(where, archive)
    other = [*steps[:-1], steps[-1]._replace(template=steps[-1].template + " ")]
    monkeypatch.setattr(migrations, "load", lambda: other)
    with pytest.raises(BadArchive, match="another schema"):
        await put_back(where, archive)
    assert await rows_of(where) == before
