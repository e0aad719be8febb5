"""What is changed here while the server refuses it, and what is refused that may have been stored before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from strongroom.client.net.effects import Request
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.pair import Pair
from tests.kit.network.proxy import LOSE, PASS, REFUSE, Proxy
from tests.kit.network.unreliable_network import Crash, World
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server

NO_ROOM = "507 quota_exceeded"
TOO_LARGE = "413 payload_too_large"
INVALID = "400 validation_error"


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy before the server."""
    made = Proxy(server.port)
    yield made
    made.close()


class Batches:
    """A policy: what becomes of the next batches, in order. A function is called before its batch passes."""

    def __init__(self, *fates: str | Callable[[], Any]) -> None:
        self.fates = [*fates]

    def __call__(self, _: str, path: str) -> str:
        fate = self.fates.pop(0) if path.endswith("/batch") and self.fates else PASS
        if isinstance(fate, str):
            return fate
        fate()
        return PASS


@pytest.mark.both_languages
def test_a_deletion_of_what_a_lost_request_may_have_stored(
    clients: ClientFactory, tmp_path: Path, proxy: Proxy
) -> None:
    """A change is stored without a response, and its repetition refused: its deletion is sent all the same."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    replica, notes = pair.replicas[1], pair.notes[1]
    note = notes.create("stored")
    proxy.policy = Batches(LOSE, NO_ROOM)
    [change] = replica.sync().refused
    assert change.reason.kind == "quota_exceeded"
    notes.delete(notes.get(note.uid))
    assert replica.pending == 1
    pair.sync()
    assert pair.clients[0].vault("v").collection("notes").get(note.uid, deleted=True).deleted
    assert (pair.values(), replica.pending) == ([[], []], 0)
    pair.close()


@pytest.mark.both_languages
def test_a_deletion_of_what_an_earlier_sync_may_have_stored(
    clients: ClientFactory, tmp_path: Path, proxy: Proxy
) -> None:
    """A sync ends without a response, and the next is refused: the first may arrive late, and the deletion is sent."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    replica, notes = pair.replicas[1], pair.notes[1]
    note = notes.create("on its way")
    proxy.policy = lambda _, path: REFUSE if path.endswith("/batch") else PASS
    with pytest.raises(errors.Unavailable):
        replica.sync()
    proxy.policy = Batches(NO_ROOM)
    assert len(replica.sync().refused) == 1
    notes.delete(notes.get(note.uid))
    assert replica.pending == 1
    pair.sync()
    assert pair.clients[0].vault("v").collection("notes").get(note.uid, deleted=True).deleted
    assert (pair.values(), replica.pending) == ([[], []], 0)
    pair.close()


def changed_during_a_refusal(pair: Pair, proxy: Proxy, refusal: str, change: Callable[[], Any]) -> Any:
    """The report of a sync of the second device, on which a change is made while a batch of it is refused."""

    def refuse(_: str, path: str) -> str:
        if not path.endswith("/batch"):
            return PASS
        proxy.policy = lambda *_: PASS
        change()
        return refusal

    proxy.policy = refuse
    return pair.replicas[1].sync()


@pytest.mark.both_languages
def test_a_change_while_a_deletion_is_refused_as_too_large(
    clients: ClientFactory, tmp_path: Path, proxy: Proxy
) -> None:
    """The deletion is not sent without its content instead: the document was revived meanwhile, and stays so."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    replica, notes = pair.replicas[1], pair.notes[1]
    note = notes.create("x" * 10_000)
    pair.sync()
    notes.delete(notes.get(note.uid))
    report = changed_during_a_refusal(
        pair, proxy, TOO_LARGE, lambda: notes.replace(notes.get(note.uid, deleted=True), "revived")
    )
    assert (report.refused, report.conflicts, pair.values()[1]) == ([], [], ["revived"])
    assert replica.sync().pushed == 1
    pair.sync()
    assert (pair.values(), replica.pending) == ([["revived"]] * 2, 0)
    pair.close()


@pytest.mark.both_languages
def test_a_change_while_an_earlier_one_is_refused(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """The refusal is of the earlier change: none is shown, and the newer one is sent."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    replica, notes = pair.replicas[1], pair.notes[1]
    note = notes.create("odd")
    report = changed_during_a_refusal(pair, proxy, INVALID, lambda: notes.replace(notes.get(note.uid), "even"))
    assert (report.refused, report.newly_refused, replica.refused()) == ([], 0, [])
    assert replica.sync().pushed == 1
    pair.sync()
    assert (pair.values(), replica.pending) == ([["even"]] * 2, 0)
    pair.close()


@pytest.mark.both_languages
def test_a_rotation_before_a_batch_is_sent_again(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """A batch is stored without a response, and the keys are rotated before its repetition: that is no conflict."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    replica, notes = pair.replicas[1], pair.notes[1]
    old = notes.create("old")
    pair.sync()
    notes.create("new")
    notes.replace(notes.get(old.uid), "changed")
    policy = proxy.policy = Batches(LOSE, lambda: pair.clients[0].vault("v").rotate())
    report = replica.sync()
    assert policy.fates == []
    assert (report.conflicts, report.refused, replica.pending) == ([], [], 0)
    pair.sync()
    assert pair.values() == [["changed", "new"]] * 2
    pair.close()


@pytest.mark.both_languages
def test_a_batch_that_arrives_late_before_a_rotation(devices: Devices) -> None:
    """A batch of an earlier process arrives late, and the keys are rotated, before it is sent again: no conflict."""
    world, there = devices.here.world, devices.there.client
    note = devices.notes(devices.here).create("first")
    devices.sync()
    devices.notes(devices.here).replace(devices.get(devices.here, note.uid), "changed")
    late: list[Request] = []

    def carry(wanted: Request) -> Any:
        if wanted.path.endswith("/batch") and not late:
            late.append(wanted)
            raise Crash
        if wanted.path.endswith("/batch") and len(late) == 1:
            late.append(wanted)
            assert World._carry(world, late[0]).status == 200
            there.vault("v").rotate()
        return World._carry(world, wanted)

    world._carry = carry  # type: ignore[method-assign]
    devices.here.run(devices.here.replica.sync, [], None, PASSWORD)
    report = devices.here.replica.sync()
    assert (len(late), report.conflicts, devices.here.replica.pending) == (2, [], 0)
    assert devices.values() == [["changed"]] * 3
