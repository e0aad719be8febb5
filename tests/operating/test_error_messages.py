"""Error messages tell what to do: without the client's library, of a failed backup, of misspelt settings at SIGHUP."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.programs.command_line import clean_environment, strongroom
from tests.kit.servers.process import Server
from tests.kit.servers.server_process import running
from tests.kit.waiting import until

SECRET = "a secret of the tests, long enough to sign with"
CLIENT = "import sys; sys.modules['httpx2'] = None; from strongroom.client import {0}; {0}('http://127.0.0.1:1')"


@pytest.mark.parametrize("name", ["Client", "AsyncClient"])
def test_a_client_without_its_library_says_what_to_install(name: str) -> None:
    """When it is made, and not at its first request."""
    command = [sys.executable, "-c", CLIENT.format(name)]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "pip install 'strongroom[client]'" in done.stderr.splitlines()[-1], done.stderr


def test_a_failed_backup_says_what_to_do(tmp_path: Path) -> None:
    """In the same line of the log."""
    (tmp_path / "file").touch()
    server = Server(tmp_path / "home", BACKUP_DIR=str(tmp_path / "file" / "kept"))
    server.start()
    until(lambda: "backup failed" in server.log(), "a line about the backup")
    assert server.end() == 0
    [line] = [line for line in server.log().splitlines() if "backup failed" in line][:1]
    assert "'strongroom doctor' says what is wrong" in line


@pytest.mark.parametrize("workers", ["1", "2"])
def test_near_misses_are_told_at_sighup(tmp_path: Path, workers: str) -> None:
    """Once, however many processes there are; what was right is taken all the same."""
    (tmp_path / ".env").write_text(f"JWT_SECRET={SECRET}\nWORKERS={workers}\n")
    with running(tmp_path) as (process, _):
        (tmp_path / ".env").write_text(f"JWT_SECRET={SECRET}, another\nWORKERS={workers}\nJWT_SECRT=x\n")
        process.send_signal(signal.SIGHUP)

        def log() -> str:
            return (tmp_path / "stderr").read_text()

        until(lambda: log().count("Changed: JWT_SECRET") == int(workers), "word of the secret")
        until(lambda: "JWT_SECRT in .env is not a setting; did you mean JWT_SECRET?" in log(), "word of the near miss")
        assert log().count("JWT_SECRT") == 1


def test_how_often_backups_are_made_is_written_in_one_way(tmp_path: Path) -> None:
    """In the help, in docs/settings.md and where it is refused."""
    notation = "a number and ms, s, m, h, d or w"
    done = strongroom(tmp_path, "serve", JWT_SECRET=SECRET, BACKUP_EVERY="daily")
    assert done.returncode == 2
    assert f"BACKUP_EVERY must be {notation}" in done.stderr
    shown = " ".join(strongroom(tmp_path, "serve", "--help-all").stdout.split())
    assert f"How often it makes one: {notation}, at least 1s" in shown
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    assert f"How often it makes one: {notation}, at least 1s" in page
