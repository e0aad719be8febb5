"""A fork of the fork server comes to the same as a true start of the program."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.waiting import until

WAYS = pytest.mark.parametrize("way", [subprocess, processes], ids=["start", "fork"])


def is_fork(pid: int) -> bool:
    return b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()


@WAYS
def test_streams_folder_variables_and_exit_code(tmp_path: Path, way: Any) -> None:
    """As they were given; a setting of the one before does not stay."""
    command = [*STRONGROOM, "db", "migrate"]
    done = way.run(command, cwd=tmp_path, env=clean_environment(DB_PATH="a.db"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "a.db ran" in done.stdout
    missing = way.run([*STRONGROOM, "stats"], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True)
    assert missing.returncode == 2
    assert "There is no database" in missing.stderr
    given = {"input": "correct horse\n", "capture_output": True, "text": True}
    env = clean_environment(DB_PATH=str(tmp_path / "a.db"))
    added = way.run([*STRONGROOM, "users", "add", "a@b.c"], env=env, **given)
    assert added.returncode == 0, added.stderr


@WAYS
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_and_its_status_is_told(tmp_path: Path, way: Any, end: signal.Signals) -> None:
    """In order, or by the signal; nothing is left of it."""
    env = clean_environment(JWT_SECRET="x" * 32, DB_PATH=str(tmp_path / "vault.db"), PORT="0")
    with (tmp_path / "out").open("wb") as out:
        process = way.Popen([*STRONGROOM, "serve"], env=env, stdout=out, stderr=subprocess.DEVNULL)
    until(lambda: "docs" in (tmp_path / "out").read_text(), "the start")
    assert is_fork(process.pid) is (way is processes)
    assert process.poll() is None
    process.send_signal(end)
    assert process.wait(30) == (0 if end is signal.SIGTERM else -end)
    assert not Path(f"/proc/{process.pid}").exists()


@pytest.mark.parametrize(
    "needs",
    [
        lambda command: {"args": ["sh", "-c", "exec " + " ".join(command)]},
        lambda command: {"args": command, "env": {**os.environ, "PYTHONUTF8": "0"}},
        lambda command: {"args": command, "pass_fds": [2]},
    ],
    ids=["a shell", "a variable of the interpreter", "a descriptor"],
)
def test_what_needs_a_true_start_gets_one(tmp_path: Path, needs: Callable[[list[str]], dict[str, Any]]) -> None:
    """A fork could not give it that."""
    command = [*STRONGROOM, "serve", "--db-path", str(tmp_path / "vault.db"), "--port", "0"]
    given = {"env": clean_environment(), **needs(command)}
    given["env"] = {**given["env"], "JWT_SECRET": "x" * 32}
    with (tmp_path / "out").open("wb") as out:
        process = processes.Popen(given.pop("args"), stdout=out, stderr=subprocess.DEVNULL, **given)
    try:
        until(lambda: "docs" in (tmp_path / "out").read_text(), "the start")
        assert not is_fork(process.pid)
    finally:
        process.kill()
        process.wait(30)
