"""The devices of one account, on a server in this process and a network that fails as a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import Client
from tests.kit.network.unreliable_network import URL, ReplicaDevice, World
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.restartable_server import RestartableServer

DAY = 86_400_000


class Crew:
    """The devices of one account, logged in once: deriving a key takes longer than a whole example."""

    def __init__(self, server: RestartableServer, most: int) -> None:
        self.server = server
        self.late: list[Callable[[], Any]] = []
        self.email = unique_email()
        self.clients = [self.client() for _ in range(most)]
        self.clients[0].register(self.email, PASSWORD)
        for client in self.clients[1:]:
            client.login(self.email, PASSWORD)

    def client(self) -> Client:
        """A client that nobody has logged in with."""
        client = Client(URL)
        client._driver = World(self.server, self.late)
        return client

    def device(self, number: int, path: str) -> ReplicaDevice:
        """A device with the client of this number, whose replica is in a new file."""
        return ReplicaDevice(World(self.server, self.late), self.clients[number], path)

    def close(self) -> None:
        """Give back what the clients use."""
