"""Scheduled backups go on whatever the machine's clock has said: the age of a backup is judged by what is plausible."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from strongroom import create_server
from strongroom.server.backup_schedule import BackupFile, backup_name, expired, is_due, list_backups, newest
from strongroom.server.settings import BackupRetention
from strongroom.store import open_database
from tests.kit.programs.command_line import place_of, strongroom
from tests.kit.servers.internals import context_of
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until
from tests.kit.wall_clock import now

HOUR = 3_600_000
DAY = 24 * HOUR
YEAR = 365 * DAY


def put(folder: Path, made_at: int) -> Path:
    """A file with the name of a backup of that time."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / backup_name(made_at)
    path.write_bytes(b"strongroom archive 1\n")
    path.chmod(0o600)
    return path


def put_a_database(where: str) -> None:
    asyncio.run(open_database(where, now).close())


def test_a_backup_from_the_future_does_not_stop_the_schedule(tmp_path: Path) -> None:
    """The server makes one at once, says its age, and leaves the other alone; the doctor names it."""
    folder = tmp_path / "kept"
    wrong = put(folder, now() + YEAR)
    server = Server(tmp_path, BACKUP_DIR=str(folder), METRICS_TOKEN="a-token-of-the-tests")
    server.settings.pop("DATABASE_URL", None)
    server.start()
    try:
        until(lambda: len(list_backups(folder)) == 2, "a backup beside it")
        figures = server.connect("a-token-of-the-tests").get("/metrics").text
        [age] = [line for line in figures.splitlines() if line.startswith("strongroom_backup_age_seconds ")]
        assert 0 <= float(age.split()[1]) < 600
    finally:
        assert server.end() == 0
    assert wrong.exists()
    told = strongroom(tmp_path, "doctor", "--json", **server.settings)
    found = msgspec.json.decode(told.stdout)["findings"]
    [named] = [one for one in found if wrong.name in one["says"]]
    assert named["verdict"] == "warning"
    assert "dated in the future" in named["says"]
    assert "delete" in named["todo"]
    [age] = [one["says"] for one in found if one["check"] == "backup" and " old." in one["says"]]
    assert re.fullmatch(r"The only backup is \d+ seconds? old\.", age), "the other one does not count"


def test_only_a_backup_from_the_future_is_no_backup(tmp_path: Path) -> None:
    """The doctor does not call that well, and the figure is absent rather than 0."""
    put(tmp_path / "kept", now() + YEAR)
    where = str(tmp_path / "vault.db")
    put_a_database(where)
    settings = {"JWT_SECRET": SECRET, "BACKUP_DIR": str(tmp_path / "kept"), **place_of(where)}
    found = msgspec.json.decode(strongroom(tmp_path, "doctor", "--json", **settings).stdout)["findings"]
    assert "ok" not in {one["verdict"] for one in found if one["check"] == "backup" and "disk" not in one["says"]}
    server = create_server(jwt_secret=SECRET, db_path=where, backup_dir=str(tmp_path / "kept"))
    assert context_of(server).last_backup() is None
    asyncio.run(context_of(server).close())


def test_a_clock_a_little_ahead_is_no_fault(tmp_path: Path) -> None:
    """Two nodes differ by some minutes: what the other one made counts."""
    put(tmp_path, now() + 120_000)
    assert not is_due(tmp_path, DAY, now())
    assert newest(tmp_path, now()) is not None
    assert is_due(tmp_path, 60_000, now()), "but not for longer than the time between two"


def test_a_clock_that_jumps_back_goes_on(tmp_path: Path) -> None:
    """Days back: what is there is from the future then, and is neither counted nor deleted."""
    today = now()
    there = [put(tmp_path, today - n * DAY) for n in range(5)]
    back = today - 10 * DAY
    assert is_due(tmp_path, DAY, back)
    fresh = put(tmp_path, back)
    gone = expired(list_backups(tmp_path), BackupRetention(1, 0, 0), back, fresh)
    assert gone == []
    assert not is_due(tmp_path, DAY, back + DAY // 2)
    assert is_due(tmp_path, DAY, back + DAY)
    assert all(path.exists() for path in there)


def test_a_clock_that_began_in_1970_deletes_nothing_that_is_newer(tmp_path: Path) -> None:
    """Nor does one that is set right while the backup is made delete what was just made under the old name."""
    there = [put(tmp_path, now() - n * DAY) for n in range(10)]
    fresh = put(tmp_path, HOUR)
    assert expired(list_backups(tmp_path), BackupRetention(1, 0, 0), 2 * HOUR, fresh) == []
    gone = [one.path for one in expired(list_backups(tmp_path), BackupRetention(2, 0, 0), now(), fresh)]
    assert fresh not in gone
    assert sorted(gone) == sorted(there[2:])


def test_what_is_no_file_of_ours_is_no_backup(tmp_path: Path) -> None:
    """A folder, an empty file or a link of the right name is neither counted nor deleted."""
    old = put(tmp_path, now() - 5 * DAY)
    (tmp_path / backup_name(now())).mkdir()
    (tmp_path / backup_name(now() - HOUR)).touch()
    (tmp_path / backup_name(now() - 2 * HOUR)).symlink_to(old)
    (tmp_path / backup_name(now() - 3 * HOUR)).symlink_to(tmp_path / "nowhere")
    assert [one.path for one in list_backups(tmp_path)] == [old]
    assert is_due(tmp_path, DAY, now())
    put_a_database(str(tmp_path / "vault.db"))
    settings = {"DB_PATH": str(tmp_path / "vault.db"), "BACKUP_DIR": str(tmp_path), "BACKUP_KEEP": "1d"}
    done = strongroom(tmp_path, "backup", "--scheduled", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert not old.exists()
    assert len(list(tmp_path.glob("strongroom-*.backup"))) == 5


def test_two_in_one_second_have_two_names(tmp_path: Path) -> None:
    """A file with the name of this second is in the way: the next second's name is taken, and nothing fails."""
    put_a_database(str(tmp_path / "vault.db"))
    folder = tmp_path / "kept"
    folder.mkdir()
    for second in range(30):
        (folder / backup_name(now() + second * 1000)).touch()
    done = strongroom(tmp_path, "backup", "--scheduled", DB_PATH=str(tmp_path / "vault.db"), BACKUP_DIR=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list_backups(folder)) == 1


@pytest.mark.parametrize("wrong", [YEAR, -50 * YEAR])
def test_retention_by_a_wrong_clock_keeps_the_last_good_one(tmp_path: Path, wrong: int) -> None:
    """Whatever it says: of those that there are, the newest by name and the one just made stay."""
    made = sorted(BackupFile(now() + n * HOUR, tmp_path / str(n)) for n in range(-100, 3))
    gone = expired(made, BackupRetention(1, 0, 0), now() + wrong, made[50].path)
    assert made[50] not in gone
    assert made[-1] not in gone
