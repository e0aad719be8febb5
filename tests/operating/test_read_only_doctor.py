"""`strongroom doctor` changes nothing: no byte, name, time or inode of any file."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.faults.damaged_files import Service, doctor, flip, frames
from tests.kit.programs import processes

NOBODY = 65534  # a user id that owns nothing


def listed(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Every file: inode, mode, time of change, content."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name in {"stdout", "stderr"}:
            continue
        told = path.stat()
        found[path.name] = (
            told.st_ino,
            told.st_mode,
            told.st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
    return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "home")
    one.start()
    one.write(40, random.Random(7))  # noqa: S311
    yield one
    one.server.abandon()


def unchanged(service: Service) -> None:
    """The doctor looks, and everything is as it was."""
    folder = service.server.home
    before = listed(folder)
    told = doctor(folder)
    assert told.findings["integrity"][0] == "ok", told
    assert listed(folder) == before


def test_a_log_that_a_kill_left_is_neither_folded_nor_deleted(service: Service) -> None:
    """With the index of the log, without it, and as often as it is looked at."""
    service.kill()
    assert frames(service.log) > 0
    unchanged(service)
    unchanged(service)
    (service.server.home / "vault.db-shm").unlink()
    unchanged(service)
    service.server.start()
    assert service.stored() == service.acknowledged


def test_a_file_without_a_log(service: Service) -> None:
    """After an orderly end nothing lies beside the file, and nothing does after the doctor has looked."""
    assert service.server.end() == 0
    assert not service.log.exists()
    unchanged(service)


def test_beside_a_running_server(service: Service) -> None:
    """The doctor reads what the server has written, the log included, and leaves its files alone."""
    unchanged(service)
    service.write(5, random.Random(8))  # noqa: S311
    assert service.stored() == service.acknowledged


def test_a_damaged_log(service: Service) -> None:
    """It says so, and leaves it as it is for those who may bring something out of it."""
    service.kill()
    flip(service.log, 8)
    before = listed(service.server.home)
    told = doctor(service.server.home)
    assert told.code == 1
    assert told.findings["log"][0] == "fault"
    assert listed(service.server.home) == before


@pytest.mark.parametrize("arguments", [("stats",), ("users", "list"), ("keys", "list"), ("backup", "kept.backup")])
def test_no_command_folds_a_damaged_log(service: Service, arguments: tuple[str, ...]) -> None:
    """A command beside the server refuses it with a sentence, and changes nothing."""
    service.kill()
    flip(service.log, 8)
    before = listed(service.server.home)
    ended = service.command(*arguments)
    assert ended.returncode == 2, ended
    assert "write-ahead log" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert listed(service.server.home) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("ends", ["killed", "killed, without an index", "stopped", "runs"])
def test_another_user_who_may_only_read(service: Service, ends: str) -> None:
    """Whoever may read the files, and write neither to them nor to their folder, learns the same."""
    home = service.server.home
    if ends.startswith("killed"):
        service.kill()
    elif ends == "stopped":
        service.server.end()
    if ends.endswith("index"):
        (home / "vault.db-shm").unlink()
    for folder in (home, *home.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o005)
    for path in home.iterdir():
        path.chmod(0o644)
    before = listed(home)
    ended = processes.run(
        [sys.executable, "-c", _AS_NOBODY, str(home / "vault.db")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JWT_SECRET": "x" * 32},
        cwd="/",
    )
    assert ended.stdout.count("Every page and every index of the database is sound.") == 2, ended
    assert listed(home) == before


# The interpreter and the program may lie where another user does not come: all that is needed is loaded before.
_AS_NOBODY = f"""
import os, sys
from strongroom.cli import main
main(["doctor", "--db-path", sys.argv[1]])
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(main(["doctor", "--db-path", sys.argv[1]]))
"""
