"""A real server process: started, watched, ended."""

import contextlib
import http.client
import importlib.util
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

import httpx2
import pytest

from tests.kit.cheap_hashing import PROGRAM as CHEAP
from tests.kit.programs import processes
from tests.kit.servers.postgres import postgres
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until

ENGINES = ("sqlite", "postgres")
on_a_file = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # for tests about the database file
_SOURCE = Path(__file__).parents[3] / "src"
_ADDRESS = re.compile(r"https?://(127\.0\.0\.1):(\d+)")
_SETTINGS = {
    "JWT_SECRET",
    "JWT_ISSUER",
    "JWT_ACCESS_EXPIRY",
    "JWT_REFRESH_EXPIRY",
    "DB_PATH",
    "DATABASE_URL",
    "DATABASE_POOLER_URL",
    "DB_POOL",
    "WORKERS",
    "PORT",
    "HOST",
    "VAULT_VARIANT",
    "MAX_BODY_BYTES",
    "CORS_ORIGINS",
}
_hosts = itertools.count(1)


def fresh_address() -> str:
    """A loopback address that nobody has called from before."""
    host = next(_hosts)
    return f"127.77.{host // 250}.{host % 250 + 1}"


STRONGROOM = ("-m", "strongroom")


def launch(
    home: Path, settings: dict[str, str], *options: str, program: tuple[str, ...] = STRONGROOM
) -> subprocess.Popen[bytes]:
    """Start `strongroom serve` in `home`, with these settings and none of the caller's."""
    env = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
    if importlib.util.find_spec("strongroom") is None:
        env["PYTHONPATH"] = str(_SOURCE)
    with (home / "stdout").open("wb") as stdout, (home / "stderr").open("wb") as stderr:
        return processes.Popen(
            [sys.executable, *program, "serve", *options],
            cwd=home,
            env=env | settings,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )


class Server:
    """One server over one database file; it may be ended and started again."""

    program: tuple[str, ...] = CHEAP

    def __init__(self, home: Path, engine: str = "sqlite", **settings: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.settings = {
            "JWT_SECRET": SECRET,
            "DB_PATH": str(home / "vault.db"),
            "HOST": "127.0.0.1",
            "PORT": "0",
            "LOGIN_LIMIT": "0",  # tests that share an account log in often
        } | settings
        if engine == "postgres":
            self.settings.setdefault("DATABASE_URL", postgres().migrated())
        self.port = 0
        self.process: subprocess.Popen[bytes]
        self._clients: list[httpx2.Client] = []

    def start(self, *options: str) -> Self:
        """Start the process and wait until it says where it listens."""
        self.process = self.launched(*options)
        self.port = until(self._listening, "the server's address on stdout")
        return self

    def launched(self, *options: str) -> subprocess.Popen[bytes]:
        """The process, as it is started; it may not come to listen."""
        return launch(self.home, self.settings, *options, program=self.program)

    def _listening(self) -> int:
        assert self.process.poll() is None, f"the server ended at its start: {self.log()}"
        match = _ADDRESS.search((self.home / "stdout").read_text())
        return int(match[2]) if match else 0

    def log(self) -> str:
        """What the process wrote to stderr so far."""
        return (self.home / "stderr").read_text(errors="replace")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and give the exit code."""
        self.disconnect()
        self.process.send_signal(how)
        return self.process.wait(20)

    def abandon(self) -> None:
        """Leave nothing behind, whatever state a test left the server in."""
        self.disconnect()
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)

    def disconnect(self) -> None:
        """Close the clients that were handed out."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def connect(self, token: str | None = None, address: str = "127.0.0.1") -> httpx2.Client:
        """A client that calls from `address`, with `token` as its authority."""
        client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            transport=httpx2.HTTPTransport(
                verify=False,
                trust_env=False,
                local_address=address,
                limits=httpx2.Limits(max_connections=100, keepalive_expiry=2),
            ),
            timeout=30,
            trust_env=False,
        )
        self._clients.append(client)
        return client

    def exchange(self, *pieces: bytes) -> httpx2.Response:
        """Send raw bytes, and read one answer without sending more."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as wire:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for piece in pieces:
                    wire.sendall(piece)
            answer = http.client.HTTPResponse(wire)
            answer.begin()
            content = answer.read()
            return httpx2.Response(answer.status, headers=answer.getheaders(), content=content)
