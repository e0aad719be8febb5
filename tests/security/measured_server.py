"""A server in a process of its own whose memory and metrics a test looks at."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from tests.kit.programs import processes
from tests.kit.servers.memory import resident

MIB = 1024 * 1024
FIGURES = "a-token-for-the-figures"
SMALL = 4_096  # the receive buffer of a client that takes next to nothing


class MeasuredServer(NamedTuple):
    """A server in a process of its own, with an account."""

    pid: int
    port: int
    token: str
    http: httpx2.Client
    stack: ExitStack

    def registered(self, email: str) -> tuple[httpx2.Client, str]:
        """A client of another account, and its token."""
        return _registered(self.port, email, self.stack)

    @property
    def memory(self) -> int:
        return resident(self.pid, "VmRSS")

    def figure(self, name: str) -> float:
        """A figure of the server's own metrics."""
        text = self.http.get("/metrics", headers={"authorization": f"Bearer {FIGURES}"}).text
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))

    def answered(self, route: str) -> float:
        """How many requests of this route have been answered."""
        text = self.http.get("/metrics", headers={"authorization": f"Bearer {FIGURES}"}).text
        pattern = rf'^strongroom_requests_total{{[^}}]*route="{re.escape(route)}"[^}}]*}} (\S+)$'
        return sum(map(float, re.findall(pattern, text, re.MULTILINE)))


@contextmanager
def measured_server(
    folder: Path, start: Callable[..., Any] = processes.Popen, **settings: str
) -> Iterator[MeasuredServer]:
    """Run a server with these settings; `subprocess.Popen` starts it from nothing."""
    environment = {
        **os.environ,
        "JWT_SECRET": "x" * 32,
        "JWT_ACCESS_EXPIRY": "1d",  # on a busy machine, a test takes longer than a token is valid
        "DB_PATH": str(folder / "vault.db"),
        "PORT": "0",
        "METRICS_TOKEN": FIGURES,
        "LOG_LEVEL": "warning",
        **settings,
    }
    command = [sys.executable, "-m", "strongroom", "serve"]
    with (
        (folder / "log").open("wb") as log,
        start(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as server,
        ExitStack() as stack,
    ):
        stack.callback(server.kill)
        assert server.stdout is not None
        port = int(re.findall(r"http://\S+:(\d+)", server.stdout.readline())[0])
        http, token = _registered(port, "a@b.c", stack)
        yield MeasuredServer(server.pid, port, token, http, stack)


def _registered(port: int, email: str, stack: ExitStack) -> tuple[httpx2.Client, str]:
    http = stack.enter_context(httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60))
    made = http.post("/auth/email/register", json={"email": email, "password": "correct horse"}).json()
    http.headers["authorization"] = f"Bearer {made['accessToken']}"
    return http, made["accessToken"]
