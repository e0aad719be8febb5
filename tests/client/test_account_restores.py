"""Restores, rotations and replicas together: faults that the machine of convergence has found, each by itself."""

from __future__ import annotations

import pytest

from strongroom.client import Client, Locked, RolledBack, Tampered, WeakParameters, keep_both
from strongroom.client.format import derive, seal
from strongroom.client.format.derive import Floor
from strongroom.client.format.keyring_body import MOST_PAST
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import URL, World
from tests.kit.people.credentials import PASSWORD

NEW = "another horse, another staple"
THIRD = "a third horse with a battery"


def agent(devices: Devices, token: str) -> Client:
    """A client of a token."""
    client = Client.with_token(URL, token)
    client._driver = World(devices.server, [])
    return client


def test_an_agent_goes_on_with_its_replica_after_a_rotation(devices: Devices) -> None:
    """The new token of a collection opens the file of the old one, and what was queued in it is sent."""
    client, path = devices.here.client, devices.home / "agent"
    notes = client.vault("v").collection("notes")
    with agent(devices, notes.token("agent")).open_replica(path) as replica:
        replica.sync()
        replica.collection().create("queued by the agent")
    client.vault("v").rotate()
    token = client.vault("v").collection("notes").token("agent")
    with agent(devices, token).open_replica(path) as replica, pytest.raises(Locked, match="older keys"):
        replica.sync()
    token = client.vault("v").collection("notes").token("agent", older_keys=True)
    with agent(devices, token).open_replica(path) as replica:
        assert replica.sync().pushed == 1
    assert [note.value for note in client.vault("v").collection("notes")] == ["queued by the agent"]


def test_what_is_queued_after_a_rotation_opens_from_the_file_alone(devices: Devices) -> None:
    """The process ends between the rotation and the next sync, and there is no server: the file has the keys."""
    devices.here.client.rotate_keys(PASSWORD, new_password=NEW)
    made = devices.notes(devices.here).create("written after the rotation")
    devices.here.replica.close()
    client = Client(URL)
    client.unlock(devices.here.path, NEW)
    with client.open_replica(devices.here.path) as replica:
        assert replica.vault("v").collection("notes").get(made.uid).value == "written after the rotation"


def test_what_is_queued_before_the_keyring_is_kept_opens_from_the_file_alone(devices: Devices) -> None:
    """A device logs in after several changes of the keyring, which it has not compared yet, and has no network."""
    devices.here.client.vault("v").rotate()
    devices.here.client.vault("v").rotate()
    devices.here.replica.sync()
    client = devices.login()
    devices.there.replica.close()
    with client.open_replica(devices.there.path) as replica:
        made = replica.vault("v").collection("notes").create("written without a network")
    client = Client(URL)
    client.unlock(devices.there.path, PASSWORD)
    with client.open_replica(devices.there.path) as replica:
        assert replica.vault("v").collection("notes").get(made.uid).value == "written without a network"
    with devices.login().open_replica(devices.there.path) as replica:
        assert replica.sync().pushed == 1
    stored = devices.here.client.vault("v").collection("notes").get(made.uid)
    assert seal.read_proof(stored.proof).generation == 3


@pytest.mark.both_languages
def test_a_stale_client_is_told_to_log_in_again(devices: Devices) -> None:
    """Its keyring has the slots of before a rotation: that is a conflict, and not a change without a password."""
    vault = devices.there.client.vault("v")
    devices.here.client.rotate_keys(PASSWORD)
    with pytest.raises(Locked):
        vault.rename("w")


@pytest.mark.both_languages
def test_a_client_goes_on_when_its_replica_has_compared_a_restore(devices: Devices) -> None:
    """Outside the replica too: the times of the restored database are not taken for a lie."""
    notes = devices.here.client.vault("v").collection("notes")
    kept, changed, gone = (notes.create(text) for text in ("kept", "before", "unwanted"))
    devices.sync()
    devices.server.backup()
    new = notes.create("since the backup")
    notes.replace(changed, "after")
    notes.delete(gone)
    devices.sync()
    devices.server.clock.pass_(5)
    devices.server.restore()
    devices.here.replica.sync()
    found = {note.uid: note.value for note in notes}
    assert found == {kept.uid: "kept", changed.uid: "after", new.uid: "since the backup"}
    assert notes.get(new.uid).value == "since the backup"
    assert notes.get(gone.uid, deleted=True).deleted
    devices.here.client.rotate_keys(PASSWORD)
    assert len(list(notes)) == 3


def test_a_saved_session_goes_on_when_another_program_has_compared_a_restore(devices: Devices) -> None:
    """What it has seen is of before the restore, and the replica has the new epoch already."""
    here, core = devices.here, devices.here.client._core
    vault = here.client.vault("v")
    notes = vault.collection("notes")
    notes.create("kept")
    devices.sync()
    devices.server.backup()
    notes.create("since the backup")
    devices.sync()
    email = core.email or ""
    saved = core.device.memory(email, {vault.uid})
    devices.server.clock.pass_(5)
    devices.server.restore()
    here.replica.sync()
    here.replica.close()
    core.device.remember(email, saved)  # as a session does that was saved before the restore
    with pytest.raises((RolledBack, Tampered)):
        list(notes)
    here.replica = here.client.open_replica(here.path)
    here.replica.sync()
    assert sorted(str(note.value) for note in notes) == ["kept", "since the backup"]


@pytest.mark.both_languages
def test_a_client_still_misses_what_its_replica_never_had(devices: Devices) -> None:
    """The client has seen more than its replica; a new epoch does not make it forget that."""
    notes = devices.here.client.vault("v").collection("notes")
    note = notes.create("before")
    devices.sync()
    devices.server.backup()
    notes.replace(note, "seen outside the replica")
    devices.server.restore()
    devices.here.replica.sync()
    with pytest.raises(RolledBack):
        notes.get(note.uid)


@pytest.mark.both_languages
@pytest.mark.parametrize("changed", [False, True])
def test_a_new_device_mends_a_restored_server(devices: Devices, *, changed: bool) -> None:
    """It has seen only the newest keyring, and knows by the server's history which ones that follows on."""
    devices.server.backup()
    for name in ("w", "x", "y"):
        devices.here.client.vault(name, create=True)
    if changed:
        devices.here.client.change_password(PASSWORD, NEW)
    client, path = devices.login(NEW if changed else PASSWORD), devices.home / "new"
    with client.open_replica(path) as replica:
        replica.sync()
    devices.server.restore()
    again = devices.client()
    again.unlock(path, NEW if changed else PASSWORD)
    if changed:
        again.change_password(PASSWORD, THIRD)
    with again.open_replica(path) as replica:
        assert replica.sync().conflicts == []
    fresh = devices.login(THIRD if changed else PASSWORD)
    assert sorted(vault.name for vault in fresh.vaults()) == ["v", "w", "x", "y"]


@pytest.mark.both_languages
def test_a_new_device_mends_a_second_restore(devices: Devices) -> None:
    """The server keeps no keyring between the backup's and the newest: the newest one says which ones it follows on."""
    devices.server.backup()
    for name in ("w", "x", "y"):
        devices.here.client.vault(name, create=True)
    devices.sync()
    devices.server.restore()
    devices.here.replica.sync()  # puts the keyring again, at its own version
    path = devices.home / "new"
    with devices.login().open_replica(path) as replica:
        replica.sync()
    devices.server.restore()
    again = devices.client()
    again.unlock(path, PASSWORD)
    with again.open_replica(path) as replica:
        assert replica.sync().conflicts == []
    assert sorted(vault.name for vault in devices.login().vaults()) == ["v", "w", "x", "y"]


@pytest.mark.both_languages
def test_a_new_device_replaces_no_keyring_of_another_branch(devices: Devices) -> None:
    """After a second restore another device went on alone: the key of a vault is in its keyring, and nowhere else."""
    devices.server.backup()
    for name in ("w", "x", "y"):
        devices.here.client.vault(name, create=True)
    devices.sync()
    devices.server.restore()
    devices.here.replica.sync()
    path = devices.home / "new"
    with devices.login().open_replica(path) as replica:
        replica.sync()
    devices.server.restore()
    devices.login().vault("of another branch", create=True)
    again = devices.client()
    again.unlock(path, PASSWORD)
    with again.open_replica(path) as replica:
        replica.sync()
        assert {vault.name for vault in replica.vaults()} == {"v", "w", "x", "y", "of another branch"}
    found = {vault.name for vault in devices.login().vaults()}
    assert found == {"v", "w", "x", "y", "of another branch"}


@pytest.mark.both_languages
def test_another_row_of_the_same_version_is_not_what_a_change_was_made_from(devices: Devices) -> None:
    """After a restore another device has made its own version 2. A change that waits, made from mine, is a conflict."""
    here, there = devices.notes(devices.here), devices.notes(devices.there)
    note = here.create("one")
    devices.sync()
    devices.server.backup()
    here.replace(here.get(note.uid), "two, before the restore")
    devices.here.replica.sync()
    here.replace(here.get(note.uid), "three, waiting")
    devices.server.restore()
    there.replace(there.get(note.uid), "two, after the restore")
    devices.there.replica.sync()
    [conflict] = devices.here.replica.sync(keep_both).conflicts
    assert (conflict.mine.value, conflict.theirs.value) == ("three, waiting", "two, after the restore")
    assert conflict.needs_manual_resolution
    conflict.resolve(keep_both)
    assert devices.values() == [["three, waiting", "two, after the restore"]] * 3


def test_a_backup_of_before_figures_were_lifted_is_mended(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server asks for less work than this device has seen: refused, unless a person says that it was restored."""
    devices.server.backup()
    monkeypatch.setattr(derive, "DEFAULT", Floor(131_072, 4))
    devices.here.client.login(devices.crew.email, PASSWORD)
    with devices.here.client.open_replica(devices.here.path) as replica:
        replica.vault("v").collection("notes").create("since the backup")
        replica.sync()
    devices.server.restore()
    client = devices.client()
    client.unlock(devices.here.path, PASSWORD)
    before = devices.stored_keyring(devices.there)
    with pytest.raises(WeakParameters, match="restored=True"):
        client.change_password(PASSWORD, NEW)
    assert devices.stored_keyring(devices.there) == before
    client.change_password(PASSWORD, NEW, restored=True)
    with client.open_replica(devices.here.path) as replica:
        assert replica.sync().conflicts == []
    again = devices.login(NEW)
    assert [note.value for note in again.vault("v").collection("notes")] == ["since the backup"]
    lifted = devices.server.ask("POST", "/auth/email/prelogin", body={"email": devices.crew.email}).body["kdf"]
    assert (lifted["memory"], lifted["passes"]) == (131_072, 4)


@pytest.mark.both_languages
def test_a_gap_between_keyrings_is_told(devices: Devices) -> None:
    """A device that was away for longer than a keyring names others takes the newest one, and says so once."""
    vault = devices.there.client.vault("v")
    for number in range(MOST_PAST):
        vault.rename(f"renamed {number}")
    assert devices.here.replica.sync().keyring_gaps == 0
    for number in range(MOST_PAST + 1):
        vault.rename(f"again {number}")
    assert devices.here.replica.sync().keyring_gaps == 1
    assert devices.here.client.keyring_gaps == 1
    assert devices.here.replica.sync().keyring_gaps == 0
    assert [vault.name for vault in devices.here.replica.vaults()] == [f"again {MOST_PAST}"]
