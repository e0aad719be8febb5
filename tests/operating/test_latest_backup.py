"""`--latest` takes the newest backup whose name can be believed, and says which one that is."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from strongroom.server.backup_schedule import backup_name
from tests.kit.clock import Clock
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.populated_database import live_in

DAY = 24 * 3600 * 1000


@pytest.fixture
def service_folder(tmp_path: Path, clock: Clock) -> Path:
    """A service with a folder of backups: an old one, a newer one, and one that is dated in a hundred days."""
    asyncio.run(live_in(str(tmp_path / "vault.db"), clock))
    (tmp_path / ".env").write_text("DB_PATH=vault.db\nBACKUP_DIR=kept\n")
    (tmp_path / "kept").mkdir()
    now = time.time_ns() // 1_000_000
    old, new, ahead = (tmp_path / "kept" / backup_name(now + days * DAY) for days in (-9, -1, 100))
    assert strongroom(tmp_path, "backup", str(new)).returncode == 0
    shutil.copy(new, old)
    ahead.write_text("not an archive")
    return tmp_path


def newest_name(service_folder: Path) -> str:
    return sorted(path.name for path in (service_folder / "kept").iterdir())[1]


@pytest.mark.parametrize("command", [("backup", "--verify"), ("restore",)])
def test_the_newest_that_can_be_believed_is_taken(service_folder: Path, command: tuple[str, ...]) -> None:
    """And is named, with the moment when it was made."""
    done = strongroom(service_folder, *command, "--latest")
    assert (done.returncode, done.stderr) == (0, "")
    assert newest_name(service_folder) in done.stdout
    assert time.strftime("created %Y-%m-%d ", time.gmtime()) in done.stdout


@pytest.mark.parametrize("command", [("backup", "--verify"), ("restore",)])
def test_without_one_nothing_is_done(service_folder: Path, command: tuple[str, ...]) -> None:
    """Exit code 2 and a sentence: no folder is set, it is not there, or it holds none; and never two names."""
    before = (service_folder / "vault.db").read_bytes()
    (service_folder / "empty").mkdir()
    for settings, said in (
        ({"BACKUP_DIR": ""}, "BACKUP_DIR is not set"),
        ({"BACKUP_DIR": str(service_folder / "nowhere")}, "No such file or directory"),
        ({"BACKUP_DIR": str(service_folder / "empty")}, f"There is no backup in BACKUP_DIR {service_folder / 'empty'}"),
    ):
        done = strongroom(service_folder, *command, "--latest", **settings)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert said in done.stderr
    (service_folder / "kept" / newest_name(service_folder)).unlink()
    min((service_folder / "kept").iterdir()).unlink()
    done = strongroom(service_folder, *command, "--latest")
    assert done.returncode == 2
    assert "dated in the future" in done.stderr
    both = strongroom(service_folder, *command, "--latest", "one")
    assert both.returncode == 2
    assert "not both" in both.stderr
    neither = strongroom(service_folder, *command)
    assert neither.returncode == 2
    assert "FILE" in neither.stderr
    assert (service_folder / "vault.db").read_bytes() == before


def test_a_backup_is_not_written_to_the_latest(service_folder: Path) -> None:
    """To make one, a name is needed."""
    done = strongroom(service_folder, "backup", "--latest")
    assert done.returncode == 2
    assert "--verify" in done.stderr
