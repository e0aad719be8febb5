"""One row that cannot be read is named, and takes nothing else with it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.kit.faults.damaged_files import Service, doctor
from tests.kit.waiting import until

CHANCE = random.Random(3)  # noqa: S311
NOT_TEXT = "CAST(x'41ff4142' AS TEXT)"
NOT_A_TEXT = "x'41424344'"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service that was stopped."""
    one = Service(tmp_path_factory.mktemp("template") / "home")
    one.start()
    one.write(12, CHANCE)
    assert one.server.end() == 0
    return one


@pytest.fixture
def service(template: Service, tmp_path: Path) -> Iterator[Service]:
    """The same, in a folder of its own."""
    one = template.copy(tmp_path / "home")
    yield one
    one.server.abandon()


def spoil(service: Service, uid: str, value: str, column: str = "data") -> None:
    """Write into one document what damage would leave there."""
    spoil_table(service, "documents", f"{column} = {value} WHERE uid = '{uid}'")


def spoil_table(service: Service, table: str, change: str) -> None:
    """Change rows of a table past all checks."""
    for strict in (False, True):
        connection = apsw.Connection(str(service.database))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        if not strict:
            connection.execute(f"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = '{table}'")
        else:
            connection.execute(f"UPDATE {table} SET {change}")
            connection.execute(f"UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE name = '{table}'")
        connection.close()


@pytest.mark.parametrize("value", [NOT_TEXT, NOT_A_TEXT])
def test_a_bad_row_is_left_out_and_named(service: Service, value: str) -> None:
    """Lists, page by page too, hold the rest; the log, the doctor and the backup name the one that is missing."""
    bad = list(service.acknowledged)[5]
    rest = [uid for uid in service.acknowledged if uid != bad]
    spoil(service, bad, value)
    service.server.start()
    assert list(service.stored()) == rest
    for limit in (1, 4, 5, 6, 11, 12):
        assert _paged(service, limit) == rest, limit
    lines = [json.loads(line) for line in service.server.log().splitlines() if line.startswith("{")]
    told = [line for line in lines if "cannot be read" in line.get("message", "")]
    assert len(told) == 1
    assert bad in told[0]["message"]
    assert service.vault in told[0]["message"]
    assert told[0]["level"] == "error"

    found = doctor(service.server.home)
    assert found.findings["rows"][0] == "fault"
    assert bad in found.findings["rows"][1]

    made = service.command("backup", "kept.backup")
    assert made.returncode == 1, made
    assert bad in made.stderr
    assert service.command("backup", "--verify", "kept.backup").returncode == 0

    body = {"data": "QUJDRA==", "version": 1}  # who has it mends it by writing it again
    with service.server.connect() as http:
        put = http.put(f"/vaults/{service.vault}/documents/{bad}", json=body, headers=service.bearer)
    assert put.status_code == 200, put.text
    assert sorted(service.stored()) == sorted(service.acknowledged)
    service.server.end()

    ended = service.command("restore", "kept.backup")
    assert ended.returncode == 0, ended
    service.server.start()
    assert list(service.stored()) == rest


def _paged(service: Service, limit: int) -> list[str]:
    found: list[str] = []
    since = 0
    with service.server.connect() as http:
        while True:
            url = f"/vaults/{service.vault}/documents?limit={limit}&since={since}"
            page = http.get(url, headers=service.bearer).json()
            found += [one["uid"] for one in page["documents"]]
            if not page["documents"]:
                return found
            since = page["documents"][-1]["updatedAt"]


def test_a_bad_row_takes_those_along_that_refer_to_it(service: Service) -> None:
    """A backup whose rows refer to none that is missing can be restored."""
    bad = next(iter(service.acknowledged))
    service.server.start()
    with service.server.connect() as http:
        body = {"data": "QUJDRA==", "version": 1}
        put = http.put(f"/vaults/{service.vault}/documents/{bad}", json=body, headers=service.bearer)
        assert put.status_code == 200
    service.server.end()
    spoil(service, bad, NOT_TEXT)
    made = service.command("backup", "kept.backup")
    assert made.returncode == 1, made
    assert "2 rows" in made.stderr
    ended = service.command("restore", "kept.backup")
    assert ended.returncode == 0, ended


def test_a_scheduled_backup_is_made_and_told_of(service: Service) -> None:
    """As an error, for somebody has to look; and the next is made when it is time, not at once."""
    bad = next(iter(service.acknowledged))
    spoil(service, bad, NOT_TEXT)
    folder = service.server.home / "kept"
    service.server.settings["BACKUP_DIR"] = str(folder)
    service.server.start()
    until(lambda: bad in service.server.log(), "the name of the row")
    line = next(json.loads(line) for line in service.server.log().splitlines() if bad in line)
    assert line["level"] == "error"
    assert "failed" not in line["message"]
    assert len(list(folder.glob("*.backup"))) == 1


BAD_VALUES = [
    ("data", NOT_TEXT), ("data", NOT_A_TEXT), ("hmac", NOT_A_TEXT), ("collection", NOT_A_TEXT),
    ("collection", NOT_TEXT),
    ("version", "'abc'"), ("version", "x'01'"), ("version", "1.5"), ("created_at", "'abc'"), ("updated_at", "'abc'"),
    ("deleted_at", "'abc'"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), BAD_VALUES)
def test_to_ask_for_a_bad_row_alone_is_a_sentence(service: Service, column: str, value: str) -> None:
    """Its value is never passed off as a good one, the log names it once and shows no traceback, and lists go on."""
    bad = list(service.acknowledged)[5]
    spoil(service, bad, value, column)
    service.server.start()
    url = f"/vaults/{service.vault}/documents/{bad}"
    with service.server.connect() as http:
        for _ in range(2):
            got = http.get(url, headers=service.bearer)
            assert got.status_code == 500, got.text
            assert got.json()["error"]["code"] == "internal_error"
            assert "damaged and cannot be read" in got.json()["error"]["message"]
        listed = http.get(f"/vaults/{service.vault}/documents", headers=service.bearer)
        assert listed.status_code == 200, listed.text
        assert bad not in {one["uid"] for one in listed.json()["documents"]}
        assert len(listed.json()["documents"]) == len(service.acknowledged) - 1
        put = http.put(url, headers=service.bearer, json={"data": "QUJDRA==", "version": 1})
        if column in {"data", "hmac"}:  # to write it again mends it, and afterwards it can be deleted
            assert put.status_code == 200, put.text
            assert http.get(url, headers=service.bearer).json()["data"] == "QUJDRA=="
        else:
            assert put.status_code in {409, 500}, put.text
            assert put.status_code == 409 or "damaged" in put.json()["error"]["message"]
        gone = http.delete(url, headers=service.bearer)
        assert gone.status_code in ({200} if column in {"data", "hmac"} else {404, 500}), gone.text
        assert gone.status_code != 500 or "damaged" in gone.json()["error"]["message"]
        assert http.get("/ready").status_code == 200, "one row is no reason to stop"
    assert service.server.end() == 0
    log = service.server.log()
    assert "Traceback" not in log
    assert any(bad in line and "cannot be read" in line for line in log.splitlines())
    found = doctor(service.server.home)
    assert (found.findings["rows"][0] == "fault") == (column not in {"data", "hmac"} or value == NOT_TEXT), found


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_bad_row_leaves_no_statement_open(service: Service, method: str) -> None:
    """An open one would stop the server at its next checkpoint, or keep what was purged in the log."""
    bad = list(service.acknowledged)[5]
    spoil(service, bad, NOT_TEXT, "collection")
    service.server.start()
    service.write(1, CHANCE)
    documents = f"/vaults/{service.vault}/documents"
    body = {"data": "QUJDRA==", "version": 1} if method == "PUT" else None
    with service.server.connect() as http:
        asked = http.request(method, f"{documents}/{bad}", headers=service.bearer, json=body)
        assert asked.status_code == 500, asked.text
        emptied = http.delete(f"/vaults/{service.vault}/trash", headers=service.bearer)
        assert emptied.status_code == 200, emptied.text
        assert service.log.stat().st_size == 0
    assert service.server.end() == 0


@pytest.mark.parametrize("value", ["'abc'", "x'01'", "1.5"])
def test_a_session_whose_row_is_bad_has_ended(service: Service, value: str) -> None:
    """Its owner logs in again, which mends it."""
    spoil_table(service, "sessions", f"last_used_at = {value}")
    service.server.start()
    with service.server.connect() as http:
        assert http.get("/auth/me", headers=service.bearer).status_code == 401
        person = {"email": "ada@example.com", "password": "correct horse"}
        service.token = http.post("/auth/email/login", json=person).json()["accessToken"]
        assert http.get("/auth/me", headers=service.bearer).status_code == 200
    assert "Traceback" not in service.server.log()


def test_a_vault_whose_uid_is_bad_is_left_out_of_lists(service: Service) -> None:
    """Those before and behind it are listed and exported."""
    service.server.start()
    with service.server.connect() as http:
        for name in "abcd":
            assert http.post("/vault", json={"name": name}, headers=service.bearer).status_code == 201
        vaults = http.get("/vault", headers=service.bearer).json()["vaults"]
    service.server.end()
    bad = [one["uid"] for one in vaults][1::2]
    for number, uid in enumerate(bad):
        spoil_table(service, "vaults", f"uid = CAST(CAST(uid AS BLOB) || x'ff{number:02}' AS TEXT) WHERE uid = '{uid}'")
    rest = [one["uid"] for one in vaults if one["uid"] not in bad]
    service.server.start()
    with service.server.connect() as http:
        listed = http.get("/vault", headers=service.bearer).json()["vaults"]
        assert [one["uid"] for one in listed] == rest
        exported = http.get("/auth/export", headers=service.bearer)
        assert exported.status_code == 200, exported.text
        assert all(uid in exported.text for uid in rest)
    assert "Traceback" not in service.server.log()
    assert "cannot be read" in service.server.log()


@pytest.mark.parametrize(("table", "column"), [("lineage", "epoch"), ("secrets", "value")])
def test_a_server_that_cannot_begin_says_why(service: Service, table: str, column: str) -> None:
    """What it reads first cannot be read: one sentence, which names a way out."""
    spoil_table(service, table, f"{column} = {NOT_TEXT}")
    ended = service.command("serve")
    assert ended.returncode == 2, ended
    assert "Traceback" not in ended.stderr
    assert "is damaged. 'strongroom doctor' says where" in ended.stderr
