"""One row that cannot be read is named, and takes nothing else with it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.damaged_files import Service, doctor
from tests.support.waiting import until

CHANCE = random.Random(3)  # noqa: S311
NOT_TEXT = "CAST(x'41ff4142' AS TEXT)"
NOT_A_TEXT = "x'41424344'"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "home")
    one.start()
    one.write(12, CHANCE)
    assert one.server.end() == 0
    yield one
    one.server.abandon()


def spoil(service: Service, uid: str, value: str) -> None:
    """Write into one document what damage would leave there, past all checks."""
    for strict in (False, True):
        connection = apsw.Connection(str(service.database))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        if not strict:
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'documents'")
        else:
            connection.execute(f"UPDATE documents SET data = {value} WHERE uid = ?", (uid,))
            connection.execute("UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE name = 'documents'")
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

    if value == NOT_TEXT:  # who has it mends it by writing it again
        body = {"data": "QUJDRA==", "version": 1}
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
