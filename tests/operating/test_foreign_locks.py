"""Another program locks the folder of the database, or its lock: nobody waits for ever, and a sentence says so."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.store import locks
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment, strongroom
from tests.kit.servers.secret import SECRET

COMMANDS = {
    ("serve", "--port", "0"): 2,
    ("serve", "--port", "0", "--workers", "2"): 2,
    ("users", "list"): 2,
    ("backup", "one"): 2,
    ("salvage", "vault.db", "salvaged.db"): 2,
    ("doctor",): 1,
}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    given = {"DB_PATH": str(tmp_path / "vault.db"), "JWT_SECRET": SECRET}
    assert strongroom(tmp_path, "db", "migrate", **given).returncode == 0
    return given


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """The folder, locked as any process can that may list it."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield descriptor
    os.close(descriptor)


def begin(home: Path, settings: dict[str, str], command: tuple[str, ...]) -> subprocess.Popen[str]:
    return processes.Popen(
        [*STRONGROOM, *command],
        cwd=home,
        env=clean_environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nobody_waits_for_ever(tmp_path: Path, settings: dict[str, str], folder: int) -> None:
    """The folder stays locked: each ends with a sentence that names what it waited for, and how long."""
    begun = {command: begin(tmp_path, settings, command) for command in COMMANDS}
    try:
        for command, process in begun.items():
            out, err = process.communicate(timeout=locks.LOCK_SECONDS * 4)
            assert process.returncode == COMMANDS[command], (command, out, err)
            said = out if command == ("doctor",) else err
            assert "vault.db-lock" in said, (command, said)
            assert f"locked the folder {tmp_path} for {locks.LOCK_SECONDS} seconds" in said, (command, said)
            assert "Traceback" not in err, (command, err)
    finally:
        for process in begun.values():
            process.kill()
            process.wait()
    fcntl.flock(folder, fcntl.LOCK_UN)
    assert strongroom(tmp_path, "users", "list", **settings).returncode == 0


def test_a_lock_that_is_let_go_in_time_is_waited_for(tmp_path: Path, settings: dict[str, str], folder: int) -> None:
    """As another start does that takes its turn."""
    process = begin(tmp_path, settings, ("users", "list"))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)
    fcntl.flock(folder, fcntl.LOCK_UN)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)


def test_a_lock_that_another_program_has_is_named(tmp_path: Path, settings: dict[str, str]) -> None:
    """The one that servers share: it may be a restore, or anybody."""
    with (tmp_path / "vault.db-lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = strongroom(tmp_path, "serve", "--port", "0", **settings)
    assert done.returncode == 2
    assert str(tmp_path / "vault.db-lock") in done.stderr


def test_a_pipe_in_the_place_of_the_lock_keeps_nobody_waiting(tmp_path: Path, settings: dict[str, str]) -> None:
    """Whoever opened it to read would wait for one who writes."""
    (tmp_path / "vault.db-lock").unlink()
    os.mkfifo(tmp_path / "vault.db-lock")
    for command in COMMANDS:
        process = begin(tmp_path, settings, command)
        try:
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
        assert process.returncode in {0, 1, 2}, (command, err)
        assert "Traceback" not in err, (command, err)
