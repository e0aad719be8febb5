"""Scheduled backups: when the server makes them, how many, and which are kept."""

from __future__ import annotations

import asyncio
import calendar
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strongroom.archive import Reader
from strongroom.server.backup_schedule import BackupFile, backup_name, expired, is_due, list_backups
from strongroom.server.settings import BackupRetention, BadSetting, resolve
from strongroom.store import locks, open_database
from strongroom.store.locks import FileLock
from strongroom.store.postgres.connection import connect
from tests.kit.asynchronous import async_test
from tests.kit.programs import processes
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.kit.waiting import until

DAY = 86_400_000


def at(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H")) * 1000


def kept(made: list[str], keep: BackupRetention) -> list[str]:
    """Which of the backups made at these hours stay."""
    backups = [BackupFile(at(text), Path(text)) for text in sorted(made)]
    gone = {one.path.name for one in expired(backups, keep, at("2030-01-01 00"))}
    return [text for text in sorted(made) if text not in gone]


def test_the_newest_of_each_day_week_and_month_is_kept() -> None:
    """Of the last days, weeks and months that have one; 2026-03-01 is a Sunday."""
    made = ["2026-03-01 06", "2026-03-01 18", "2026-03-02 06", "2026-03-02 18", "2026-03-03 06"]
    assert kept(made, BackupRetention(2, 0, 0)) == ["2026-03-02 18", "2026-03-03 06"]
    assert kept(made, BackupRetention(0, 2, 0)) == ["2026-03-01 18", "2026-03-03 06"]
    assert kept([*made, "2026-02-27 06", "2026-01-05 06"], BackupRetention(1, 0, 2)) == [
        "2026-02-27 06",
        "2026-03-03 06",
    ]
    assert kept(made, BackupRetention(7, 4, 6)) == ["2026-03-01 18", "2026-03-02 18", "2026-03-03 06"]


def test_a_year_of_daily_backups_comes_to_few() -> None:
    """One a day for a year, thinned out after each: never more than 7 + 4 + 6, and the oldest is months old."""
    there: list[BackupFile] = []
    start = at("2025-01-01 03")
    for day in range(365):
        there.append(BackupFile(start + day * DAY, Path(str(day))))
        gone = set(expired(there, BackupRetention(7, 4, 6), there[-1].made_at))
        there = [one for one in there if one not in gone]
        assert there[-1].path.name == str(day)
    assert 12 <= len(there) <= 17
    assert 120 * DAY < there[-1].made_at - there[0].made_at < 190 * DAY


def test_only_its_own_files_count(tmp_path: Path) -> None:
    """Whatever else lies in the folder is neither counted nor deleted."""
    for name in ("strongroom-20260301T060000Z.backup", "notes.txt", "strongroom-x.backup", "my.backup"):
        (tmp_path / name).write_text("x")
    assert [one.path.name for one in list_backups(tmp_path)] == ["strongroom-20260301T060000Z.backup"]
    assert list_backups(tmp_path / "nowhere") == []
    assert backup_name(at("2026-03-01 06")) == "strongroom-20260301T060000Z.backup"
    assert not is_due(tmp_path, DAY, at("2026-03-02 05"))
    assert is_due(tmp_path, DAY, at("2026-03-02 06"))
    assert is_due(tmp_path / "nowhere", DAY, 0)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("7d,4w,6m", BackupRetention(7, 4, 6)),
        (" 3d ", BackupRetention(3, 0, 0)),
        ("2m, 1d", BackupRetention(1, 0, 2)),
        ("3 last,24h,7d,4w,6m,2y", BackupRetention(7, 4, 6, 3, 24, 2)),
        ("5last", BackupRetention(0, 0, 0, 5)),
    ],
)
def test_what_to_keep_is_read(text: str, meant: BackupRetention) -> None:
    """In any order; what is not named is not kept."""
    assert resolve({"JWT_SECRET": "x", "BACKUP_KEEP": text}).backup_keep == meant


@pytest.mark.parametrize("text", ["7", "d", "0d", "7x", "-1d", "7d;4w", "3  last", "last", "0last,0h"])
def test_nonsense_is_refused(text: str) -> None:
    """With the name of the setting."""
    with pytest.raises(BadSetting, match="BACKUP_KEEP must be"):
        resolve({"JWT_SECRET": "x", "BACKUP_KEEP": text})


def test_backups_are_a_second_apart() -> None:
    """Their names count in seconds."""
    with pytest.raises(BadSetting, match="BACKUP_EVERY must be at least a second"):
        resolve({"JWT_SECRET": "x", "BACKUP_EVERY": "999ms"})


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_server_with_two_workers_makes_one_at_a_time(tmp_path: Path, engine: str) -> None:
    """Each is due when the one before is old enough: no two at once, none twice, each whole, a line in the log."""
    folder = tmp_path / "kept"
    more = {"DATABASE_URL": postgres().fresh()} if engine == "postgres" else {}
    settings = {"WORKERS": "2", "BACKUP_DIR": str(folder), "BACKUP_EVERY": "3s", "BACKUP_KEEP": "1d"}
    server = Server(tmp_path / "home", **settings, **more)
    if not more:
        server.settings.pop("DATABASE_URL", None)
    (folder).mkdir()
    stale = folder / ".strongroom-x.backup.1.half"
    stale.touch()
    server.start()
    try:
        until(lambda: _told(server, 2) and _is_last_told(server, folder), "two backups in the log, the second kept", 60)
    finally:
        assert server.end() == 0
    assert not stale.exists()
    names = [line[1] for line in _told(server, 2)]
    assert len(set(names)) == len(names)
    [last] = list_backups(folder)
    assert last.path.name >= names[-1]  # the end of the server may come between a backup and its line in the log
    reader = Reader(io.BytesIO(last.path.read_bytes()))
    assert sum(len(page) for _, page in reader.pages()) == reader.manifest.rows
    assert last.path.stat().st_mode & 0o777 == 0o600
    assert "backup failed" not in server.log()


def _is_last_told(server: Server, folder: Path) -> bool:
    """Whether the folder holds the backup that the log named last, and no other."""
    return [one.path.name for one in list_backups(folder)] == [_told(server, 1)[-1][1]]


def _told(server: Server, count: int) -> list[re.Match[str]]:
    found = list(re.finditer(r"backup (strongroom-\S+\.backup): [\d,]+ rows, [\d,]+ bytes, verified", server.log()))
    return found if len(found) >= count else []


def test_a_backup_that_fails_is_a_line_in_the_log(tmp_path: Path) -> None:
    """And the server goes on."""
    (tmp_path / "kept").write_text("in the way")
    server = Server(tmp_path, BACKUP_DIR=str(tmp_path / "kept"))
    server.settings.pop("DATABASE_URL", None)
    server.start()
    try:
        until(lambda: "backup failed: Cannot write to BACKUP_DIR" in server.log(), "a line about it")
        assert server.connect().get("/health").status_code == 200
    finally:
        assert server.end() == 0


def test_whoever_is_second_leaves_without_a_word(tmp_path: Path) -> None:
    """The folder is locked by another: no file, no complaint."""
    server = Server(tmp_path)
    server.settings.pop("DATABASE_URL", None)
    server.start()
    assert server.end() == 0
    folder = tmp_path / "kept"
    folder.mkdir()
    lock = FileLock(folder / ".lock")
    assert lock.exclusive()
    command = [sys.executable, "-m", "strongroom", "backup", "--scheduled"]
    environment = {**os.environ, **server.settings, "BACKUP_DIR": str(folder)}

    def run() -> tuple[int, str, str]:
        done = processes.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run() == (0, "", "")
    assert list_backups(folder) == []
    lock.close()
    code, said, _ = run()
    assert (code, said[:7]) == (0, "backup ")
    assert run() == (0, "", "")
    assert len(list_backups(folder)) == 1


@async_test
async def test_while_another_node_makes_one_a_node_leaves_without_a_word(tmp_path: Path) -> None:
    """Nodes of one PostgreSQL may have folders of their own: the database itself knows that one is being made."""
    where = postgres().fresh()
    await open_database(where, lambda: 1).close()
    other = await connect(where)
    assert await other.fetchval(locks.TRY_EXCLUSIVE, locks.BACKING_UP)
    environment = {**os.environ, "DATABASE_URL": where, "BACKUP_DIR": str(tmp_path / "kept")}

    async def run() -> tuple[int | None, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "strongroom", "backup", "--scheduled"),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        said, complained = await process.communicate()
        return process.returncode, said, complained

    assert await run() == (0, b"", b"")
    assert list_backups(tmp_path / "kept") == []
    await other.close()
    code, said, _ = await run()
    assert (code, said[:7]) == (0, b"backup ")
    assert len(list_backups(tmp_path / "kept")) == 1
