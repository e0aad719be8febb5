"""A change was stored although its response was lost, and other devices went on from it before this one asked again."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from strongroom.client import Document, Tampered, keep_mine
from strongroom.client.net.effects import Request, Response
from strongroom.client.replica import Report
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import World

pytestmark = pytest.mark.both_engines
Change = Callable[[Devices], Document]


def created(devices: Devices) -> Document:
    """A new document waits."""
    return devices.notes(devices.here).create("sent")


def changed(devices: Devices) -> Document:
    """A change of a document that both have waits."""
    note = devices.notes(devices.here).create("first")
    devices.sync()
    return devices.notes(devices.here).replace(devices.get(devices.here, note.uid), "sent")


both = pytest.mark.parametrize("change", [created, changed])


def settled(report: Report, devices: Devices) -> bool:
    """Whether a sync left nothing to decide and nothing to send."""
    return report.conflicts == [] and devices.here.replica.pending == 0


@pytest.mark.both_languages
@both
def test_a_deletion_of_what_was_stored_stands(devices: Devices, change: Change) -> None:
    """Whoever deleted it had seen it, so it does not come back, and there is nothing to decide."""
    uid = change(devices).uid
    devices.unanswered()
    devices.delete_there(uid)
    assert settled(devices.here.replica.sync(keep_mine), devices)
    assert devices.values() == [[], [], []]


@pytest.mark.both_languages
@both
def test_a_deletion_after_more_changes_stands(devices: Devices, change: Change) -> None:
    """The same where the other device had gone on from it before."""
    uid = change(devices).uid
    devices.unanswered()
    devices.replace_there(uid, "more")
    devices.delete_there(uid)
    assert settled(devices.here.replica.sync(keep_mine), devices)
    assert devices.values() == [[], [], []]


@pytest.mark.both_languages
@both
def test_a_change_of_what_was_stored_is_no_conflict(devices: Devices, change: Change) -> None:
    """Whoever changed it had seen it: that change is the newest."""
    uid = change(devices).uid
    devices.unanswered()
    devices.replace_there(uid, "more")
    assert settled(devices.here.replica.sync(keep_mine), devices)
    assert devices.values() == [["more"]] * 3


@pytest.mark.both_languages
def test_a_revival_of_what_was_deleted_is_no_conflict(devices: Devices) -> None:
    """Whoever revived it had seen the deletion that this device had sent."""
    uid = created(devices).uid
    devices.sync()
    devices.notes(devices.here).delete(devices.get(devices.here, uid))
    devices.unanswered()
    devices.replace_there(uid, "revived")
    assert settled(devices.here.replica.sync(keep_mine), devices)
    assert devices.values() == [["revived"]] * 3


@pytest.mark.both_languages
@both
def test_what_was_changed_since_is_a_conflict(devices: Devices, change: Change) -> None:
    """The deletion did not know of the second change, made here after the first was stored."""
    uid = change(devices).uid
    devices.unanswered()
    devices.notes(devices.here).replace(devices.get(devices.here, uid), "since")
    devices.delete_there(uid)
    [conflict] = devices.here.replica.sync().conflicts
    assert conflict.base is not None
    assert (conflict.base.value, conflict.mine.value, conflict.theirs.deleted) == ("sent", "since", True)
    conflict.resolve(keep_mine)
    assert devices.values() == [["since"]] * 3


@pytest.mark.both_languages
def test_what_was_never_stored_is_a_conflict(devices: Devices) -> None:
    """The deletion did not know of a change that had not arrived, however often it is sent."""
    uid = changed(devices).uid
    devices.unanswered("before")
    devices.delete_there(uid)
    [conflict] = devices.here.replica.sync().conflicts
    assert conflict.base is not None
    assert (conflict.base.value, conflict.mine.value, conflict.theirs.deleted) == ("first", "sent", True)
    conflict.resolve(keep_mine)
    assert devices.values() == [["sent"]] * 3


@pytest.mark.both_languages
def test_what_others_stored_is_not_taken_for_ones_own(devices: Devices) -> None:
    """What stands in the history where this device's change would stand is somebody else's: both had the same base."""
    uid = changed(devices).uid
    devices.unanswered("before")
    devices.replace_there(uid, "theirs")
    devices.replace_there(uid, "theirs too")
    [conflict] = devices.here.replica.sync().conflicts
    assert conflict.base is not None
    assert (conflict.base.value, conflict.mine.value, conflict.theirs.value) == ("first", "sent", "theirs too")


@pytest.mark.both_languages
@both
def test_nothing_is_lost_once_the_trash_is_empty(devices: Devices, change: Change) -> None:
    """The content and the history are gone, so nothing tells whether the deletion knew: that is to be decided."""
    uid = change(devices).uid
    devices.unanswered()
    devices.delete_there(uid)
    devices.empty_trash()
    [conflict] = devices.here.replica.sync().conflicts
    assert (conflict.mine.value, conflict.theirs.deleted, conflict.theirs.value) == ("sent", True, None)
    conflict.resolve(keep_mine)
    assert devices.values() == [["sent"]] * 3


@pytest.mark.both_languages
def test_a_revival_that_is_sent_too_late(devices: Devices) -> None:
    """A document was to be revived, and the trash was emptied before that was sent: it becomes a new document."""
    uid = created(devices).uid
    devices.sync()
    devices.delete_there(uid)
    devices.here.replica.sync()
    devices.notes(devices.here).replace(devices.get(devices.here, uid), "revived")
    devices.empty_trash()
    assert devices.here.replica.sync().conflicts == []
    assert devices.values() == [["revived"]] * 3
    assert [note.uid for note in devices.notes(devices.here)] != [uid]


def test_a_deletion_between_pull_and_push(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted, and the trash emptied, while this device syncs: a change that the deletion did not know is kept."""
    uid = changed(devices).uid
    real = World._carry

    def carry(world: World, wanted: Request) -> Response:
        if wanted.method != "GET":
            monkeypatch.setattr(World, "_carry", real)
            devices.delete_there(uid)
            devices.empty_trash()
        return real(world, wanted)

    monkeypatch.setattr(World, "_carry", carry)
    [conflict] = devices.here.replica.sync().conflicts
    assert (conflict.mine.value, conflict.theirs.deleted) == ("sent", True)
    conflict.resolve(keep_mine)
    assert devices.values() == [["sent"]] * 3


@pytest.mark.both_languages
@both
def test_a_deletion_stands_after_a_restore(devices: Devices, change: Change) -> None:
    """The same after the server was restored from a backup that has all of it."""
    uid = change(devices).uid
    devices.unanswered()
    devices.delete_there(uid)
    devices.server.backup()
    devices.server.restore()
    assert settled(devices.here.replica.sync(keep_mine), devices)
    assert devices.values() == [[], [], []]


def test_a_history_that_was_changed_is_not_believed(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another content under the proof of what was sent is refused, and the change still waits."""
    uid = changed(devices).uid
    devices.unanswered()
    devices.delete_there(uid)
    real = World._deliver

    def deliver(world: World, wanted: Request) -> Response:
        answer = real(world, wanted)
        if "/versions/" not in wanted.path:
            return answer
        first = real(world, msgspec.structs.replace(wanted, path=wanted.path.rpartition("/")[0] + "/1"))
        body = {**json.loads(answer.body), "data": json.loads(first.body)["data"]}
        return Response(answer.status, json.dumps(body).encode(), None)

    with monkeypatch.context() as patch:
        patch.setattr(World, "_deliver", deliver)
        with pytest.raises(Tampered):
            devices.here.replica.sync(keep_mine)
    assert devices.here.replica.pending == 1
    assert settled(devices.here.replica.sync(keep_mine), devices)
    assert devices.values() == [[], [], []]
