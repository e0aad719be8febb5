"""The command line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import strongroom
from tests.kit.programs import processes


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in {"JWT_SECRET", "DB_PATH", "PORT"}}
    command = [sys.executable, "-m", "strongroom", *arguments]
    return processes.run(
        command, cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False, timeout=30
    )


def test_version(tmp_path: Path) -> None:
    """It knows its own."""
    assert run("--version", cwd=tmp_path).stdout.startswith(f"strongroom {strongroom.__version__} (schema ")


def test_without_a_command_it_explains_itself(tmp_path: Path) -> None:
    """Exit code 2, as for any wrong use."""
    done = run(cwd=tmp_path)
    assert done.returncode == 2
    assert "usage: strongroom" in done.stderr
    assert "'strongroom --help' lists all of them" in done.stderr


def test_init_writes_a_secret_for_its_owner_only_and_never_twice(tmp_path: Path) -> None:
    """A second run leaves the file as it is: a new secret would log everybody out."""
    assert run("init", cwd=tmp_path).returncode == 0
    file = tmp_path / ".env"
    first = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(first.removeprefix("JWT_SECRET=").strip()) == 64
    done = run("init", cwd=tmp_path)
    assert done.returncode == 0
    assert "nothing was changed" in done.stdout
    assert file.read_text() == first
    assert first.removeprefix("JWT_SECRET=").strip() not in done.stdout


def test_a_secret_is_never_an_option(tmp_path: Path) -> None:
    """What stands on a command line stands in everybody's list of processes."""
    assert "--jwt-secret " not in run("serve", "--help", cwd=tmp_path).stdout
    assert run("serve", "--jwt-secret", "x", cwd=tmp_path).returncode == 2


def test_a_missing_secret_file_is_a_sentence(tmp_path: Path) -> None:
    """With its name."""
    done = run("serve", "--jwt-secret-file", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "strongroom: Cannot read the file nowhere that --jwt-secret-file names: No such file or directory.\n"
    )


def test_an_option_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    """Seen by which of three bad values is complained about."""
    (tmp_path / ".env").write_text("JWT_SECRET=x\nPORT=file\n")
    assert "not 'file'" in run("serve", cwd=tmp_path).stderr
    assert "PORT must be a whole number from 0 to 65535, not 'env'" in run("serve", cwd=tmp_path, PORT="env").stderr
    assert "--port must be" in run("serve", "--port", "option", cwd=tmp_path, PORT="env").stderr


def test_a_database_of_a_newer_schema_stops_the_start(tmp_path: Path) -> None:
    """One sentence, exit code 2, no traceback."""
    import apsw

    code = "import asyncio, strongroom; s = strongroom.create_server(jwt_secret='x', db_path='v.db')"
    processes.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    connection = apsw.Connection(str(tmp_path / "v.db"))
    connection.execute("INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)")
    connection.close()
    done = run("serve", cwd=tmp_path, JWT_SECRET="x" * 32, DB_PATH="v.db", PORT="0")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "install a newer strongroom" in done.stderr
