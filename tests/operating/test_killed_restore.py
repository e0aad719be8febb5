"""A restore that was killed while it exchanged the files: nobody opens what lies there before it is finished."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from strongroom.store import locks
from tests.kit.faults.damaged_files import Service, doctor
from tests.kit.programs.command_line import clean_environment, strongroom

CHANCE = random.Random(14)  # noqa: S311
KILLED = """
import os, signal, sys
from pathlib import Path
from strongroom.cli import main
renames, real = iter(range(int(sys.argv.pop(1)))), Path.rename
def rename(self, target):
    if next(renames, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.rename = rename
main(sys.argv[1:])
"""
COMMANDS = (
    ("backup", "two"),
    ("users", "list"),
    ("stats",),
    ("db", "copy", "vault.db", "copy.db"),
    ("db", "copy", "other.db", "vault.db"),
    ("db", "migrate"),
    ("db", "new-epoch", "--yes"),
    ("vacuum", "--yes"),
    ("salvage", "vault.db", "four.db"),
    ("serve", "--port", "0"),
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service with a backup, and with documents that only its log has; killed."""
    one = Service(tmp_path / "home")
    one.start()
    one.write(5, CHANCE)
    assert one.command("backup", "one").returncode == 0
    other = {"DB_PATH": str(one.server.home / "other.db")}
    assert strongroom(one.server.home, "db", "migrate", **other).returncode == 0
    one.write(40, CHANCE)
    one.kill()
    yield one
    one.server.abandon()


def kill_at(service: Service, rename: int) -> None:
    """Begin to restore, up to this rename."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(rename), "restore", "one"],
        cwd=service.server.home,
        env=clean_environment(DB_PATH=str(service.database)),
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert locks.restore_mark_of(service.database)


@pytest.mark.parametrize("rename", range(4))
def test_nobody_opens_it_in_between(service: Service, rename: int) -> None:
    """The log may have gone ahead of its file, and the file before the new one is there. The next restore ends it."""
    kill_at(service, rename)
    assert service.database.exists() == (rename < 3)
    assert service.log.exists() == (rename < 1)
    before = {path.name: path.read_bytes() for path in service.server.home.iterdir() if path.is_file()}
    for command in COMMANDS:
        done = service.command(*command)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (command, done)
        assert "was interrupted" in done.stderr, (command, done)
        assert "estore" in done.stderr, (command, done)
        left = {path.name: path.read_bytes() for path in service.server.home.iterdir() if path.is_file()}
        assert left == before, command
    said = doctor(service.server.home)
    assert said.code == 1
    assert "was interrupted" in str(said.findings)
    assert service.command("restore", "one").returncode == 0
    [kept] = service.server.home.glob("vault.db.before-????????T??????Z")
    connection = apsw.Connection(str(kept))
    assert connection.execute("SELECT count(*) FROM documents").fetchall() == [(45,)]
    connection.close()
    service.server.start()
    assert list(service.stored().items()) == list(service.acknowledged.items())[:5]
