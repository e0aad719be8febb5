"""A restore makes a database only where --new says so, and says which service it changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.cli import main
from strongroom.server.admin import operations
from strongroom.store import open_database
from tests.kit.clock import Clock
from tests.kit.programs.command_line import place_of, strongroom
from tests.kit.servers.populated_database import copied_rows_of, live_in
from tests.kit.servers.postgres import postgres

PASSWORD_ASIDE = "postgresql://somebody:hunter2@"


@pytest.fixture
def archive(tmp_path: Path, clock: Clock) -> str:
    """A backup of a small service."""
    source = str(tmp_path / "source.db")
    asyncio.run(live_in(source, clock))
    assert strongroom(tmp_path, "backup", "one", DB_PATH=source).returncode == 0
    return "one"


@pytest.mark.without_schema
def test_without_a_word_nothing_is_made(where: str, archive: str, tmp_path: Path) -> None:
    """Exit code 2, and a sentence that names where it looked and how to say otherwise. No folder, no lock is left."""
    place = str(tmp_path / "elsewhere" / "vault.db") if "://" not in where else postgres().fresh()
    done = strongroom(tmp_path, "restore", archive, **place_of(place))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    for word in ("DB_PATH", "DATABASE_URL", "settings file", "--new", "strongroom config"):
        assert word in done.stderr
    assert (place if "://" not in place else place.rpartition("/")[2].partition("?")[0]) in done.stderr
    assert not (tmp_path / "elsewhere").exists()
    made = strongroom(tmp_path, "restore", archive, "--new", **place_of(place))
    assert (made.returncode, made.stderr) == (0, "")


def test_new_refuses_what_is_there(where: str, archive: str, tmp_path: Path, clock: Clock) -> None:
    """And without it what is there is replaced and kept; each says which database that is."""
    asyncio.run(live_in(where, clock))
    before = asyncio.run(copied_rows_of(where))
    done = strongroom(tmp_path, "restore", archive, "--new", **place_of(where))
    assert done.returncode == 2
    assert "Leave out --new" in done.stderr
    assert asyncio.run(copied_rows_of(where)) == before
    done = strongroom(tmp_path, "restore", archive, **place_of(where))
    assert (done.returncode, done.stderr) == (0, "")
    assert "the previous database is kept" in done.stdout
    named = where if "://" not in where else where.rpartition("/")[2].partition("?")[0]
    assert f"into {named}" in done.stdout or f"/{named}" in done.stdout


def test_new_takes_a_database_without_accounts_for_none(where: str, archive: str, tmp_path: Path, clock: Clock) -> None:
    """As a server that was started once on a new machine leaves it; it is kept all the same."""
    asyncio.run(open_database(where, clock).close())
    done = strongroom(tmp_path, "restore", archive, "--new", **place_of(where))
    assert (done.returncode, done.stderr) == (0, "")
    assert "the previous database is kept" in done.stdout
    assert (
        asyncio.run(copied_rows_of(where))["users"] == asyncio.run(copied_rows_of(str(tmp_path / "source.db")))["users"]
    )


def test_new_refuses_what_cannot_be_read(archive: str, tmp_path: Path) -> None:
    """Whether there are accounts in a damaged file nobody knows."""
    (tmp_path / "vault.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    done = strongroom(tmp_path, "restore", archive, "--new", DB_PATH="vault.db")
    assert done.returncode == 2
    assert "Leave out --new" in done.stderr
    assert [path.name for path in tmp_path.glob("vault.db*")] == ["vault.db"]


def test_no_password_is_told(archive: str, tmp_path: Path) -> None:
    """The database of PostgreSQL is named by host and name."""
    url = postgres().fresh()
    assert "?host=" in url, url
    with_password = url.replace("postgresql://postgres:@", PASSWORD_ASIDE.replace("somebody", "postgres"))
    done = strongroom(tmp_path, "restore", archive, "--new", DATABASE_URL=with_password)
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert url.rpartition("/")[2].partition("?")[0] in done.stdout or "test_" in done.stdout


def test_two_restores_within_a_second_keep_two(
    where: str,
    archive: str,
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each of what was there is where it was said to be, with its own rows."""
    asyncio.run(open_database(where, clock).close())
    monkeypatch.chdir(tmp_path)
    for name in ("DB_PATH", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in place_of(where).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(operations, "_clock", lambda: 1_800_000_000_000)
    kept = []
    for _ in range(3):
        capsys.readouterr()
        assert main(["restore", archive]) == 0
        said = capsys.readouterr().out.splitlines()
        [line] = [line for line in said if line.startswith("the previous database is kept: ")]
        kept.append(line.rpartition(" ")[2])
    assert len(set(kept)) == 3
    if "://" not in where:
        assert all(Path(path).is_file() for path in kept)
        counts = [len(asyncio.run(copied_rows_of(path))["users"]) for path in kept]
        assert counts == [0, counts[1], counts[1]]
        assert counts[1] > 0


def test_an_interrupted_new_restore_goes_on(archive: str, tmp_path: Path) -> None:
    """Killed after the new file has its name and before that is noted: the same command ends it."""
    place = str(tmp_path / "vault.db")
    assert strongroom(tmp_path, "restore", archive, "--new", DB_PATH=place).returncode == 0
    Path(f"{place}-lock").write_text("20260301T060000Z")
    done = strongroom(tmp_path, "restore", archive, "--new", DB_PATH=place)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(f"{place}-lock").read_text() == ""
