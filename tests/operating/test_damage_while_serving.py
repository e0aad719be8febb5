"""Pages that are damaged under a running server: not ready, one clear line, an end with a code of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import asyncpg
import pytest

from strongroom import store
from strongroom.errors import Unavailable
from strongroom.store.postgres.engine import PostgresDatabase
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.faults.damaged_files import Service
from tests.kit.servers.postgres import postgres
from tests.kit.waiting import until

CHANCE = random.Random(5)  # noqa: S311
DAMAGED_EXIT = 74


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A server that has just started on a file with many documents: hardly a page of it is in memory."""
    one = Service(tmp_path / "home")
    one.start()
    one.write(150, CHANCE, 3000)
    assert one.server.end() == 0
    yield one
    one.server.abandon()


def spoil(service: Service, table: str) -> None:
    """Write nonsense over all pages of a table or an index."""
    connection = apsw.Connection(f"file:{service.database}?mode=ro&immutable=1", 0x1 | 0x40)
    pages = connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,)).fetchall()
    connection.close()
    with service.database.open("rb+") as file:
        for (page,) in pages:
            file.seek((int(str(page)) - 1) * 4096)
            file.write(CHANCE.randbytes(4096))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_read_that_meets_damage(service: Service, workers: str) -> None:
    """503 for the one who asked, /ready says no, and the process ends with a line that names the file."""
    service.server.settings["WORKERS"] = workers
    service.server.start()
    spoil(service, "documents")
    with service.server.connect() as http:
        answer = http.get(
            f"/vaults/{service.vault}/documents/{next(iter(service.acknowledged))}", headers=service.bearer
        )
        assert answer.status_code == 503, answer.text
        if workers == "1":
            assert http.get("/ready").status_code == 503
    assert service.server.process.wait(20) == DAMAGED_EXIT
    _told(service)


def test_a_list_that_meets_damage(service: Service) -> None:
    """On a connection of its own."""
    service.server.start()
    spoil(service, "documents")
    with service.server.connect() as http:
        answer = http.get(f"/vaults/{service.vault}/documents", headers=service.bearer)
        assert answer.status_code == 503, answer.text
    assert service.server.process.wait(20) == DAMAGED_EXIT
    _told(service)


def test_a_write_that_meets_damage(service: Service) -> None:
    """Nothing of it is written, and nobody is told that it was."""
    service.server.start()
    spoil(service, "documents_by_time")
    spoil(service, "sqlite_autoindex_documents_1")
    with service.server.connect() as http:
        body = {"collection": "c", "data": "QUJD"}
        answer = http.post(f"/vaults/{service.vault}/documents", json=body, headers=service.bearer)
        assert answer.status_code == 503, answer.text
    assert service.server.process.wait(20) == DAMAGED_EXIT
    _told(service)
    ended = service.command("serve", "--port", "0")  # what a service manager would do: the loop ends here
    assert ended.returncode == 2
    assert "damaged" in ended.stderr


def test_a_login_that_meets_damage(service: Service) -> None:
    """The whole file at once, the first page included."""
    service.server.start()
    size = service.database.stat().st_size
    with service.database.open("rb+") as file:
        file.write(CHANCE.randbytes(size))
    with service.server.connect() as http:
        person = {"email": "ada@example.com", "password": "correct horse"}
        statuses = {http.post("/auth/email/login", json=person).status_code}
        assert statuses == {503}
    assert service.server.process.wait(20) == DAMAGED_EXIT
    _told(service)


def test_a_command_that_meets_damage(service: Service) -> None:
    """A sentence, and no traceback."""
    spoil(service, "users")
    for arguments in (("users", "list"), ("vacuum", "--yes")):
        ended = service.command(*arguments)
        assert ended.returncode == 2, ended
        assert "strongroom doctor" in ended.stderr
        assert "Traceback" not in ended.stderr


def _told(service: Service) -> None:
    """Once on standard error, and once as a line of the log."""
    lines = [line for line in service.server.log().splitlines() if "is damaged" in line]
    plain = [line for line in lines if not line.startswith("{")]
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(plain) == len(logged) == 1, service.server.log()
    for said in (plain[0], logged[0]["message"]):
        assert str(service.database) in said
        assert "strongroom doctor" in said
    until(lambda: "Traceback" not in service.server.log(), "no traceback")


@async_test
async def test_a_damaged_postgres(clock: Clock) -> None:
    """503 and a line; not ready from then on. The node itself goes on, for PostgreSQL looks after its own pages."""
    db = PostgresDatabase(postgres().fresh(), clock)
    told: list[str] = []
    db.warn = told.append
    for error in (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError, asyncpg.PostgresIOError):

        async def meet(_tx: store.Tx, error: type[Exception] = error) -> None:
            raise error("invalid page in block 7")

        for way in (db.read, db.write, db.write_long):
            with pytest.raises(Unavailable):
                await way(meet)
        with pytest.raises(Unavailable):
            async with db.snapshot() as tx:
                await meet(tx)
    assert db.is_damaged
    assert len(told) == 1
    await db.close()
