"""A server in a process of its own, started by `strongroom serve`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.waiting import until

PASSWORD = "correct horse"


@contextmanager
def running(folder: Path, *options: str, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server process, and what it says it listens on."""
    env = clean_environment(**{"DB_PATH": str(folder / "vault.db"), "PORT": "0", "LOGIN_LIMIT": "0", **settings})
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("ab") as err:
        process = processes.Popen([*STRONGROOM, "serve", *options], cwd=folder, env=env, stdout=out, stderr=err)

    def listens() -> str:
        assert process.poll() is None, (folder / "stderr").read_text()
        said = (folder / "stdout").read_text()
        return said.split("\n")[0].rpartition(" ")[2] if "data" in said else ""

    try:
        yield process, until(listens, "the server's address")
    finally:
        process.kill()
        process.wait(20)


def logged(folder: Path) -> list[str]:
    """The messages about the server itself in the log of a server that runs in a folder."""
    lines = [line for line in (folder / "stderr").read_text().splitlines() if line.startswith("{")]
    return [entry["message"] for entry in map(json.loads, lines) if entry["event"] == "server"]


def status_on_new_connection(url: str, bearer: str) -> int:
    """The status of a request on a connection of its own, so that any of the processes may take it."""
    with httpx2.Client(verify=False, trust_env=False) as http:
        return http.get(url, headers={"authorization": f"Bearer {bearer}"}).status_code
