"""`strongroom salvage` brings out every row whose own pages are whole, into a file that a server takes."""

from __future__ import annotations

import json
import random
import shutil
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom.cli import main
from strongroom.store.maintenance.salvage import salvage
from strongroom.store.sqlite.migrate import migrate
from tests.kit.faults.damaged_files import FRAME, Service, doctor, flip, frames
from tests.kit.samples import rounds

CHANCE = random.Random(17)  # noqa: S311
DOCUMENTS = rounds(2_000, 5_000)
TRIALS = rounds(3, 30)  # of each extent of damage
NOW = 1_700_000_000_000


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service that was stopped, with documents of all sizes, history, tombstones and API keys."""
    service = Service(tmp_path_factory.mktemp("template") / "home")
    service.start()
    service.write(30, CHANCE)
    service.write(4, CHANCE, 20_000)
    with service.server.connect() as http:
        first, second, *_ = service.acknowledged
        url = f"/vaults/{service.vault}/documents"
        put = {"data": "QUJDRA==", "version": 1}
        assert http.put(f"{url}/{first}", json=put, headers=service.bearer).status_code == 200
        service.acknowledged[first] = "QUJDRA=="
        assert http.delete(f"{url}/{second}", headers=service.bearer).status_code == 200
        del service.acknowledged[second]
        assert http.post("/auth/api-keys", json={"name": "k"}, headers=service.bearer).status_code == 201
    assert service.server.end() == 0
    return service


@pytest.fixture
def service(template: Service, tmp_path: Path) -> Iterator[Service]:
    """The same, in a folder of its own."""
    one = template.copy(tmp_path / "home")
    yield one
    one.server.abandon()


def brought_out(service: Service, *options: str, code: int) -> dict[str, Any]:
    """Salvage, put the new file in the place of the old one, and start."""
    before = service.database.read_bytes()
    target = service.server.home / "new.db"
    ended = service.command("salvage", "vault.db", "new.db", "--json", *options)
    assert ended.returncode == code, ended
    assert service.database.read_bytes() == before
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    for path in service.server.home.glob("vault.db*"):
        path.unlink()
    target.rename(service.database)
    assert {check for check, (verdict, _) in doctor(service.server.home).findings.items() if verdict == "fault"} <= {
        "address"
    }
    service.server.start()
    tables: dict[str, Any] = json.loads(ended.stdout)["tables"]
    return tables


def test_a_whole_file_comes_out_whole(service: Service) -> None:
    """Every row of every table, history and tombstones included; only the epoch is another."""
    dumped = _dump(service.database)
    tables = brought_out(service, code=0)
    assert service.stored() == service.acknowledged
    service.server.end()
    assert _dump(service.database) == dumped
    assert tables["documents"] == {"read": 34, "lost": 0, "refused": 0, "rebuilt": 0}


def _dump(database: Path) -> dict[str, list[Any]]:
    connection = apsw.Connection(str(database))
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    found = {
        str(name): sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
        for (name,) in connection.execute(names).fetchall()
        if name not in {"lineage", "schema_migrations", "failures", "signups", "sessions", "refresh_tokens"}
    }
    connection.close()
    return found


@pytest.mark.parametrize("table", ["users", "vaults", "sqlite_schema", "sqlite_autoindex_documents_1", "sessions"])
def test_a_page_that_others_depend_on(service: Service, table: str) -> None:
    """A lost account, vault, schema or index does not take the documents with it."""
    connection = apsw.Connection(str(service.database))
    pages = connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,)).fetchall()
    connection.close()
    for (page,) in pages:
        flip(service.database, (int(str(page)) - 1) * 4096, 4096)
    tables = brought_out(service, code=0 if "autoindex" in table else 1)
    assert tables["documents"]["read"] == 34
    service.server.end()
    connection = apsw.Connection(str(service.database))
    live: list[Any] = connection.execute("SELECT uid, data FROM documents WHERE deleted_at IS NULL").fetchall()
    held = dict(live)
    assert held == service.acknowledged
    [(name, documents)] = connection.execute("SELECT name, documents FROM vaults").fetchall()
    assert (name, documents) == ("v", len(held))
    [(email,)] = connection.execute("SELECT email FROM users").fetchall()
    connection.close()
    assert email == "ada@example.com"
    if table in {"users", "vaults"}:
        assert tables[table] == {"read": 0, "lost": 1, "refused": 0, "rebuilt": 1}


def test_a_bad_row_is_refused_and_the_rest_is_whole(service: Service) -> None:
    """A file whose only fault is one row."""
    bad = list(service.acknowledged)[7]
    connection = apsw.Connection(str(service.database))
    connection.execute("UPDATE documents SET data = CAST(x'41ff41' AS TEXT) WHERE uid = ?", (bad,))
    connection.close()
    tables = brought_out(service, code=1)
    assert tables["documents"] == {"read": 33, "lost": 0, "refused": 1, "rebuilt": 0}
    del service.acknowledged[bad]
    assert service.stored() == service.acknowledged


@pytest.mark.parametrize("place", ["header", "middle"])
def test_a_damaged_log_gives_what_lies_behind_the_damage(service: Service, place: str) -> None:
    """Each frame is verified by itself, so one that cannot be read costs no more than its own page."""
    service.server.start()
    service.write(60, CHANCE)
    service.kill()
    number = frames(service.log) // 2
    flip(service.log, 8 if place == "header" else 32 + number * FRAME + 600)
    before = service.log.read_bytes()
    salvage(service.database, service.server.home / "look.db", None, "e", NOW)
    assert service.log.read_bytes() == before
    _any_code(service)
    held = service.stored()
    assert held.items() <= service.acknowledged.items()
    assert len(service.acknowledged) - len(held) <= (0 if place == "header" else 12)


def test_a_log_that_a_server_kept_aside(service: Service) -> None:
    """After the server went on without it, `--log` brings out what was in it, beside what was written since."""
    service.server.start()
    service.write(60, CHANCE)
    service.kill()
    flip(service.log, 32 + 3 * FRAME + 600)
    service.server.start()
    lost = service.acknowledged.items() - service.stored().items()
    assert len(lost) > 40
    service.write(5, CHANCE)
    service.server.end()
    [kept] = service.server.home.glob("vault.db-wal.damaged-*")
    shutil.copy(kept, service.server.home / "kept-log")
    ended = service.command("salvage", "vault.db", "new.db", "--log", "kept-log", "--json")
    assert ended.returncode in {0, 1}, ended
    (service.server.home / "new.db").replace(service.database)
    service.server.start()
    held = service.stored()
    assert held.items() <= service.acknowledged.items()
    assert len(service.acknowledged) - len(held) <= 12


def _any_code(service: Service) -> None:
    ended = service.command("salvage", "vault.db", "new.db")
    assert ended.returncode in {0, 1}, ended
    for path in service.server.home.glob("vault.db*"):
        path.unlink()
    (service.server.home / "new.db").rename(service.database)
    service.server.start()


def test_what_is_refused(service: Service) -> None:
    """A target that exists, a source that does not, a server that runs; nothing is made."""
    for arguments in (("vault.db", "vault.db"), ("nothing.db", "new.db"), ("vault.db", "new.db", "--log", "nothing")):
        ended = service.command("salvage", *arguments)
        assert ended.returncode == 2, ended
    service.server.start()
    assert service.command("salvage", "vault.db", "new.db").returncode == 2
    assert not (service.server.home / "new.db").exists()


def test_what_is_no_database_is_refused_and_leaves_nothing(service: Service) -> None:
    """Text, noise, nothing at all, a database of somebody else, and one of strongroom that holds no row."""
    home = service.server.home
    (home / "noise").write_bytes(CHANCE.randbytes(200_000))
    (home / "nothing").touch()
    (home / "text").write_text("root:x:0:0:root:/root:/bin/sh\n" * 500)
    other = apsw.Connection(str(home / "other"))
    other.execute("CREATE TABLE songs (title TEXT, length REAL); INSERT INTO songs VALUES ('a', 2.5), ('b', 3.5)")
    other.close()
    bare = apsw.Connection(str(home / "bare"))
    migrate(bare, NOW)
    bare.close()
    before = sorted(home.iterdir())
    for name in ("noise", "nothing", "text", "other", "bare"):
        ended = service.command("salvage", name, "new.db")
        assert ended.returncode == 2, ended
        assert "No page of a strongroom database was found in " in ended.stderr
        assert f"/{name}; nothing was made" in ended.stderr
        assert "start the server" not in ended.stdout
        assert sorted(home.iterdir()) == before


@pytest.mark.parametrize("rows", ["vaults", "ledgers", "both"])
def test_lost_documents_are_counted(
    large: tuple[Path, dict[int, list[str]]], rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what the account and its vaults say that they held, also where no index knows of them any more."""
    path, pages = large
    damaged = tmp_path / "vault.db"
    shutil.copy(path, damaged)
    connection = apsw.Connection(str(damaged))
    [(live,)] = connection.execute("SELECT count(*) FROM documents WHERE deleted_at IS NULL").fetchall()
    for table in ("vaults", "ledgers"):
        connection.execute(f"UPDATE {table} SET documents = ?", (live if rows in {table, "both"} else 0,))
    names = "SELECT pageno FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE type = 'index'"
    indexes = connection.execute(f"{names} AND tbl_name = 'documents')").fetchall()
    connection.close()
    hit = sorted(pages)[10:60]
    for page in [*hit, *(int(str(page)) - 1 for (page,) in indexes)]:
        flip(damaged, page * 4096, 4096)
    assert main(["salvage", str(damaged), str(tmp_path / "new.db"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["tables"]["documents"]
    assert told["lost"] == sum(len(pages[page]) for page in hit)
    assert main(["salvage", str(damaged), str(tmp_path / "again.db")]) == 1
    assert "lost, at least" in capsys.readouterr().out.splitlines()[0]


@pytest.fixture(scope="module")
def large(template: Service, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, list[str]]]:
    """A file of many documents, each within one page; and which of them lie in which page."""
    path = tmp_path_factory.mktemp("large") / "vault.db"
    shutil.copy(template.database, path)
    connection = apsw.Connection(str(path))
    [(user, vault)] = connection.execute("SELECT user_id, uid FROM vaults").fetchall()
    connection.execute("BEGIN")
    rows = []
    for number in range(DOCUMENTS):
        uid = str(uuid.UUID(int=CHANCE.getrandbits(128), version=4))
        data = CHANCE.randbytes(CHANCE.randint(200, 500)).hex()
        rows.append((user, uid, vault, "c", data, None, 1, NOW + number, NOW + number, None, None))
    connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()
    whole = path.read_bytes()
    pages: dict[int, list[str]] = {}
    for row in rows:
        pages.setdefault(whole.index(row[4].encode()) // 4096, []).append(row[1])
    return path, pages


@pytest.mark.parametrize("extent", [1, 10, 100])
def test_how_much_comes_out(
    large: tuple[Path, dict[int, list[str]]], extent: int, tmp_path: Path, record_property: Any
) -> None:
    """Pages overwritten at random: what comes out is what could, the documents of all pages that were not hit."""
    path, pages = large
    count = path.stat().st_size // 4096
    shares, best = [], []
    for trial in range(TRIALS):
        chance = random.Random(f"{extent}-{trial}")  # noqa: S311
        damaged = tmp_path / f"{trial}.db"
        shutil.copy(path, damaged)
        hit = set(chance.sample(range(count), extent))
        with damaged.open("rb+") as file:
            for page in hit:
                file.seek(page * 4096)
                file.write(chance.randbytes(4096))
        out = tmp_path / f"{trial}.out.db"
        salvage(damaged, out, None, "e", NOW)
        connection = apsw.Connection(str(out))
        held = {str(uid) for (uid,) in connection.execute("SELECT uid FROM documents")}
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        possible = {uid for page, uids in pages.items() if page not in hit for uid in uids}
        every = {uid for uids in pages.values() for uid in uids}
        shares.append(len(held & every) / len(every))
        best.append(len(possible) / len(every))
        assert held & every == possible
        damaged.unlink()
        out.unlink()
    mean = f"brought out {sum(shares) / TRIALS:.2%}, possible {sum(best) / TRIALS:.2%}"
    told = f"{extent} of {count} pages, {TRIALS} trials: {mean}"
    record_property("salvage", told)
    print(told)  # noqa: T201
