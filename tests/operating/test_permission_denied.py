"""Whoever may not read the service's files is told whose they are, and how to run the command."""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.store import open_database
from tests.kit.programs.other_user import NOBODY, as_root, as_user, public_folder
from tests.kit.servers.secret import SECRET

OWNER = pwd.getpwnam("daemon")
COMMANDS = (
    ("users", "list"), ("keys", "list"), ("stats",), ("vacuum", "--yes"), ("doctor",), ("serve",),
    ("backup", "kept.backup"), ("restore", "kept.backup"), ("db", "migrate"), ("db", "new-epoch", "--yes"),
    ("db", "copy", "{database}", "copy.db"), ("salvage", "{database}", "new.db"),
)  # fmt: skip


@pytest.fixture
def service_folder() -> Iterator[Path]:
    """The folder of a service that belongs to another user; the file in it is closed, and the folder is open."""
    with public_folder() as folder:
        service_folder = folder / "service"
        service_folder.mkdir(mode=0o755)
        asyncio.run(open_database(str(service_folder / "vault.db"), lambda: time.time_ns() // 1_000_000).close())
        for path in (service_folder, *service_folder.iterdir()):
            os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
        yield service_folder


@as_root
@pytest.mark.parametrize("closed", ["file", "folder"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_database_of_another_user(service_folder: Path, command: tuple[str, ...], closed: str) -> None:
    """Exit code 2 and one line, with the owner and the way; nothing is made."""
    service_folder.chmod(0o755 if closed == "file" else 0o700)
    database = str(service_folder / "vault.db")
    arguments = [part.format(database=database) for part in command]
    done = as_user(service_folder.parent, NOBODY, *arguments, DB_PATH=database, JWT_SECRET=SECRET, PORT="0")
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    assert database in done.stderr
    if not (command[0] == "salvage" and closed == "file"):
        assert "belongs to daemon" in done.stderr
        assert "sudo -u daemon strongroom" in done.stderr
    assert [path.name for path in service_folder.parent.iterdir()] == ["service"]


@as_root
def test_settings_of_root_that_a_group_may_read(service_folder: Path) -> None:
    """As in /etc: the service's user has the name of the group. An archive of the service is told of likewise."""
    settings = service_folder.parent / "settings"
    settings.write_text(f"JWT_SECRET={SECRET}\n")
    os.chown(settings, 0, OWNER.pw_gid)
    settings.chmod(0o640)
    done = as_user(service_folder.parent, NOBODY, "users", "list", "--settings", str(settings))
    assert done.returncode == 2
    assert "belongs to root" in done.stderr
    assert "sudo -u daemon strongroom" in done.stderr
    archive = service_folder / "kept.backup"
    archive.touch(0o600)
    os.chown(archive, OWNER.pw_uid, OWNER.pw_gid)
    done = as_user(service_folder.parent, NOBODY, "backup", "--verify", str(archive))
    assert done.returncode == 2
    assert "sudo -u daemon strongroom" in done.stderr


@as_root
def test_a_file_of_ones_own_that_is_closed(service_folder: Path) -> None:
    """Another user would not help: its mode does."""
    database = service_folder / "vault.db"
    for path in (service_folder, *service_folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    database.chmod(0)
    done = as_user(service_folder, NOBODY, "users", "list", DB_PATH="vault.db")
    assert done.returncode == 2
    assert f"chmod u+rwX {database}" in done.stderr
