"""Two devices of one account, each with a replica, against a live server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strongroom.client.replica import Conflict
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email


class Pair:
    """Two devices of one account, each with a replica."""

    def __init__(self, clients: ClientFactory, home: Path, urls: tuple[str | None, str | None] = (None, None)) -> None:
        self.email = unique_email()
        self.clients = [clients.client(url) for url in urls]
        self.clients[0].register(self.email, PASSWORD)
        self.clients[0].vault("v", create=True)
        self.clients[1].login(self.email, PASSWORD)
        self.replicas = [client.open_replica(home / f"replica-{n}") for n, client in enumerate(self.clients)]
        for replica in self.replicas:
            replica.sync()
        self.notes = [replica.vault("v").collection("notes") for replica in self.replicas]

    def sync(self, **options: Any) -> None:
        """Both devices, until both have seen all."""
        for replica in (*self.replicas, *self.replicas):
            replica.sync(**options)

    def values(self) -> list[list[Any]]:
        """What each device shows, in an order of its own."""
        return [sorted((note.value for note in notes), key=str) for notes in self.notes]

    def disputed(self) -> Conflict:
        """A document that both devices have changed: the first one synced."""
        note = self.notes[0].create("base")
        self.sync()
        self.notes[0].replace(self.notes[0].get(note.uid), "theirs")
        self.notes[1].replace(self.notes[1].get(note.uid), "mine")
        self.replicas[0].sync()
        [conflict] = self.replicas[1].sync().conflicts
        assert isinstance(conflict, Conflict)
        return conflict

    def close(self) -> None:
        for replica in self.replicas:
            replica.close()
