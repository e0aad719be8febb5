"""The server is restored from a backup: its epoch changes, and every device brings back what it knows."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom.client import RolledBack
from strongroom.client.replica import keep_both, keep_theirs
from strongroom.client.replica.store.schema import EARLIER_VERSIONS
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

HOUR = 3_600_000


class Restored:
    """A server with backups, and devices that were in step with it."""

    def __init__(self, clients: ClientFactory, server: Server, home: Path, devices: int = 1) -> None:
        self.server = server.start()
        self.server.settings["PORT"] = str(server.port)
        self.email = unique_email()
        self.clients = [clients.client(f"http://127.0.0.1:{server.port}") for _ in range(devices)]
        self.clients[0].register(self.email, PASSWORD)
        self.clients[0].vault("v", create=True)
        for client in self.clients[1:]:
            client.login(self.email, PASSWORD)
        self.replicas = [client.open_replica(home / f"replica-{n}") for n, client in enumerate(self.clients)]
        self.sync()
        self.notes = [replica.vault("v").collection("notes") for replica in self.replicas]
        self._backup = b""

    def sync(self, **options: Any) -> None:
        for replica in (*self.replicas, *self.replicas):
            replica.sync(**options)

    def back_up(self) -> None:
        self.server.end()
        self._backup = (self.server.home / "vault.db").read_bytes()
        self.server.start()

    def restore(self) -> None:
        """The backup, under a new epoch, as the operator's command makes it."""
        self.server.end()
        path = self.server.home / "vault.db"
        path.write_bytes(self._backup)
        database = apsw.Connection(str(path))
        database.execute("UPDATE lineage SET epoch = ?", (str(uuid.uuid4()),))
        database.close()
        self.server.start()

    def changed_since_the_backup(self) -> Any:
        """A note that the second device has changed since the backup, as the first one knows it: before that."""
        first, second = self.notes
        note = first.create("one")
        self.sync()
        self.back_up()
        second.replace(second.get(note.uid), "theirs")
        self.replicas[1].sync()
        return first.get(note.uid)

    def values(self) -> list[list[Any]]:
        return [sorted((note.value for note in notes), key=str) for notes in self.notes]

    def close(self) -> None:
        for replica in self.replicas:
            replica.close()


@pytest.mark.both_languages
def test_what_was_forgotten_comes_back(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """New documents, changes and deletions since the backup: the device sends them again, and loses none."""
    restored = Restored(clients, own_server, tmp_path)
    [notes], [replica] = restored.notes, restored.replicas
    kept, changed, deleted = notes.create("kept"), notes.create("before"), notes.create("unwanted")
    restored.sync()
    restored.back_up()
    notes.replace(notes.get(changed.uid), "after")
    notes.delete(notes.get(deleted.uid))
    new = notes.create("new")
    restored.sync()
    before = {note.uid: note.proof for note in notes}
    waiting = notes.create("not even sent")
    restored.restore()
    report = replica.sync()
    assert report.conflicts == []
    assert restored.values() == [["after", "kept", "new", "not even sent"]]
    assert replica.pending == 0
    fresh = clients.client(f"http://127.0.0.1:{own_server.port}")
    fresh.login(restored.email, PASSWORD)
    seen = {note.uid: note for note in fresh.vault("v").collection("notes")}
    assert sorted(note.value for note in seen.values()) == ["after", "kept", "new", "not even sent"]
    assert {uid: seen[uid].proof for uid in before} == before  # repeated, never restated: the identical rows
    assert {kept.uid, changed.uid, new.uid} == before.keys()
    assert waiting.uid in seen
    restored.close()


@pytest.mark.both_languages
def test_every_device_agrees_after_a_restore(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """Devices that had seen different things meet again, and none takes another's repair for an attack."""
    restored = Restored(clients, own_server, tmp_path, devices=2)
    first, second = restored.notes
    note = first.create("one")
    restored.sync()
    restored.back_up()
    first.replace(first.get(note.uid), "two")
    restored.replicas[0].sync()
    restored.replicas[1].sync()
    second.replace(second.get(note.uid), "three")
    restored.replicas[1].sync()  # the first has seen version 2, the second version 3
    restored.restore()
    restored.sync(resolver=keep_both)
    restored.sync(resolver=keep_both)
    assert restored.values()[0] == restored.values()[1]
    assert "three" in restored.values()[0]
    restored.close()


@pytest.mark.both_languages
def test_a_waiting_change_is_sent_above_what_others_saw(
    clients: ClientFactory, own_server: Server, tmp_path: Path
) -> None:
    """A change that waited through the restore gets a higher version than the one that another device has seen."""
    restored = Restored(clients, own_server, tmp_path, devices=2)
    first, second = restored.notes
    note = first.create("one")
    restored.sync()
    restored.back_up()
    for text in ("two", "three"):
        first.replace(first.get(note.uid), text)
        restored.sync()
    seen = second.get(note.uid).version
    first.replace(first.get(note.uid), "waiting")
    restored.restore()
    assert restored.replicas[0].sync().conflicts == []
    assert first.get(note.uid).version > seen
    restored.sync(resolver=keep_theirs)
    assert restored.values() == [["waiting"], ["waiting"]]
    restored.close()


@pytest.mark.both_languages
def test_where_both_went_on_it_is_a_conflict(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """A device that was away wrote after the restore, without knowing what was lost: neither text is dropped."""
    restored = Restored(clients, own_server, tmp_path, devices=2)
    first, second = restored.notes
    note = first.create("base")
    restored.sync()
    restored.back_up()
    first.replace(first.get(note.uid), "before the restore")
    restored.replicas[0].sync()
    restored.restore()
    second.replace(second.get(note.uid), "after the restore")
    restored.replicas[1].sync()
    [conflict] = restored.replicas[0].sync().conflicts
    assert (conflict.mine.value, conflict.theirs.value) == ("before the restore", "after the restore")
    conflict.resolve(keep_both)
    restored.sync()
    assert restored.values() == [["after the restore", "before the restore"]] * 2
    restored.close()


@pytest.mark.both_languages
def test_a_vault_that_was_forgotten_comes_back(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """A vault that is younger than the backup is made again, with everything in it."""
    restored = Restored(clients, own_server, tmp_path)
    restored.back_up()
    young = restored.clients[0].vault("young", create=True)
    young.collection("notes").create("in a young vault")
    restored.sync()
    restored.restore()
    assert restored.replicas[0].sync().conflicts == []
    fresh = clients.client(f"http://127.0.0.1:{own_server.port}")
    fresh.login(restored.email, PASSWORD)
    assert sorted(vault.name for vault in fresh.vaults()) == ["v", "young"]
    assert [note.value for note in fresh.vault("young").collection("notes")] == ["in a young vault"]
    restored.close()


@pytest.mark.both_languages
def test_a_plain_client_believes_no_restore(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """Whoever has no copy to bring anything back from is told that the server has gone back."""
    restored = Restored(clients, own_server, tmp_path)
    notes = restored.clients[0].vault("v").collection("notes")
    note = notes.create("before")
    restored.back_up()
    notes.replace(note, "after")
    restored.restore()
    with pytest.raises(RolledBack):
        notes.get(note.uid)
    restored.close()


@pytest.mark.both_languages
def test_an_undecided_conflict_survives_a_restore(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """Both sides of it: what somebody else wrote since the backup is nowhere else any more."""
    restored = Restored(clients, own_server, tmp_path, devices=2)
    first, note = restored.notes[0], restored.changed_since_the_backup()
    first.replace(note, "mine")
    theirs = restored.replicas[0].sync().conflicts[0].theirs
    restored.restore()
    [conflict] = restored.replicas[0].sync().conflicts
    assert (conflict.mine.value, conflict.theirs.value) == ("mine", "theirs")
    assert conflict.theirs.proof == theirs.proof  # sent again as it was
    conflict.resolve(keep_both)
    restored.replicas[0].sync()
    assert sorted(one.value for one in first) == ["mine", "theirs"]
    fresh = clients.client(f"http://127.0.0.1:{own_server.port}")
    fresh.login(restored.email, PASSWORD)
    stored = {one.uid: one.value for one in fresh.vault("v").collection("notes")}
    assert sorted(stored.values()) == ["mine", "theirs"]
    assert stored[note.uid] == "theirs"
    restored.sync()
    assert restored.values() == [["mine", "theirs"]] * 2
    restored.close()


@pytest.mark.both_languages
def test_a_deletion_in_an_undecided_conflict_does_not_delete_after_a_restore(
    clients: ClientFactory, own_server: Server, tmp_path: Path
) -> None:
    """Deleted here without knowing of it, changed there since the backup: the change is sent again."""
    restored = Restored(clients, own_server, tmp_path, devices=2)
    first, note = restored.notes[0], restored.changed_since_the_backup()
    first.delete(note)
    assert len(restored.replicas[0].sync().conflicts) == 1
    restored.restore()
    [conflict] = restored.replicas[0].sync().conflicts
    assert (conflict.mine.deleted, conflict.theirs.value) == (True, "theirs")
    fresh = clients.client(f"http://127.0.0.1:{own_server.port}")
    fresh.login(restored.email, PASSWORD)
    assert [one.value for one in fresh.vault("v").collection("notes")] == ["theirs"]
    conflict.resolve(keep_theirs)
    restored.sync()
    assert restored.values() == [["theirs"]] * 2
    restored.close()


@pytest.mark.both_languages
@pytest.mark.parametrize("deleted", [True, False])
def test_nothing_is_laid_upon_what_was_written_after_a_restore(devices: Devices, *, deleted: bool) -> None:
    """Also where the clock was set back, so that what was written after the restore looks like the older of the two."""
    here, there = devices.notes(devices.here), devices.notes(devices.there)
    uid = here.create("first").uid
    devices.sync()
    devices.server.backup()
    devices.server.clock.pass_(HOUR)
    if deleted:
        here.delete(here.get(uid))
    else:
        here.replace(here.get(uid), "second")
        devices.here.replica.sync()
        here.replace(here.get(uid), "before the restore")
    devices.here.replica.sync()
    there.replace(there.get(uid), "after the restore")
    devices.server.restore()
    devices.server.clock.pass_(-2 * HOUR)
    devices.there.replica.sync()
    [conflict] = devices.here.replica.sync().conflicts
    assert conflict.theirs.value == "after the restore"
    conflict.resolve(keep_theirs if deleted else keep_both)
    expected = ["after the restore"] if deleted else ["after the restore", "before the restore"]
    assert devices.values() == [expected] * 3


@pytest.mark.both_languages
def test_a_version_that_this_device_never_had_is_not_taken_for_an_earlier_one(devices: Devices) -> None:
    """The backup is of a version that this device passed over. Nothing proves that it is older, so both are kept."""
    here = devices.notes(devices.here)
    uid = here.create("first").uid
    devices.sync()
    here.replace(here.get(uid), "in the backup")
    devices.here.replica.sync()
    devices.server.backup()
    here.replace(here.get(uid), "between")  # so that the newest does not name what is in the backup as its parent
    devices.here.replica.sync()
    here.replace(here.get(uid), "since the backup")
    devices.sync()
    devices.server.restore()
    [conflict] = devices.there.replica.sync().conflicts
    assert (conflict.mine.value, conflict.theirs.value) == ("since the backup", "in the backup")
    assert devices.here.replica.sync().conflicts == []
    devices.there.replica.sync(keep_both)
    assert "since the backup" in devices.values()[0]


@pytest.mark.both_languages
def test_the_parent_of_what_is_here_is_known_as_earlier(devices: Devices) -> None:
    """The backup is of a version that this device passed over, and that the newest row follows on."""
    here = devices.notes(devices.here)
    uid = here.create("first").uid
    devices.sync()
    here.replace(here.get(uid), "in the backup")
    devices.here.replica.sync()
    devices.server.backup()
    here.replace(here.get(uid), "since the backup")
    devices.sync()
    newest = devices.get(devices.there, uid)
    devices.server.restore()
    assert devices.there.replica.sync().conflicts == []
    assert devices.get(devices.there, uid).proof == newest.proof
    assert devices.values() == [["since the backup"]] * 3


@pytest.mark.both_languages
def test_every_earlier_version_is_known_as_one(devices: Devices) -> None:
    """However many changes ago the backup was made, up to those that a replica remembers."""
    here = devices.notes(devices.here)
    uid = here.create("0").uid
    devices.here.replica.sync()
    devices.server.backup()
    for number in range(1, EARLIER_VERSIONS + 1):
        here.replace(here.get(uid), str(number))
        devices.here.replica.sync()
    devices.server.restore()
    assert devices.here.replica.sync().conflicts == []
    assert devices.values() == [[str(EARLIER_VERSIONS)]] * 3


@pytest.mark.both_languages
def test_the_deletion_of_what_was_forgotten_is_not_sent(devices: Devices) -> None:
    """Nobody has it any more who could show it again: the server learns of neither the document nor its deletion."""
    devices.server.backup()
    note = devices.notes(devices.here).create("short-lived")
    devices.sync()
    devices.notes(devices.here).delete(devices.get(devices.here, note.uid))
    devices.sync()
    devices.server.restore()
    devices.here.world.sent.clear()
    report = devices.here.replica.sync()
    assert (report.conflicts, report.pushed, devices.here.replica.pending) == ([], 0, 0)
    assert [wanted.path for wanted in devices.here.world.sent if wanted.method != "GET"] == []
    assert devices.stored_rows() == {}
    assert devices.get(devices.here, note.uid).deleted
    assert devices.values() == [[], [], []]


@pytest.mark.both_languages
def test_a_document_that_was_deleted_and_forgotten_is_revived(devices: Devices) -> None:
    """Then the deletion is sent again before the change that was made from it, and nothing is in dispute."""
    devices.server.backup()
    note = devices.notes(devices.here).create("first")
    devices.sync()
    devices.notes(devices.here).delete(devices.get(devices.here, note.uid))
    devices.sync()
    devices.notes(devices.here).replace(devices.get(devices.here, note.uid), "revived")
    devices.server.restore()
    report = devices.here.replica.sync()
    assert (report.conflicts, devices.here.replica.pending) == ([], 0)
    assert devices.values() == [["revived"]] * 3
