"""A folder that backups cannot be written to is a fault that the doctor names, and every attempt is told."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.server import backup_schedule
from strongroom.server.settings import resolve
from strongroom.store import open_database
from tests.kit.programs.command_line import clean_environment, findings, place_of, strongroom
from tests.kit.programs.other_user import NOBODY, as_root, as_user, public_folder
from tests.kit.servers.secret import SECRET
from tests.kit.wall_clock import now


@pytest.fixture
def service_folder() -> Iterator[Path]:
    """A folder with a database in it, where a user other than root can be at work."""
    with public_folder() as folder:
        service_folder = folder / "service"
        service_folder.mkdir(mode=0o700)
        asyncio.run(open_database(str(service_folder / "vault.db"), now).close())
        yield service_folder


def settings_of(service_folder: Path, folder: Path) -> dict[str, str]:
    return {"JWT_SECRET": SECRET, "BACKUP_DIR": str(folder), **place_of(str(service_folder / "vault.db"))}


def give(service_folder: Path, user: int) -> None:
    for path in (service_folder, *service_folder.iterdir()):
        os.chown(path, user, user)


@as_root
@pytest.mark.parametrize("there", [True, False], ids=["there", "missing"])
def test_a_folder_that_the_user_cannot_write_to_is_a_fault(service_folder: Path, there: bool) -> None:  # noqa: FBT001
    """Seen by the service's user and by root alike, and nothing is written to find out."""
    folder = service_folder.parent / "of root" / "kept"
    (folder if there else folder.parent).mkdir(mode=0o755, parents=True)
    before = sorted(service_folder.parent.rglob("*"))
    give(service_folder, NOBODY)
    run = as_user(service_folder, NOBODY, "doctor", "--json", **settings_of(service_folder, folder))
    assert run.returncode == 1, run.stderr
    [told] = [one for one in findings(run, "backup") if one["verdict"] == "fault"]
    assert str(folder) in told["says"]
    assert "cannot be" in told["says"]
    assert "ReadWritePaths=" in told["todo"]
    by_root = strongroom(service_folder, "doctor", "--json", **settings_of(service_folder, folder))
    assert [one for one in findings(by_root, "backup") if one["verdict"] == "fault" and "nobody" in one["says"]]
    assert (
        sorted(path for path in service_folder.parent.rglob("*") if "-wal" not in path.name and "-shm" not in path.name)
        == before
    )


def test_a_file_in_the_way_is_a_fault(service_folder: Path) -> None:
    """BACKUP_DIR names a file, or a folder below one."""
    (service_folder / "file").touch(0o600)
    for folder in (service_folder / "file", service_folder / "file" / "kept"):
        told = strongroom(service_folder, "doctor", "--json", **settings_of(service_folder, folder))
        assert told.returncode == 1
        assert findings(told, "backup")[0]["verdict"] == "fault"


def test_backups_on_the_disk_of_the_database_are_a_warning(service_folder: Path) -> None:
    """One failure takes both; another file system is well."""
    told = strongroom(service_folder, "doctor", "--json", **settings_of(service_folder, service_folder / "kept"))
    assert [one["verdict"] for one in findings(told, "backup disk")] == ["warning"]
    if Path("/dev/shm").stat().st_dev != service_folder.stat().st_dev:  # noqa: S108
        told = strongroom(service_folder, "doctor", "--json", **settings_of(service_folder, Path("/dev/shm/none")))  # noqa: S108
        assert [one["verdict"] for one in findings(told, "backup disk")] == ["ok"]


def test_a_second_folder_on_the_disk_of_the_database_is_no_other_disk(service_folder: Path) -> None:
    """BACKUP_TO is judged like BACKUP_DIR; a folder on another disk, or another machine, is well."""
    (service_folder / "sent").mkdir(mode=0o700)
    here = settings_of(service_folder, service_folder / "kept")
    told = strongroom(service_folder, "doctor", "--json", **here, BACKUP_TO=str(service_folder / "sent"))
    assert [one["verdict"] for one in findings(told, "backup disk")] == ["warning"]
    told = strongroom(service_folder, "doctor", "--json", **here, BACKUP_TO="sftp://ada@127.0.0.1:1/in")
    assert findings(told, "backup disk") == []
    for disk in ("/dev/shm", "/tmp"):  # noqa: S108
        if Path(disk).stat().st_dev != service_folder.stat().st_dev:
            told = strongroom(service_folder, "doctor", "--json", **here, BACKUP_TO=disk)
            assert [one["verdict"] for one in findings(told, "backup disk")] == ["ok"]


@pytest.mark.parametrize(
    ("ages", "says"),
    [
        ([2 * 60], "The only backup is 2 minutes old."),
        ([90 * 60, 3 * 3600], "The newest of 2 backups is 90 minutes old."),
        ([3 * 3600 + 60, 4 * 86_400], "The newest of 2 backups is 3 hours old."),
        ([3 * 86_400], "The only backup is 3 days old."),
        ([-3600, 2 * 3600], "The only backup is 2 hours old."),
    ],
)
def test_how_old_the_backups_are(service_folder: Path, ages: list[int], says: str) -> None:
    """In a unit that fits; those that are dated later than now do not count."""
    (service_folder / "kept").mkdir(mode=0o700)
    for age in ages:
        path = service_folder / "kept" / backup_schedule.backup_name(1000 * (int(time.time()) - age))
        path.write_bytes(b"x")
    told = strongroom(service_folder, "doctor", "--json", **settings_of(service_folder, service_folder / "kept"))
    said = [one["says"] for one in findings(told, "backup") if " old." in one["says"]]
    assert said == [says]


class Log:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, level: str, text: str) -> None:
        self.lines.append(f"{level}: {text}")


def test_every_failed_attempt_is_told_once_and_the_next_waits_longer(
    service_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute, then two, then four, up to an hour; a success begins anew. The waiting alone is pretended."""
    (service_folder / "file").touch()
    settings = resolve({**settings_of(service_folder, service_folder / "file"), "BACKUP_EVERY": "24h"})
    log: Any = Log()
    pauses: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 9:
            (service_folder / "file").unlink()
        if len(pauses) == 11:
            raise asyncio.CancelledError
        await real(0)

    monkeypatch.setattr("strongroom.server.backup_schedule.asyncio.sleep", sleep)
    monkeypatch.setattr(
        backup_schedule.BackupSchedule,
        "_environment",
        lambda _: clean_environment(**settings_of(service_folder, service_folder / "file")),
    )

    async def run() -> None:
        await backup_schedule.BackupSchedule(settings, now, log).run()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 60, 60]
    assert [
        line for line in log.lines if line.startswith("error: backup failed: Cannot write to BACKUP_DIR")
    ] == log.lines[:9]
    assert log.lines[9].startswith("info: backup strongroom-")


def test_a_backup_that_cannot_be_started_is_told_and_the_schedule_goes_on(
    service_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has no process left: that is a failed attempt, and not the end of all backups."""
    log: Any = Log()
    monkeypatch.setattr(sys, "executable", str(service_folder / "nowhere"))
    made = backup_schedule.BackupSchedule(resolve(settings_of(service_folder, service_folder / "kept")), now, log)
    assert asyncio.run(made._run_backup()) is False
    [line] = log.lines
    assert line.startswith("error: backup failed: it cannot be started: No such file or directory. ")
