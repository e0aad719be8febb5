"""Changes that the server refuses: told, kept, and in nobody's way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from strongroom.client import Client, keep_mine, keep_theirs
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.pair import Pair
from tests.kit.network.proxy import PASS, REFUSE, Once, Proxy
from tests.kit.network.unreliable_network import URL, ReplicaDevice, World
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


def kinds(replica: Any) -> list[str]:
    return sorted(change.reason.kind for change in replica.refused())


# A vault that was deleted elsewhere


@pytest.fixture
def orphaned(pair: Pair) -> Pair:
    """The first device has deleted the vault in which the second has changes that were not sent."""
    stored, doomed = (pair.notes[0].create(value) for value in ("stored", "doomed"))
    pair.sync()
    pair.notes[1].create("new")
    pair.notes[1].replace(pair.notes[1].get(stored.uid), "changed")
    pair.notes[1].delete(pair.notes[1].get(doomed.uid))
    pair.clients[0].vault("v").delete()
    pair.clients[0].vault("w", create=True)
    return pair


def test_changes_in_a_deleted_vault_are_told(orphaned: Pair, tmp_path: Path) -> None:
    """Each is in the report, with its document, where it lay and why; a deletion is done with the vault."""
    replica = orphaned.replicas[1]
    report = replica.sync()
    assert (report.newly_refused, report.changed) == (2, True)
    assert sorted(change.document.value for change in report.refused) == ["changed", "new"]
    for change in report.refused:
        assert (change.vault_name, change.collection, change.reason.kind) == ("v", "notes", "vault_deleted")
        assert "deleted on another device" in str(change.reason)
        assert not change.is_temporary
    assert [vault.name for vault in replica.vaults()] == ["w"]
    assert replica.sync().newly_refused == 0
    replica.close()
    replica = orphaned.replicas[1] = orphaned.clients[1].open_replica(tmp_path / "replica-1")
    assert sorted(change.document.value for change in replica.refused()) == ["changed", "new"]
    assert replica.pending == 2


@pytest.mark.both_languages
def test_changes_in_a_deleted_vault_move_to_another(orphaned: Pair) -> None:
    """They become documents of the other vault, on every device; nothing is left behind."""
    replica = orphaned.replicas[1]
    replica.sync()
    for change in replica.refused():
        change.move_to(replica.vault("w").collection("rescued"))
    assert replica.refused() == []
    orphaned.sync()
    assert replica.pending == 0
    assert sorted(note.value for note in orphaned.replicas[0].vault("w").collection("rescued")) == ["changed", "new"]


@pytest.mark.both_languages
def test_changes_in_a_deleted_vault_are_discarded(orphaned: Pair) -> None:
    """Then nothing speaks of them any more."""
    replica = orphaned.replicas[1]
    for change in replica.sync().refused:
        change.discard()
    report = replica.sync()
    assert (report.refused, replica.pending) == ([], 0)


@pytest.mark.both_languages
def test_a_retry_in_a_deleted_vault_is_refused_again(orphaned: Pair) -> None:
    """A vault does not come back; the change stays, and is told again."""
    replica = orphaned.replicas[1]
    replica.sync()
    for change in replica.refused():
        change.retry()
    assert kinds(replica) == []
    replica.sync()
    assert kinds(replica) == ["vault_deleted"] * 2


def test_a_deleted_vault_opens_after_a_rotation(orphaned: Pair, clients: ClientFactory, tmp_path: Path) -> None:
    """The keys of the deleted vault outlast those of the account: its changes can be read, and moved."""
    orphaned.clients[0].rotate_keys(PASSWORD)
    orphaned.replicas[1].close()
    device = clients.client()
    device.login(orphaned.email, PASSWORD)
    replica = orphaned.replicas[1] = device.open_replica(tmp_path / "replica-1")
    replica.sync()
    for change in replica.refused():
        change.move_to(replica.vault("w").collection("rescued"))
    replica.sync()
    assert sorted(note.value for note in replica.vault("w")) == ["changed", "new"]


@pytest.mark.both_languages
def test_a_vault_that_is_deleted_during_a_sync(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """Between pull and push: its changes are refused in the same sync, and those of other vaults are sent."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    pair.clients[0].vault("w", create=True)
    pair.sync()
    pair.notes[1].create("too late")
    pair.replicas[1].vault("w").collection("notes").create("in time")
    doomed = [pair.clients[0].vault("v")]

    def delete_at_the_push(_: str, path: str) -> str:
        if path.endswith("/batch") and doomed and doomed[0].uid in path:
            doomed.pop().delete()
        return PASS

    proxy.policy = delete_at_the_push
    report = pair.replicas[1].sync()
    assert [change.reason.kind for change in report.refused] == ["vault_deleted"]
    assert [note.value for note in pair.clients[0].vault("w").collection("notes")] == ["in time"]
    pair.close()


# Tokens


@pytest.mark.both_languages
def test_what_a_token_may_not_do_does_not_stop_the_rest(clients: ClientFactory, tmp_path: Path) -> None:
    """A token that may write and not delete: its changes go, its deletion is told, and can be discarded."""
    vault = clients.person().vault("v", create=True)
    notes = vault.collection("notes")
    for number in range(3):
        notes.create(number)
    agent = clients.with_token(vault.token("agent", permissions=["read", "write"]))
    replica = agent.open_replica(tmp_path / "agent")
    replica.sync()
    place = replica.vault().collection("notes")
    first, second, third = place
    place.replace(first, "before")
    place.delete(second)
    place.replace(third, "after")
    report = replica.sync()
    assert report.pushed == 2
    [change] = report.refused
    assert (change.uid, change.reason.kind, change.document.deleted) == (second.uid, "insufficient_scope", True)
    assert place.create("later").value == "later"
    assert replica.sync().pushed == 1
    assert sorted(str(note.value) for note in notes) == sorted(["before", str(second.value), "after", "later"])
    with pytest.raises(errors.Invalid):
        change.move_to(place)
    change.discard()
    assert place.get(second.uid).value == second.value
    assert (replica.refused(), replica.pending) == ([], 0)
    replica.close()


@pytest.mark.both_languages
def test_a_token_that_may_only_read(clients: ClientFactory, tmp_path: Path, server: Server) -> None:
    """Every change is refused with few requests; a token that may write sends them."""
    owner = clients.person()
    notes = owner.vault("v", create=True).collection("notes")
    proxy = Proxy(server.port)
    reader = clients.with_token(notes.token("reader", permissions=["read"]), proxy.url)
    replica = reader.open_replica(tmp_path / "agent")
    replica.sync()
    for number in range(40):
        replica.collection().create(number)
    assert len(replica.sync().refused) == 40
    assert proxy.times("POST", "batch") == 2
    assert kinds(replica) == ["insufficient_scope"] * 40
    replica.sync()
    assert proxy.times("POST", "batch") == 2
    replica.collection().delete(next(iter(replica.collection())))  # of what was never stored
    assert replica.pending == 39
    replica.close()
    proxy.close()
    writer = clients.with_token(notes.token("writer"))
    replica = writer.open_replica(tmp_path / "agent")
    assert replica.sync().pushed == 39
    assert replica.refused() == []
    assert len(list(notes)) == 39
    replica.close()


@pytest.mark.both_languages
def test_a_revoked_token_is_told(clients: ClientFactory, tmp_path: Path) -> None:
    """The sentence names the cause and what waits; another token for the same place sends it."""
    owner = clients.person()
    notes = owner.vault("v", create=True).collection("notes")
    agent = clients.with_token(notes.token("agent"))
    replica = agent.open_replica(tmp_path / "agent")
    replica.sync()
    replica.collection().create("waiting")
    owner.revoke_api_key(owner.api_keys()[0].uid)
    with pytest.raises(errors.Unauthorized, match=r"revoked or has expired.*wait in this replica: 1"):
        replica.sync()
    replica.close()
    replica = clients.with_token(notes.token("another")).open_replica(tmp_path / "agent")
    assert replica.sync().pushed == 1
    owner.vault("v").delete()
    replica.collection().create("too late")
    with pytest.raises(errors.VaultNotFound, match=r"vault of this token was deleted.*wait in this replica: 1"):
        replica.sync()
    replica.close()


# Quotas, disks, imports


@pytest.mark.both_languages
def test_a_quota_refuses_what_adds_and_nothing_else(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """Deletions and smaller values are sent first; the rest is told, and sent as soon as there is room.

    What is certain to be refused like another change is not sent.
    """
    own_server.settings["QUOTA_DOCUMENTS"] = "10"
    own_server.start()
    proxy = Proxy(own_server.port)
    client = clients.client(proxy.url)
    client.register(unique_email(), PASSWORD)
    client.vault("v", create=True)
    replica = client.open_replica(tmp_path / "replica")
    replica.sync()
    notes = replica.vault("v").collection("notes")
    for number in range(9):
        notes.create(number)
    replica.sync()
    stored = sorted(notes, key=lambda note: int(note.value))
    for number in range(20):
        notes.create(f"new {number:02}")
    notes.delete(stored[0])
    notes.replace(stored[1], "changed")
    proxy.seen.clear()
    report = replica.sync()
    assert proxy.times("POST", "batch") <= 12
    assert len(report.refused) == 18
    assert all(change.is_temporary and change.reason.kind == "quota_exceeded" for change in report.refused)
    online = client.vault("v").collection("notes")
    assert len(list(online)) == 10
    assert "changed" in [note.value for note in online]
    assert replica.sync().newly_refused == 0
    for note in [note for note in online if note.value in range(2, 9)]:
        online.delete(note)
    replica.sync()
    assert len(replica.refused()) == 11
    assert len(list(online)) == 10
    replica.close()
    proxy.close()


@pytest.mark.both_languages
@pytest.mark.parametrize("code", ["storage_full", "import_unfinished"])
def test_a_server_that_takes_nothing_for_now(clients: ClientFactory, tmp_path: Path, proxy: Proxy, code: str) -> None:
    """What is refused for a while is told, changes are pulled meanwhile, and the next sync sends it."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    status = "507" if code == "storage_full" else "409"
    proxy.policy = lambda _, path: f"{status} {code}" if "batch" in path else PASS
    pair.notes[0].create("theirs")
    pair.notes[1].create("mine")
    pair.replicas[0].sync()
    report = pair.replicas[1].sync()
    assert ([change.reason.kind for change in report.refused], report.pulled) == ([code], 1)
    proxy.policy = lambda _, path: REFUSE if "batch" in path else PASS
    with pytest.raises(errors.Unavailable):
        pair.replicas[1].sync()
    assert kinds(pair.replicas[1]) == [code]
    proxy.policy = lambda *_: PASS
    assert pair.replicas[1].sync().pushed == 1
    assert pair.replicas[1].refused() == []
    pair.close()


# One document


@pytest.mark.both_languages
def test_a_uid_that_another_vault_uses(pair: Pair) -> None:
    """A new document with such a uid is refused; it is sent with another uid after a move, and the others go."""
    uid = pair.clients[0].vault("w", create=True).collection("notes").create("first").uid
    notes, replica = pair.notes[1], pair.replicas[1]
    notes.create("second", uid=uid)
    notes.create("other")
    report = replica.sync()
    assert report.pushed == 1
    [change] = report.refused
    assert change.reason.kind == "uid_taken"
    change.move_to(notes)
    assert replica.sync().refused == []
    assert pair.values()[1] == ["other", "second"]


@pytest.mark.both_languages
def test_a_uid_that_another_collection_uses(pair: Pair) -> None:
    """A document stays in its collection: a new one with its uid is refused there, and is no conflict with it."""
    uid = pair.clients[0].vault("v").collection("tasks").create("first").uid
    notes, replica = pair.notes[1], pair.replicas[1]
    notes.create("second", uid=uid)
    notes.create("other")
    report = replica.sync(keep_theirs)
    assert report.conflicts == []
    assert report.pushed == 1
    [change] = report.refused
    assert change.reason.kind == "uid_taken"
    assert notes.get(uid).value == "second"
    change.move_to(notes)
    assert replica.sync().refused == []
    assert pair.values()[1] == ["other", "second"]
    assert replica.vault("v").collection("tasks").get(uid).value == "first"


@pytest.mark.both_languages
def test_a_change_of_a_refused_document_is_sent(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """Another value is another change: it is tried, whatever became of the one before."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    proxy.policy = lambda _, path: "400 validation_error" if "batch" in path else PASS
    note = pair.notes[1].create("odd")
    [change] = pair.replicas[1].sync().refused
    proxy.policy = lambda *_: PASS
    assert pair.replicas[1].sync().pushed == 0
    pair.notes[1].replace(pair.notes[1].get(note.uid), "even")
    for choice in (change.discard, change.retry, lambda: change.move_to(pair.notes[1])):
        with pytest.raises(errors.DocumentConflict):
            choice()
    assert pair.replicas[1].sync().pushed == 1
    pair.sync()
    assert pair.values() == [["even"], ["even"]]
    pair.close()


@pytest.mark.both_languages
def test_one_invalid_change_of_many(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """A batch that is refused is sent in parts, until only what is refused is left; a retry sends that too."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    proxy.policy = Once("400 validation_error", "batch")
    for number in range(7):
        pair.notes[1].create(number)
    assert pair.replicas[1].sync().refused == []
    pair.sync()
    assert pair.values() == [list(range(7))] * 2
    proxy.policy = lambda _, path: "400 validation_error" if "batch" in path else PASS
    pair.notes[1].create(7)
    [change] = pair.replicas[1].sync().refused
    proxy.policy = lambda *_: PASS
    assert pair.replicas[1].sync().pushed == 0
    change.retry()
    assert pair.replicas[1].sync().pushed == 1
    pair.close()


@pytest.mark.both_languages
def test_a_refused_change_that_becomes_a_conflict(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """It is shown as a conflict, and as nothing else; the decision is sent."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    note = pair.notes[0].create("base")
    pair.sync()
    pair.notes[1].replace(pair.notes[1].get(note.uid), "mine")
    proxy.policy = lambda _, path: "400 validation_error" if "batch" in path else PASS
    assert len(pair.replicas[1].sync().refused) == 1
    proxy.policy = lambda *_: PASS
    pair.notes[0].replace(pair.notes[0].get(note.uid), "theirs")
    pair.replicas[0].sync()
    report = pair.replicas[1].sync()
    assert (len(report.conflicts), report.refused) == (1, [])
    report.conflicts[0].resolve(keep_mine)
    pair.sync()
    assert pair.values() == [["mine"], ["mine"]]
    pair.close()


def test_a_refusal_does_not_show_the_value(pair: Pair) -> None:
    """Neither its repr nor its sentence does."""
    pair.notes[0].create("KANARIENVOGEL")
    pair.clients[1].vault("v").delete()
    [change] = pair.replicas[0].sync().refused
    assert "KANARIENVOGEL" not in f"{change!r} {change.reason!r} {change.reason} {change.document!r}"


# After a restore


@pytest.mark.both_languages
@pytest.mark.parametrize("choice", ["discard", "move_to", "wait"])
def test_a_restored_server_that_a_reader_cannot_mend(devices: Devices, choice: str) -> None:
    """A replica that may only read does not stop: what the server lost is told, and can be dropped, or comes back."""
    token = devices.here.client.vault("v").token("reader", permissions=["read"])
    world = World(devices.server, devices.crew.late)
    reader = ReplicaDevice(world, Client.with_token(URL, token), str(devices.home / "reader"))
    devices.notes(devices.here).create("older")
    devices.here.replica.sync()
    reader.replica.sync()
    devices.server.backup()
    devices.notes(devices.here).create("lost")
    devices.here.replica.sync()
    reader.replica.sync()
    devices.server.restore()
    [change] = reader.replica.sync().refused
    notes = reader.replica.vault().collection("notes")
    assert (change.document is not None and change.document.value, change.reason.kind) == ("lost", "insufficient_scope")
    assert sorted(note.value for note in notes) == ["lost", "older"]
    if choice == "discard":
        change.discard()
    elif choice == "move_to":
        change.move_to(notes)
    else:
        devices.here.replica.sync()
    report = reader.replica.sync()
    assert len(report.refused) == (choice == "move_to")
    assert sorted(note.value for note in notes) == (["older"] if choice == "discard" else ["lost", "older"])
    reader.replica.close()
