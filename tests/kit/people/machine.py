"""A server with a vault of secrets, and a machine that has a token for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strongroom.client import Client
from tests.kit.servers.process import Server

SECRETS = {
    "Database": "db-pw-Zk81/\"+ql'x",
    "Wiki": "wiki-pw-77Qm",
    "Bank": "bank-pw-Lr5n0Vt",
}


class World:
    """The server, its owner's client, and a folder for the machine."""

    def __init__(self, home: Path, server: Server, owner: Client) -> None:
        self.home = home
        self.server = server
        self.url = f"http://127.0.0.1:{server.port}"
        self.owner = owner
        self.vault = owner.vault("office", create=True)
        self.items = self.vault.collection("items")
        for title, password in SECRETS.items():
            self.login(title, password)
        self.login("Twin", "first-twin")
        self.login("Twin", "second-twin")
        self.memory = owner.vault("agents", create=True).collection("memory")
        self.environment = {
            "STRONGROOM_HOME": str(home / "strongroom"),
            "STRONGROOM_URL": self.url,
            "STRONGROOM_TOKEN": self.vault.token("machine"),
        }

    def login(self, title: str, password: str) -> None:
        """Add a login to the vault."""
        self.items.create({"type": "login", "title": title, "username": f"user-of-{title}", "password": password})

    def file(self, name: str, text: str, mode: int = 0o600) -> Path:
        """A file of the machine."""
        path = self.home / name
        path.write_text(text)
        path.chmod(mode)
        return path


@contextmanager
def opened_world(server: Path, home: Path) -> Iterator[World]:
    """Start the server, and end it."""
    running = Server(server)
    home.chmod(0o700)
    try:
        running.start()
        with Client(f"http://127.0.0.1:{running.port}") as owner:
            owner.register("ada@example.com", "correct horse battery")
            yield World(home, running, owner)
        assert running.end() == 0
    finally:
        running.abandon()
