"""Parents: a newer row is taken only where it knew of what a device has seen; a fork is a conflict, a gap is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom import model
from strongroom.client import Client, Tampered, keep_theirs
from strongroom.client.format import seal
from strongroom.client.format.encoding import NO_PARENT, short
from strongroom.client.format.seal import Sealed
from strongroom.client.net import requests
from strongroom.client.net.effects import Request
from strongroom.client.operations import documents
from tests.kit.clients.devices import Devices
from tests.kit.servers.restartable_server import HISTORY_VERSIONS


def sealed(
    client: Client, uid: str, version: int, value: Any, parent: bytes, name: str = "notes"
) -> tuple[str, Sealed]:
    """A row that a key holder made: the collection on the wire, and what is stored of it."""
    keys = client.vault("v").collection(name)._scope.write_keys()
    return keys.wire, seal.seal_document(keys, uid, version, value, parent=parent)


def showing(uid: str, history: list[tuple[int, str]]) -> Callable[[Request, Any], None]:
    """A server that shows this history of a document."""

    def lie(wanted: Request, told: Any) -> None:
        if wanted.path.endswith("/history"):
            told["versions"] = [
                {"uid": uid, "version": number, "hmac": hmac, "updatedAt": number} for number, hmac in history
            ]
            told |= {"next": len(history), "hasMore": False}

    return lie


class Forked:
    """A note that the other device has seen at version 2, and rows that were made on another branch of it."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        here = devices.notes(devices.here)
        self.uid = here.create("one").uid
        devices.sync()
        self.first = devices.get(devices.here, self.uid)
        here.replace(here.get(self.uid), "two")
        devices.sync()
        self.client = devices.here.client
        self.seen = devices.get(devices.there, self.uid)
        assert (self.first.version, self.seen.version) == (1, 2)

    def store(self, kind: str) -> None:
        """Let the server have a newer row of another branch, and show what history it likes."""
        version, row, history = branch(self, kind)
        body = {"operations": [requests.batches.put_operation(self.uid, row, self.seen.version, version)]}
        bearer = self.client._core.session._access
        assert self.devices.server.ask("POST", f"/vaults/{self.seen.vault}/batch", bearer, body).status == 200
        self.devices.there.world.lie = showing(self.uid, history)

    def row(self, version: int, value: str, parent: str | None) -> Sealed:
        return sealed(self.client, self.uid, version, value, NO_PARENT if parent is None else short(parent))[1]


@pytest.fixture
def forked(devices: Devices) -> Forked:
    return Forked(devices)


def branch(forked: Forked, kind: str) -> tuple[int, Sealed, list[tuple[int, str]]]:
    """A newer row, its version, and the history that the server shows."""
    first, seen = forked.first.proof, forked.seen.proof
    other = forked.row(2, "another two", first)
    if kind == "directly":  # it follows on version 1, as another version 2 would
        return 3, forked.row(3, "forked", first), [(1, first), (2, seen)]
    if kind == "another second":
        return 3, forked.row(3, "forked", other.hmac), [(1, first), (2, other.hmac)]
    if kind == "longer":
        third = forked.row(3, "another three", other.hmac)
        return 4, forked.row(4, "forked", third.hmac), [(1, first), (2, other.hmac), (3, third.hmac)]
    return 5, forked.row(5, "forked", None), [(1, first), (2, seen)]  # a new beginning


FORKS = ["directly", "another second", "longer", "a new beginning"]


@pytest.mark.parametrize("kind", FORKS)
def test_a_fork_is_refused_by_a_client(devices: Devices, forked: Forked, kind: str) -> None:
    """A client that holds no copy has nothing to lay beside it: it refuses."""
    notes = devices.there.client.vault("v").collection("notes")
    assert notes.get(forked.uid).value == "two"
    forked.store(kind)
    for attempt in (lambda: notes.get(forked.uid), lambda: list(notes)):
        with pytest.raises(Tampered, match="did not know"):
            attempt()


@pytest.mark.parametrize("kind", FORKS)
def test_a_fork_is_a_conflict_of_a_replica(devices: Devices, forked: Forked, kind: str) -> None:
    """Never an update: what is here is kept, and somebody decides."""
    forked.store(kind)
    [conflict] = devices.there.replica.sync().conflicts
    assert (conflict.mine.value, conflict.theirs.value) == ("two", "forked")
    assert devices.get(devices.there, forked.uid).value == "two"


def test_a_chain_through_the_history_is_an_update(devices: Devices, forked: Forked) -> None:
    """A device that was away for some versions, online and with a replica."""
    notes = devices.there.client.vault("v").collection("notes")
    assert notes.get(forked.uid).value == "two"
    here = devices.notes(devices.here)
    for number in range(HISTORY_VERSIONS):
        here.replace(here.get(forked.uid), f"change {number}")
        devices.here.replica.sync()
    found = notes.get(forked.uid)
    assert (found.value, found.gap) == (f"change {HISTORY_VERSIONS - 1}", False)
    report = devices.there.replica.sync()
    assert (report.conflicts, report.gaps) == ([], 0)
    assert devices.get(devices.there, forked.uid).value == found.value


def test_a_gap_is_taken_and_said(devices: Devices, forked: Forked) -> None:
    """The server has thrown away what lies between: a client and a replica that did not write it take the row."""
    notes = devices.there.client.vault("v").collection("notes")
    assert notes.get(forked.uid).value == "two"
    here = devices.notes(devices.here)
    for number in range(HISTORY_VERSIONS + 2):
        here.replace(here.get(forked.uid), f"change {number}")
        devices.here.replica.sync()
    found = notes.get(forked.uid)
    assert (found.value, found.gap) == (f"change {HISTORY_VERSIONS + 1}", True)
    assert notes.get(forked.uid).gap is False  # it is what this client has seen, by now
    report = devices.there.replica.sync()
    assert (report.conflicts, report.gaps) == ([], 1)
    assert devices.get(devices.there, forked.uid).value == found.value


def test_a_history_without_an_end_is_a_gap(devices: Devices, forked: Forked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that always has one page more keeps nobody reading for ever."""
    monkeypatch.setattr(documents, "MAX_HISTORY_PAGES", 5)
    here = devices.notes(devices.here)
    for number in range(3):
        here.replace(here.get(forked.uid), f"change {number}")
        devices.here.replica.sync()
    pages: list[str] = []

    def lie(wanted: Request, told: Any) -> None:
        if wanted.path.endswith("/history"):
            pages.append(wanted.path)
            assert len(pages) <= 5
            told |= {"versions": [], "next": int(dict(wanted.query)["since"]) + 1, "hasMore": True}

    devices.there.world.lie = lie
    report = devices.there.replica.sync()
    assert (report.conflicts, report.gaps, len(pages)) == ([], 1, 5)


@pytest.mark.parametrize("waiting", [False, True])
def test_a_gap_is_a_conflict_where_something_could_be_lost(devices: Devices, forked: Forked, *, waiting: bool) -> None:
    """A replica that wrote the version it has seen, or that waits to send a change, lays both before a person."""
    if waiting:
        there = devices.notes(devices.there)
        there.replace(there.get(forked.uid), "mine")
        mine = "mine"
    else:
        devices.replace_there(forked.uid, "written there")
        mine = "written there"
        devices.here.replica.sync()
    here = devices.notes(devices.here)
    for number in range(HISTORY_VERSIONS + 2):
        here.replace(here.get(forked.uid), f"change {number}")
        devices.here.replica.sync()
    [conflict] = devices.there.replica.sync().conflicts
    assert (conflict.mine.value, conflict.theirs.value) == (mine, f"change {HISTORY_VERSIONS + 1}")
    conflict.resolve(keep_theirs)
    assert devices.values() == [[f"change {HISTORY_VERSIONS + 1}"]] * 3


def test_a_deletion_and_a_revival_are_links_of_the_chain(devices: Devices, forked: Forked) -> None:
    """A tombstone counts as its notice."""
    notes = devices.there.client.vault("v").collection("notes")
    assert notes.get(forked.uid).value == "two"
    here = devices.notes(devices.here)
    here.delete(here.get(forked.uid))
    devices.here.replica.sync()
    here.replace(here.get(forked.uid, deleted=True), "revived")
    devices.here.replica.sync()
    found = notes.get(forked.uid)
    assert (found.value, found.gap) == ("revived", False)
    assert devices.there.replica.sync().conflicts == []
    assert devices.get(devices.there, forked.uid).value == "revived"


def test_each_row_names_the_one_before_it(devices: Devices, forked: Forked) -> None:
    """As it is stored: create, replace, replace by another device, delete."""
    devices.replace_there(forked.uid, "three")
    devices.delete_there(forked.uid)
    core = devices.here.client._core
    uid, bearer = core.keyring().vaults[0].uid, core.session._access
    rows = devices.server.ask("GET", f"/vaults/{uid}/documents/{forked.uid}/versions", bearer).body["versions"]
    texts = {}
    for row in rows:
        told = devices.server.ask("GET", f"/vaults/{uid}/documents/{forked.uid}/versions/{row['version']}", bearer).body
        texts[row["version"]] = told["hmac"]
    texts[4] = devices.stored_rows()[forked.uid][1]
    assert all(seal.parent_of(texts[number]) == short(texts[number - 1]) for number in texts if number - 1 in texts)
    assert len(texts) > 2


# Blobs


def test_blobs_have_parents_too(devices: Devices) -> None:
    """A newer blob that did not know of the one that was seen is refused, by a client and by a replica."""
    here, there = devices.here.client.vault("v"), devices.there.client.vault("v")
    here.blob.put("first")
    devices.sync()
    first = devices.here.replica._local.file.vaults.get(here.uid)
    here.blob.put("second")
    devices.sync()
    seen = there.blob.get()
    assert seen is not None
    assert (seen.value, seen.gap) == ("second", False)
    assert first is not None
    keys, wire = here._opened.keys, here._opened.wire
    forked = seal.seal_blob(keys, wire, seen.version + 1, "forked", parent=short(first.data or ""))

    def lie(_wanted: Request, told: Any) -> None:
        rows = told.get("vaults", [told])
        for row in rows:
            if row.get("uid") == here.uid and "name" in row:
                row |= {"data": forked.data, "salt": forked.salt, "version": seen.version + 1}
                row["updatedAt"] += 1

    devices.there.world.lie = lie
    with pytest.raises(Tampered):
        there.blob.get()
    with pytest.raises(Tampered):
        devices.there.replica.sync()
    assert devices.there.replica.vault("v").blob() == "second"
    devices.there.world.lie = None
    here.blob.put("third")
    devices.there.replica.sync()
    assert devices.there.replica.vault("v").blob() == "third"


# A uid in two collections


def test_a_document_cannot_be_hidden_behind_its_uid_in_another_collection(devices: Devices) -> None:
    """A key holder used one uid twice: the server shows the other one in the place of what was seen, and is refused."""
    client = devices.there.client
    notes = client.vault("v").collection("notes")
    made = notes.create("seen here")
    wire, other = sealed(client, made.uid, 7, "in another collection", NO_PARENT, "tasks")
    row = model.Document(
        made.uid, made.vault, wire, other.data, other.hmac, 7, made.created_at, made.updated_at + 5, None
    )

    def lie(_wanted: Request, told: Any) -> None:
        if told.get("uid") == made.uid:
            told |= msgspec.to_builtins(row) | msgspec.json.decode(msgspec.json.encode(row))
        elif "documents" in told and isinstance(told["documents"], list):
            told["documents"] = []
            told["next"] = 0
            told["hasMore"] = False

    devices.there.world.lie = lie
    for attempt in (lambda: list(notes), lambda: notes.get(made.uid), lambda: list(client.vault("v"))):
        with pytest.raises(Tampered):
            attempt()
