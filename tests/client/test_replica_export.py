"""A replica writes what it holds to a file, without a server; `import_account` takes it."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client, Locked
from strongroom.client.format import seal
from tests.client.conftest import factory
from tests.client.moving_accounts import url_of
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


class Device:
    """A device with a replica that has seen some documents and blobs, and has changes that are not sent."""

    def __init__(self, clients: ClientFactory, home: Path) -> None:
        self.clients, self.path, self.email = clients, home / "replica", unique_email()
        self.client = clients.client()
        self.client.register(self.email, PASSWORD)
        vault = self.client.vault("v", create=True)
        notes = vault.collection("notes")
        vault.blob.put({"settings": 1})
        for name in ("kept", "changed", "removed", "long gone"):
            notes.create({"name": name})
        self.replica = self.client.open_replica(self.path)
        self.replica.sync()
        notes.delete(next(note for note in notes if note.value["name"] == "long gone"))
        self.replica.sync()
        self.notes = self.replica.vault("v").collection("notes")
        by_name = {note.value["name"]: note for note in self.notes}
        self.notes.replace(by_name["changed"], {"name": "changed, not sent"})
        self.notes.delete(by_name["removed"])
        self.notes.create({"name": "new, not sent"})
        self.replica.vault("made here", create=True).collection("notes").create({"name": "in a new vault"})


def held(client: Any) -> dict[str, list[str]]:
    """The names of all notes, by vault."""
    return {vault.name: sorted(note.value["name"] for note in vault.collection("notes")) for vault in client.vaults()}


EXPECTED = {"v": ["changed, not sent", "kept", "new, not sent"], "made here": ["in a new vault"]}


@pytest.fixture
def device(clients: ClientFactory, tmp_path: Path) -> Iterator[Device]:
    """A device of each kind."""
    made = Device(clients, tmp_path)
    yield made
    made.replica.close()


@pytest.mark.both_languages
def test_the_file_holds_what_the_replica_holds(
    clients: ClientFactory, device: Device, other_server: Server, tmp_path: Path
) -> None:
    """Documents, blobs, deletions, queued changes and vaults that were made offline; in the other language too."""
    path = tmp_path / "file"
    device.replica.export(path)
    for kind in ("blocking", "typescript"):
        other = factory(kind, clients.url)
        with pytest.raises(Exception, match="has the account, with the key derivation"):
            other.import_account(clients.url, path, device.email, PASSWORD)
        other.close()
    moved = clients.import_account(url_of(other_server), path, device.email, PASSWORD)
    assert held(moved) == EXPECTED
    assert moved.vault("v").blob.get().value == {"settings": 1}
    deleted = moved.vault("v").collection("notes").trash
    assert sorted(note.value["name"] for note in deleted) == ["long gone", "removed"]
    new = moved.vault("v").collection("notes").create({"name": "at home"})
    assert moved.vault("v").collection("notes").get(new.uid).version == 1


@pytest.mark.both_languages
def test_what_is_below_the_floor_is_in_the_file_under_the_newest_keys(
    clients: ClientFactory, device: Device, other_server: Server, tmp_path: Path
) -> None:
    """The keys were rotated elsewhere: this device has the new keyring, and nothing that was encrypted again."""
    elsewhere, path = clients.client(), tmp_path / "file"
    elsewhere.login(device.email, PASSWORD)
    assert list(elsewhere.rotate_keys(PASSWORD).unseen) == []
    device.replica.close()
    device.client.login(device.email, PASSWORD)
    device.replica = device.client.open_replica(device.path)
    pending = device.replica.pending
    device.replica.export(path)
    assert device.replica.pending == pending
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [line for line in lines if line["kind"] == "document"]
    stored = {vault.name: vault.uid for vault in elsewhere.vaults()}
    generations = {
        seal.read_proof(row["hmac"]).generation
        for row in rows
        if row["vaultUid"] == stored["v"] and row.get("deletedAt") is None
    }
    assert generations == {2}
    moved = clients.import_account(url_of(other_server), path, device.email, PASSWORD)
    assert held(moved) == EXPECTED
    assert moved.vault("v").blob.get().value == {"settings": 1}
    deleted = moved.vault("v").collection("notes").trash
    assert sorted(note.value["name"] for note in deleted) == ["long gone", "removed"]


@pytest.mark.both_languages
def test_it_needs_no_server(clients: ClientFactory, device: Device, tmp_path: Path) -> None:
    """The replica is opened with the password alone, and changes nothing by that."""
    device.replica.close()
    offline = clients.client("http://127.0.0.1:1")
    offline.unlock(device.path, PASSWORD)
    replica = offline.open_replica(device.path)
    pending = replica.pending
    replica.export(tmp_path / "one")
    replica.export(tmp_path / "one")
    assert replica.pending == pending
    replica.close()
    lines = [json.loads(line) for line in (tmp_path / "one").read_text().splitlines()]
    assert [line["kind"] for line in lines[:2]] == ["header", "keyring"]
    assert lines[-1]["counts"]["documents"] == 6
    assert b"not sent" not in (tmp_path / "one").read_bytes()


def test_only_its_owner_can_read_the_file(device: Device, tmp_path: Path) -> None:
    """As with the export of an account; another file is not replaced."""
    device.replica.export(tmp_path / "file")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    (tmp_path / "letter").write_text("Dear")
    with pytest.raises(Exception, match="path"):
        device.replica.export(tmp_path / "letter")
    assert (tmp_path / "letter").read_text() == "Dear"


@pytest.mark.both_languages
def test_a_token_exports_nothing(clients: ClientFactory, device: Device, tmp_path: Path) -> None:
    """The replica of a token has no keyring."""
    token = device.client.vault("v").collection("notes").token("agent")
    replica = clients.with_token(token).open_replica(tmp_path / "agent")
    with pytest.raises(Locked):
        replica.export(tmp_path / "file")
    replica.close()


@pytest.mark.both_languages
def test_an_unsynced_replica_exports_a_file_that_can_be_imported(
    clients: ClientFactory, other_server: Server, tmp_path: Path
) -> None:
    """A vault that it never fetched is in the directory, and not in the file."""
    client, email = clients.client(), unique_email()
    client.register(email, PASSWORD)
    client.vault("v", create=True)
    replica = client.open_replica(tmp_path / "replica")
    replica.export(tmp_path / "file")
    replica.close()
    moved = clients.import_account(url_of(other_server), tmp_path / "file", email, PASSWORD)
    assert [vault.name for vault in moved.vaults()] == []
    moved.vault("v", create=True).collection("notes").create({"name": "again"})
    with Client(url_of(other_server)) as fresh:
        fresh.login(email, PASSWORD)
        assert held(fresh) == {"v": ["again"]}
