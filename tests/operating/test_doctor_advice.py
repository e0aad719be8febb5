"""What the doctor advises can be followed as it stands, and touches nothing that the operator did not name."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from strongroom.store import open_database
from tests.kit.programs.other_user import NOBODY, as_root, as_user, public_folder
from tests.kit.servers.secret import SECRET
from tests.kit.wall_clock import now


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder of root's in which a service gets its own, as /var/lib is."""
    with public_folder() as folder:
        yield folder


def settings_of(home: Path, **more: str) -> dict[str, str]:
    return {"JWT_SECRET": SECRET, "DB_PATH": str(home / "vault.db"), "BACKUP_DIR": str(home / "backups"), **more}


def findings(told: subprocess.CompletedProcess[str], check: str) -> list[dict[str, Any]]:
    assert told.returncode in {0, 1}, told.stderr
    found: list[dict[str, Any]] = msgspec.json.decode(told.stdout)["findings"]
    return [one for one in found if one["check"] == check]


def made(home: Path, user: int = -1) -> None:
    """The folder and the database of a service."""
    home.mkdir(mode=0o700)
    asyncio.run(open_database(str(home / "vault.db"), now).close())
    for path in (home, *home.iterdir()):
        os.chown(path, user, user)


@as_root
def test_before_the_first_start_the_folder_of_the_backups_is_no_fault(state: Path) -> None:
    """The service manager makes it, or root does, by a command that touches this folder alone."""
    home = state / "service"
    [told] = findings(as_user(state, NOBODY, "doctor", "--json", **settings_of(home)), "backup")
    assert told["verdict"] == "warning"
    assert "systemd creates it at the first start" in told["todo"]
    assert f"install -d -m 0700 -o nobody {home / 'backups'}" in told["todo"]
    assert "chown" not in told["todo"]


@as_root
def test_a_missing_folder_of_backups_is_made_and_nothing_above_it_changed(state: Path) -> None:
    """Beside a database that is there, nobody else will make it: a fault."""
    home = state / "service"
    made(home, NOBODY)
    settings = settings_of(home, BACKUP_DIR=str(state / "of root" / "kept"))
    (state / "of root").mkdir(mode=0o755)
    [told] = findings(as_user(state, NOBODY, "doctor", "--json", **settings), "backup")
    assert told["verdict"] == "fault"
    assert f"install -d -m 0700 -o nobody '{state / 'of root' / 'kept'}'" in told["todo"]
    assert "chown" not in told["todo"]
    assert "chmod" not in told["todo"]


@as_root
def test_a_database_in_a_folder_of_somebody_else_gets_one_of_its_own(state: Path) -> None:
    """A folder that the operator did not name, like /tmp, is neither given away nor closed."""
    state.chmod(0o1777)
    asyncio.run(open_database(str(state / "vault.db"), now).close())
    for path in state.iterdir():
        os.chown(path, NOBODY, NOBODY)
    told = findings(
        as_user(state, NOBODY, "doctor", "--json", JWT_SECRET=SECRET, DB_PATH=str(state / "vault.db")), "permissions"
    )
    assert {one["verdict"] for one in told} == {"fault"}
    for one in told:
        assert "folder of its own" in one["todo"], one
        assert "chmod" not in one["todo"]
        assert "chown" not in one["todo"]
