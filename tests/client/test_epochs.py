"""An epoch is the server's unproven word: what is sent again after a restore is identical, and never restated."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.client import CredentialsRolledBack, Tampered, keep_both, keep_mine, keep_theirs
from strongroom.client.replica import Conflict, Resolution
from strongroom.errors import InvalidCredentials
from tests.kit.clients.devices import Devices
from tests.kit.people.credentials import PASSWORD

NEW = "another horse, another staple"
THIRD = "a third horse with a battery"


# The keyring


@pytest.mark.both_languages
def test_an_older_directory_gets_the_identical_keyring_again(devices: Devices) -> None:
    """The password is the same, so the device that has seen more puts its own keyring again, at its own version."""
    devices.server.backup()
    devices.here.client.vault("w", create=True)
    devices.sync()
    mine = devices.stored_keyring()
    devices.server.restore()
    assert devices.stored_keyring()[1] < mine[1]
    assert devices.here.replica.sync().conflicts == []
    assert devices.stored_keyring() == mine
    assert devices.there.replica.sync().conflicts == []
    assert sorted(vault.name for vault in devices.login().vaults()) == ["v", "w"]


@pytest.mark.both_languages
def test_a_new_process_goes_on_with_the_keyring_of_its_replica(devices: Devices) -> None:
    """It logs in to a server that has an older directory, and finds the newer one on its disk."""
    devices.server.backup()
    devices.here.client.vault("w", create=True).collection("notes").create("in w")
    devices.sync()
    mine = devices.stored_keyring()
    devices.server.restore()
    devices.here.replica.close()
    client = devices.login()
    with client.open_replica(devices.here.path) as replica:
        assert replica.sync().conflicts == []
        assert devices.stored_keyring() == mine
        assert [note.value for note in replica.vault("w").collection("notes")] == ["in w"]


@pytest.mark.both_languages
@pytest.mark.parametrize("change", ["password", "recovery", "rotation"])
def test_older_credentials_are_not_written_over(devices: Devices, change: str) -> None:
    """A backup of before a change of the ways in: an error of its own, and nothing is written."""
    devices.server.backup()
    if change == "password":
        devices.here.client.change_password(PASSWORD, NEW)
    elif change == "recovery":
        devices.here.client.make_recovery_key(PASSWORD)
    else:
        devices.here.client.rotate_keys(PASSWORD)
    devices.here.replica.sync()
    devices.server.restore()
    before = devices.stored_keyring()
    for _ in range(2):
        with pytest.raises(CredentialsRolledBack):
            devices.here.replica.sync()
    assert devices.stored_keyring() == before
    devices.here.replica.close()
    with pytest.raises(CredentialsRolledBack):
        devices.login(PASSWORD).open_replica(devices.here.path)
    assert devices.stored_keyring() == before


@pytest.mark.both_languages
@pytest.mark.parametrize("rotated", [False, True])
def test_a_person_mends_older_credentials(devices: Devices, *, rotated: bool) -> None:
    """`unlock` opens the replica with the newest password; `change_password` takes the one that the server knows."""
    notes = devices.notes(devices.here)
    notes.create("before")
    devices.sync()
    devices.server.backup()
    devices.here.client.change_password(PASSWORD, NEW)
    if rotated:
        devices.here.client.rotate_keys(NEW)
    notes.create("since the backup")
    devices.here.replica.sync()
    devices.here.replica.close()
    devices.server.restore()
    client = devices.client()
    client.unlock(devices.here.path, NEW)
    client.change_password(PASSWORD, THIRD)
    with client.open_replica(devices.here.path) as replica:
        assert replica.sync().conflicts == []
    for password in (PASSWORD, NEW):
        with pytest.raises(InvalidCredentials):
            devices.login(password)
        with pytest.raises(InvalidCredentials):
            devices.client().unlock(devices.here.path, password)
    again = devices.login(THIRD)
    assert sorted(note.value for note in again.vault("v").collection("notes")) == ["before", "since the backup"]
    devices.client().unlock(devices.here.path, THIRD)


@pytest.mark.both_languages
@pytest.mark.parametrize("more", [1, 3])
def test_a_keyring_that_went_on_is_merged(devices: Devices, more: int) -> None:
    """Another device made a vault after the restore: its key is in the server's keyring alone, and stays there."""
    devices.server.backup()
    for number in range(more):
        devices.here.client.vault(f"lost {number}", create=True)
    devices.here.replica.sync()
    devices.server.restore()
    devices.there.client.vault("after the restore", create=True).collection("notes").create("kept")
    before = devices.stored_keyring()
    devices.here.replica.sync()
    devices.there.replica.sync()
    assert devices.stored_keyring() != before
    fresh = devices.login()
    assert [note.value for note in fresh.vault("after the restore").collection("notes")] == ["kept"]
    assert {vault.name for vault in fresh.vaults()} == {"v", "after the restore", *(f"lost {n}" for n in range(more))}


@pytest.mark.both_languages
def test_a_person_mends_a_restore_to_before_a_rotation(devices: Devices) -> None:
    """No device has what was encrypted again: what the server shows is below the floor, until a person accepts it."""
    devices.notes(devices.here).create("before")
    devices.sync()
    devices.server.backup()
    devices.here.client.vault("v").rotate()
    devices.server.restore()
    for device in (devices.here, devices.there):
        with pytest.raises(Tampered, match="finish the rotation on a new device"):
            device.replica.sync()
    fresh = devices.login()
    fresh.finish_rotation(accept=fresh.finish_rotation().unseen)
    for device in (devices.here, devices.there):
        assert device.replica.sync().conflicts == []
        assert [note.value for note in devices.notes(device)] == ["before"]


# Rows


@pytest.mark.both_languages
def test_no_epoch_lifts_a_version(devices: Devices) -> None:
    """A server that says "restored" over and over gets the same rows each time, at their own versions."""
    here = devices.notes(devices.here)
    note, gone = here.create("one"), here.create("unwanted")
    devices.sync()
    devices.server.backup()
    here.replace(here.get(note.uid), "two")
    here.delete(here.get(gone.uid))
    new = here.create("new")
    devices.sync()
    rows = devices.stored_rows()
    for _ in range(3):
        devices.server.restore()
        for device in (devices.there, devices.here, devices.there):
            assert device.replica.sync().conflicts == []
        assert devices.stored_rows() == rows
    assert rows.keys() == {note.uid, gone.uid, new.uid}


@pytest.mark.both_languages
def test_a_stale_device_writes_nothing_for_an_epoch(devices: Devices) -> None:
    """It has an older version than the server: it takes the newer one, and sends nothing."""
    here = devices.notes(devices.here)
    note = here.create("one")
    devices.sync()
    for value in ("two", "three"):
        here.replace(here.get(note.uid), value)
        devices.here.replica.sync()
    rows = devices.stored_rows()
    devices.restored_without_loss()
    devices.there.world.sent.clear()
    assert devices.there.replica.sync().conflicts == []
    assert {wanted.method for wanted in devices.there.world.sent} == {"GET"}
    assert devices.stored_rows() == rows
    assert devices.get(devices.there, note.uid).value == "three"


@pytest.mark.both_languages
def test_no_resolver_decides_for_a_lower_version(devices: Devices) -> None:
    """The server's side is older than what this device has seen: that is for a person."""
    here, there = devices.notes(devices.here), devices.notes(devices.there)
    note = here.create("one")
    devices.sync()
    devices.server.backup()
    for value in ("two", "three", "four"):
        here.replace(here.get(note.uid), value)
        devices.here.replica.sync()
    devices.server.restore()
    there.replace(there.get(note.uid), "after the restore")
    devices.there.replica.sync()
    asked: list[Conflict] = []

    def resolver(conflict: Conflict) -> Resolution:
        asked.append(conflict)
        return keep_theirs(conflict)

    for _ in range(2):
        [conflict] = devices.here.replica.sync(resolver).conflicts
        assert (conflict.mine.value, conflict.theirs.value) == ("four", "after the restore")
        assert conflict.needs_manual_resolution
    assert asked == []
    assert here.get(note.uid).value == "four"
    conflict.resolve(keep_mine)
    assert devices.values() == [["four"]] * 3
    assert devices.stored_rows()[note.uid][0] > conflict.mine.version


@pytest.mark.both_languages
def test_a_conflict_that_waits_through_a_restore_loses_neither_side(devices: Devices) -> None:
    """Three texts of one document: mine waits, theirs is here, and the restored server has gone on with a third."""
    here, there = devices.notes(devices.here), devices.notes(devices.there)
    note = here.create("one")
    devices.sync()
    devices.server.backup()
    devices.replace_there(note.uid, "two")
    devices.replace_there(note.uid, "theirs")
    here.replace(here.get(note.uid), "mine")
    assert len(devices.here.replica.sync().conflicts) == 1
    devices.server.restore()
    third = devices.login().vault("v").collection("notes")
    third.replace(third.get(note.uid), "a third")
    devices.here.replica.sync()
    [conflict] = devices.here.replica.conflicts()
    assert (conflict.mine.value, conflict.theirs.value) == ("mine", "a third")
    conflict.resolve(keep_both)
    devices.here.replica.sync()
    [waiting] = devices.there.replica.sync().conflicts
    waiting.resolve(keep_theirs)
    assert devices.values() == [["a third", "mine", "theirs"]] * 3
    assert there.get(note.uid).value == "a third"


# Blobs


@pytest.mark.both_languages
@pytest.mark.parametrize("before", [None, "before"])
def test_a_blob_that_a_restored_server_has_forgotten_is_sent_again(devices: Devices, before: Any) -> None:
    """The identical text, at its own version."""
    vault = devices.here.client.vault("v")
    if before is not None:
        vault.blob.put(before)
    devices.sync()
    devices.server.backup()
    for value in ("between", "newest"):
        vault.blob.put(value)
        devices.sync()
    bearer, path = devices.here.client._core.session._access, f"/vault/{vault.uid}"
    mine = devices.server.ask("GET", path, bearer).body
    devices.server.restore()
    assert devices.server.ask("GET", path, bearer).body.get("data") != mine["data"]
    devices.sync()
    stored = devices.server.ask("GET", path, bearer).body
    assert [stored[name] for name in ("version", "data", "salt", "name")] == [
        mine[name] for name in ("version", "data", "salt", "name")
    ]
    for device in (devices.here, devices.there):
        assert device.replica.vault("v").blob() == "newest"
    found = devices.login().vault("v").blob.get()
    assert found is not None
    assert found.value == "newest"


@pytest.mark.both_languages
@pytest.mark.parametrize("after", [1, 3])
def test_a_blob_that_went_on_after_a_restore_is_a_conflict(devices: Devices, after: int) -> None:
    """Another device put one without knowing of this device's: the server keeps it, and this device its own."""
    vault = devices.here.client.vault("v")
    vault.blob.put("before")
    devices.sync()
    devices.server.backup()
    for value in ("between", "mine"):
        vault.blob.put(value)
        devices.here.replica.sync()
    devices.server.restore()
    for number in range(after):
        blob = devices.login().vault("v").blob
        blob.put(f"after the restore {number}", after=blob.get())
    newest = f"after the restore {after - 1}"
    for _ in range(2):
        [conflict] = devices.here.replica.sync().blob_conflicts
        assert (conflict.mine, conflict.theirs) == ("mine", newest)
    assert devices.here.replica.vault("v").blob() == "mine"
    found = devices.login().vault("v").blob.get()
    assert found is not None
    assert found.value == newest
    devices.here.begin_again(PASSWORD)
    [conflict] = devices.here.replica.blob_conflicts()
    blob = devices.login().vault("v").blob
    blob.put(conflict.mine, after=blob.get())
    conflict.discard()
    devices.sync()
    assert devices.here.replica.blob_conflicts() == []
    assert devices.there.replica.vault("v").blob() == devices.here.replica.vault("v").blob() == "mine"


@pytest.mark.both_languages
@pytest.mark.parametrize("blob", [None, "the blob"])
def test_a_name_that_a_restored_server_has_forgotten_is_sent_again(devices: Devices, blob: Any) -> None:
    """A vault that was renamed since the backup, with its blob, which is bound to the name."""
    vault = devices.here.client.vault("v")
    if blob is not None:
        vault.blob.put(blob)
    devices.sync()
    devices.server.backup()
    vault.rename("another name")
    devices.sync()
    bearer, path = devices.here.client._core.session._access, f"/vault/{vault.uid}"
    mine = devices.server.ask("GET", path, bearer).body
    devices.server.restore()
    for device in (devices.there, devices.here, devices.there):
        report = device.replica.sync()
        assert (report.conflicts, report.blob_conflicts) == ([], [])
    stored = devices.server.ask("GET", path, bearer).body
    assert [stored.get(name) for name in ("name", "data", "salt")] == [
        mine.get(name) for name in ("name", "data", "salt")
    ]
    assert devices.there.replica.vault("another name").blob() == blob
    assert [one.name for one in devices.login().vaults()] == ["another name"]


@pytest.mark.both_languages
def test_a_replica_without_vaults_notices_a_restore(devices: Devices) -> None:
    """It gives the server its newer keyring again, and goes on; without another epoch, an older keyring is refused."""
    devices.here.client.vault("v").delete()
    devices.sync()
    devices.server.backup()
    devices.here.client.vault("w", create=True).delete()
    devices.sync()
    newest = devices.stored_keyring()[1]
    devices.server.restore()
    assert devices.stored_keyring()[1] < newest
    devices.here.replica.sync()
    assert devices.stored_keyring()[1] == newest
    assert devices.here.replica.vaults() == []
