"""A file that another user planted under the name of a lock gains nothing, and costs no file of root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.store import owners
from tests.conftest import SECRET
from tests.support.command_line import strongroom
from tests.support.other_user import NOBODY, as_root, public_folder

pytestmark = as_root


@pytest.fixture
def home() -> Iterator[Path]:
    """The folder of a service that runs as another user, with a database and a backup of it."""
    with public_folder() as folder:
        home = folder / "service"
        home.mkdir(mode=0o700)
        os.chown(home, NOBODY, NOBODY)
        settings = {"DB_PATH": str(home / "vault.db")}
        assert strongroom(home, "db", "migrate", **settings).returncode == 0
        assert strongroom(home, "backup", str(home / "one"), **settings).returncode == 0
        yield home


def settings_of(home: Path) -> dict[str, str]:
    return {"DB_PATH": str(home / "vault.db"), "BACKUP_DIR": str(home / "kept"), "JWT_SECRET": SECRET}


COMMANDS = [("restore", "one"), ("users", "list"), ("db", "new-epoch"), ("db", "migrate")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("content", ["precious", "20260101T000000Z", "", None])
def test_a_link_is_not_followed(home: Path, command: tuple[str, ...], content: str | None) -> None:
    """Neither written to, nor read as the word of a restore, nor made where it leads nowhere."""
    target = home.parent / "of-root"
    if content is not None:
        target.write_text(content)
    (home / "vault.db-lock").unlink()
    (home / "vault.db-lock").symlink_to(target)
    done = strongroom(home, *command, **settings_of(home))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "vault.db-lock" in done.stderr
    assert (target.read_text() if target.exists() else None) == content


@pytest.mark.parametrize("what", ["words", "a path", "fifo", "folder", "of another user"])
def test_what_is_no_lock_is_refused(home: Path, what: str) -> None:
    """Whatever lies there under the name, it is a sentence, and it stays as it is."""
    lock = home / "vault.db-lock"
    if what in {"words", "a path"}:
        lock.write_text("precious" if what == "words" else "/../../x")
    elif what == "of another user":
        os.chown(lock, 4321, 4321)
    else:
        lock.unlink()
        (os.mkfifo if what == "fifo" else os.mkdir)(lock)
    before = lock.read_bytes() if lock.is_file() else None
    for command in COMMANDS:
        done = strongroom(home, *command, **settings_of(home))
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), (command, done.stderr)
        assert "vault.db-lock" in done.stderr
    assert (lock.read_bytes() if lock.is_file() else None) == before
    assert "Traceback" not in strongroom(home, "doctor", **settings_of(home)).stderr


def test_the_lock_of_the_backups_is_guarded_too(home: Path) -> None:
    target = home.parent / "of-root"
    (home / "kept").mkdir()
    (home / "kept" / ".lock").symlink_to(target)
    done = strongroom(home, "backup", "--scheduled", **settings_of(home))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert not target.exists()


def test_a_link_of_another_user_to_a_file_of_root(home: Path) -> None:
    """Whoever owns the folder does not have root replace a file elsewhere by a link under the name of the database."""
    target = home.parent / "of-root"
    target.write_text("precious")
    (home / "vault.db").rename(home / "elsewhere.db")
    (home / "vault.db").symlink_to(target)
    os.chown(home / "vault.db", NOBODY, NOBODY, follow_symlinks=False)
    done = strongroom(home, "restore", "one", **settings_of(home))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert target.read_text() == "precious"
    (home / "vault.db").unlink()
    (home / "vault.db").symlink_to(home / "elsewhere.db")
    os.chown(home / "vault.db", NOBODY, NOBODY, follow_symlinks=False)
    assert strongroom(home, "restore", "one", **settings_of(home)).returncode == 0


def test_a_database_in_a_folder_of_root(home: Path) -> None:
    """The lock belongs to the owner of the database; that is no other user."""
    os.chown(home, 0, 0)
    for command in COMMANDS:
        done = strongroom(home, *command, **settings_of(home))
        assert done.returncode == 0, (command, done.stderr)


def test_folders_above_are_not_for_everybody_to_write(tmp_path: Path) -> None:
    """Also where nothing else masks it."""
    old = os.umask(0)
    try:
        owners.make_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(old)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/c")]
    assert modes == [0o755, 0o755, 0o700]
