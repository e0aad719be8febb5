"""`strongroom … | head -1`: the command ends without a traceback, with the code of a program that SIGPIPE ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from strongroom.server.admin import operations
from strongroom.server.settings import resolve
from strongroom.store import open_database
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.servers.secret import SECRET


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a few accounts."""
    path = str(tmp_path_factory.mktemp("closed") / "vault.db")
    asyncio.run(open_database(path, lambda: time.time_ns() // 1_000_000).close())
    settings = resolve({"JWT_SECRET": SECRET, "DB_PATH": path})
    for number in range(3):
        operations.add_user(settings, f"person{number}@example.com", "correct horse")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("users", "list"),
        ("users", "list", "--json"),
        ("stats",),
        ("config",),
        ("doctor",),
        ("systemd",),
        ("--help",),
        ("serve", "--help"),
        ("--version",),
        ("backup", "--verify", "nowhere"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("streams", ["stdout", "both"])
def test_a_closed_pipe_ends_it_quietly(where: str, tmp_path: Path, command: tuple[str, ...], streams: str) -> None:
    """The reader has gone before anything is printed: nothing else is said, whatever the command is."""
    environment = clean_environment(DB_PATH=where, JWT_SECRET=SECRET)
    environment.pop("PYTHONUNBUFFERED", None)
    reader, writer = os.pipe()
    os.close(reader)
    with processes.Popen(
        [*STRONGROOM, *command],
        cwd=tmp_path,
        env=environment,
        stdout=writer,
        stderr=subprocess.STDOUT if streams == "both" else subprocess.PIPE,
    ) as process:
        os.close(writer)
        said = process.stderr.read() if process.stderr else b""
    silent_on_stdout = command == ("backup", "--verify", "nowhere")
    if streams == "stdout" and silent_on_stdout:
        assert (process.returncode, said.count(b"\n")) == (2, 1)
    else:
        assert (process.returncode, said) == (141, b"")
