"""Two devices of one account in one process, with a server whose clock, restarts and backups are in the test's hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strongroom.client import Client, Document
from strongroom.client.replica import ReplicaCollection
from tests.kit.clients.crew import DAY, Crew
from tests.kit.network.unreliable_network import ReplicaDevice
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.restartable_server import TRASH_DAYS, RestartableServer


class Devices:
    """Two devices of one account: `here` loses answers, `there` does not."""

    def __init__(self, server: RestartableServer, home: Path, crew: Crew | None = None) -> None:
        self.server = server
        self.home = home
        self.crew = crew = crew or Crew(server, 2)
        crew.clients[0].vault("v", create=True)
        self.here, self.there = (crew.device(number, str(home / f"{number}")) for number in range(2))
        self.sync()

    def sync(self) -> None:
        """Both, until both have seen all."""
        for device in (self.here, self.there, self.here):
            device.replica.sync()

    def client(self) -> Client:
        """A client that knows nothing yet."""
        return self.crew.client()

    def login(self, password: str = PASSWORD) -> Client:
        """A new device that has logged in."""
        client = self.client()
        client.login(self.crew.email, password)
        return client

    def stored_keyring(self, device: ReplicaDevice | None = None) -> tuple[str, int, Any]:
        """The keyring, its version and the descriptor, as the server has them."""
        bearer = (device or self.here).client._core.session._access
        told = self.server.ask("GET", "/auth/keyring", bearer).body
        derivation = self.server.ask("POST", "/auth/email/prelogin", body={"email": self.crew.email}).body["kdf"]
        return told["keyring"], told["version"], derivation

    def stored_rows(self) -> dict[str, tuple[int, str]]:
        """Version and proof of every document of the vault, deleted ones included."""
        client, uid = self.here.client, self.here.client._core.keyring().vaults[0].uid
        path = f"/vaults/{uid}/documents?since=0&limit=1000"
        told = self.server.ask("GET", path, client._core.session._access).body
        return {row["uid"]: (row["version"], row["hmac"]) for row in told["documents"]}

    def restored_without_loss(self) -> None:
        """Another epoch, and nothing else."""
        self.server.backup()
        self.server.restore()

    def notes(self, device: ReplicaDevice) -> ReplicaCollection:
        return device.replica.vault("v").collection("notes")

    def get(self, device: ReplicaDevice, uid: str) -> Document:
        return self.notes(device).get(uid, deleted=True)

    def unanswered(self, stored: str = "after") -> None:
        """A sync of this device, whose process ends just after the server has the batch, or just before."""
        self.here.world.ends_at_a_batch = stored
        self.here.run(self.here.replica.sync, [], None, PASSWORD)
        self.here.world.ends_at_a_batch = ""
        assert self.here.replica.pending == 1

    def delete_there(self, uid: str) -> None:
        """The other device sees what there is, and deletes it."""
        self.there.replica.sync()
        self.notes(self.there).delete(self.get(self.there, uid))
        self.there.replica.sync()

    def replace_there(self, uid: str, value: str) -> None:
        """The other device sees what there is, and changes it; something deleted is revived."""
        self.there.replica.sync()
        self.notes(self.there).replace(self.get(self.there, uid), value)
        self.there.replica.sync()

    def empty_trash(self) -> None:
        self.server.clock.pass_((TRASH_DAYS + 1) * DAY)
        self.server.throw_away()

    def values(self) -> list[list[Any]]:
        """What is on the server, here, and there, once both have synced."""
        self.sync()
        stored = sorted(note.value for note in self.there.client.vault("v").collection("notes"))
        return [stored, *(sorted(note.value for note in self.notes(device)) for device in (self.here, self.there))]

    def close(self) -> None:
        for device in (self.here, self.there):
            device.replica.close()
