"""DB_PATH may be a symbolic link to the file: lock, log and restore are those of the file that it leads to."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.store import locks
from strongroom.store.sqlite import write_ahead_log
from tests.kit.faults.damaged_files import FRAME, Service, doctor, flip, frames

CHANCE = random.Random(12)  # noqa: S311


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service whose DB_PATH is a link into another folder."""
    one = Service(tmp_path / "home")
    (tmp_path / "disk").mkdir()
    one.database.parent.mkdir(exist_ok=True)
    one.database.symlink_to(tmp_path / "disk" / "real.db")
    one.log = tmp_path / "disk" / "real.db-wal"
    one.start()
    one.write(20, CHANCE)
    yield one
    one.server.abandon()


def test_a_restore_refuses_while_a_server_runs(service: Service) -> None:
    """By either name of the file."""
    real = service.database.resolve()
    assert locks.is_served(service.database)
    assert locks.is_served(real)
    assert service.command("backup", "one").returncode == 0
    for path in (service.database, real):
        refused = service.command("restore", "one", "--db-path", str(path))
        assert (refused.returncode, "A server is using" in refused.stderr) == (2, True), refused.stderr
    service.write(3, CHANCE)
    assert service.stored() == service.acknowledged
    assert not service.database.with_name("vault.db-lock").exists()


def test_a_restore_replaces_the_file_and_keeps_the_link(service: Service) -> None:
    """What a server wrote after the backup is kept beside the real file."""
    assert service.command("backup", "one").returncode == 0
    assert service.server.end() == 0
    done = service.command("restore", "one")
    assert done.returncode == 0, done.stderr
    assert service.database.is_symlink()
    service.server.start()
    assert service.stored() == service.acknowledged


def test_a_damaged_log_is_found(service: Service) -> None:
    """SQLite keeps the log beside the real file; it is looked for there."""
    service.kill()
    old = write_ahead_log.inspect(service.database)
    assert old.readable > 10
    flip(service.log, 32 + frames(service.log) // 2 * FRAME + 700)
    assert write_ahead_log.inspect(service.database).damaged
    assert doctor(service.server.home).findings["log"][0] == "fault"
    refused = service.command("users", "list")
    assert (refused.returncode, "is damaged" in refused.stderr) == (2, True), refused.stderr
    saved = service.server.home / "saved"
    os.link(service.log, saved)
    assert service.command("salvage", "vault.db", "out.db").returncode in {0, 1}
    service.server.start()
    assert len(list(service.log.parent.glob("real.db-wal.damaged-*"))) == 1
    assert "was damaged" in service.server.log()
