"""A lock that somebody planted beside the database: root writes to no file through it, and believes no word in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strongroom.store.file_owners import make_folder
from tests.kit.programs.command_line import strongroom

COMMANDS = (("users", "list"), ("restore", "one.backup"), ("db", "new-epoch", "--yes"))


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """A database and a backup of it."""
    given = {"DB_PATH": str(tmp_path / "vault.db")}
    assert strongroom(tmp_path, "db", "migrate", **given).returncode == 0
    assert strongroom(tmp_path, "backup", "one.backup", **given).returncode == 0
    (tmp_path / "vault.db-lock").unlink()
    return given


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_link_is_not_followed(tmp_path: Path, settings: dict[str, str], command: tuple[str, ...]) -> None:
    """Neither to a file that is there, which would be emptied, nor to one that is not, which would be made."""
    precious = tmp_path / "precious"
    for there in (True, False):
        precious.write_text("20260101T000000Z") if there else precious.unlink()
        (tmp_path / "vault.db-lock").unlink(missing_ok=True)
        (tmp_path / "vault.db-lock").symlink_to(precious)
        done = strongroom(tmp_path, *command, **settings)
        assert done.returncode == 2, done
        assert "is a link" in done.stderr
        assert "Traceback" not in done.stderr
        assert precious.exists() is there
        assert not there or precious.read_text() == "20260101T000000Z"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_another_name_of_a_file_is_no_lock(tmp_path: Path, settings: dict[str, str], command: tuple[str, ...]) -> None:
    """A hard link is told by its number of names, also where what is in it could be a restore's word."""
    for content in ("kept", "20260101T000000Z", ""):
        (tmp_path / "precious").write_text(content)
        (tmp_path / "vault.db-lock").unlink(missing_ok=True)
        os.link(tmp_path / "precious", tmp_path / "vault.db-lock")
        done = strongroom(tmp_path, *command, **settings)
        assert done.returncode == 2, done
        assert "is no lock" in done.stderr
        assert (tmp_path / "precious").read_text() == content


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_word_that_no_restore_wrote_is_refused(
    tmp_path: Path, settings: dict[str, str], command: tuple[str, ...]
) -> None:
    """It would become part of a file's name."""
    (tmp_path / "vault.db-lock").write_text("../../etc/cron.d/x")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = strongroom(tmp_path, *command, **settings)
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_folders_above_are_not_for_everybody_to_write(tmp_path: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        make_folder(tmp_path / "above" / "data")
    finally:
        os.umask(before)
    assert (tmp_path / "above").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "above" / "data").stat().st_mode & 0o777 == 0o700
