"""Rotation: new keys for the account or a vault, and everything sealed anew under them, whatever interrupts it."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom import errors
from strongroom.client import Client, Locked, Tampered
from strongroom.client.format import keyring, seal
from strongroom.client.format.derive import Descriptor, password_keys
from strongroom.client.net.effects import Request
from strongroom.client.operations import batches, listing
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import URL, Crash, World, world_of
from tests.kit.people.credentials import PASSWORD

NEW = "another horse, another staple"
THIRD = "a third horse with a battery"


def generations(client: Client) -> set[int]:
    """The generations of the keys that the vault's live documents are sealed under."""
    return {seal.read_proof(note.proof).generation for note in client.vault("v")}


def token_client(devices: Devices, token: str) -> Client:
    client = Client.with_token(URL, token)
    client._driver = World(devices.server, [])
    return client


def fill(devices: Devices, count: int = 5) -> list[Any]:
    """Documents in two collections, a deleted one, and a blob."""
    vault = devices.here.client.vault("v")
    notes = vault.collection("notes")
    made = [notes.create(f"note {number}") for number in range(count)]
    vault.collection("tasks").create("a task")
    notes.delete(notes.create("unwanted"))
    vault.blob.put("the blob")
    devices.sync()
    return made


def texts(client: Client) -> list[Any]:
    return sorted(note.value for note in client.vault("v"))


def test_after_a_rotation_everything_is_of_the_new_generation(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents, names and the blob; every other value stays, and both devices go on."""
    monkeypatch.setattr(listing, "FIRST_LIMIT", 2)  # so that there are several pages
    fill(devices)
    client, told = devices.here.client, list[tuple[int, int]]()
    before, account = texts(client), client._core.keyring()
    client.rotate_keys(PASSWORD, progress=lambda done, total: told.append((done, total)))
    ring = client._core.keyring()
    assert (ring.generation, ring.identity[-1].generation) == (2, 2)
    assert ring.account == account.account
    assert ring.key != account.key
    assert generations(client) == {2}
    assert texts(client) == before
    assert told[-1] == (len(before), len(before))
    assert {total for _, total in told} == {len(before)}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    bearer = client._core.session._access
    row = devices.server.ask("GET", f"/vault/{ring.vaults[0].uid}", bearer).body
    assert seal.blob_generation(row["data"]) == 2
    assert row["name"] == client.vault("v")._opened.wire
    devices.here.replica.sync()
    assert devices.here.replica.vault("v").blob() == "the blob"
    with pytest.raises(Locked):
        devices.there.replica.sync()  # it has keys of before; its owner logs in again
    other = devices.login()
    devices.there.replica.close()
    with other.open_replica(devices.there.path) as replica:
        assert replica.sync().conflicts == []
        assert sorted(note.value for note in replica.vault("v")) == before
    assert texts(other) == before


def test_an_old_password_with_an_old_keyring_opens_nothing_written_since(devices: Devices) -> None:
    """Somebody who has both has every key of before, and the server's rows: those of today stay closed."""
    fill(devices)
    client = devices.here.client
    old, _, kdf = devices.stored_keyring()
    client.change_password(PASSWORD, NEW)
    client.rotate_keys(NEW)
    client.vault("v").collection("notes").create("since")
    descriptor = Descriptor.read(kdf)
    stolen = keyring.open_with_password(old, password_keys(devices.crew.email, PASSWORD, descriptor), descriptor)
    [entry] = stolen.vaults
    keys, bearer = stolen.vault_keys(entry), client._core.session._access
    rows = devices.server.ask("GET", f"/vaults/{entry.uid}/documents", bearer).body["documents"]
    assert rows
    assert {seal.read_proof(row["hmac"]).generation for row in rows} == {2}
    assert {key.generation for key in keys.keys} == {1}
    newest = devices.stored_keyring()[0]
    with pytest.raises(Tampered):
        keyring.reopen(newest, stolen.key)
    with pytest.raises(Tampered):
        keyring.open_with_password(newest, password_keys(devices.crew.email, PASSWORD, descriptor), descriptor)


def test_a_wrong_password_rotates_nothing(devices: Devices) -> None:
    """Not even the tokens end."""
    token = devices.here.client.vault("v").token("agent")
    before = devices.stored_keyring()
    with pytest.raises(errors.InvalidCredentials):
        devices.here.client.rotate_keys("wrong horse battery")
    assert devices.stored_keyring() == before
    assert token_client(devices, token).vault().name == "v"


def test_tokens_end_with_a_rotation(devices: Devices) -> None:
    """Of the account: all. Of one vault: those for it."""
    client = devices.here.client
    other = client.vault("w", create=True)
    mine, theirs = client.vault("v").token("of v"), other.token("of w")
    client.vault("v").rotate()
    with pytest.raises(errors.Unauthorized):
        token_client(devices, mine).vault()
    assert token_client(devices, theirs).vault().name == "w"
    client.rotate_keys(PASSWORD)
    with pytest.raises(errors.Unauthorized):
        token_client(devices, theirs).vault()
    assert client.api_keys() == []


def test_a_token_that_is_made_after_a_rotation_opens_all(devices: Devices) -> None:
    """What was written before and after, under both names that the collection has on the wire."""
    fill(devices)
    client = devices.here.client
    client.vault("v").rotate()
    notes = client.vault("v").collection("notes")
    made = notes.create("after")
    assert {note.wire for note in notes} > {made.wire}
    expected = sorted(note.value for note in notes)
    whole = token_client(devices, client.vault("v").token("vault"))
    assert sorted(note.value for note in whole.vault().collection("notes")) == expected
    part = token_client(devices, notes.token("collection")).collection()
    assert sorted(note.value for note in part) == expected
    part.replace(part.get(made.uid), "by the agent")
    assert notes.get(made.uid).value == "by the agent"


@pytest.mark.parametrize("new_password", [None, NEW])
def test_a_rotation_replaces_the_recovery_key(devices: Devices, new_password: str | None) -> None:
    """Somebody who has had the keys knows the public keys of the old one. The new one opens the account."""
    fill(devices)
    client = devices.here.client
    old = client.make_recovery_key(PASSWORD)
    key = client.rotate_keys(PASSWORD, new_password=new_password).recovery_key
    before = texts(client)
    assert key is not None
    with pytest.raises(errors.InvalidCredentials):
        devices.client().recover(devices.crew.email, old, THIRD)
    other = devices.client()
    other.recover(devices.crew.email, key, THIRD)
    assert texts(other) == before
    assert texts(devices.login(THIRD)) == before


def test_the_recovery_key_still_works_after_an_interrupted_rotation(devices: Devices) -> None:
    """Its slot is sealed anew, to its public key; it is replaced last, when everything else is done."""
    fill(devices)
    client = devices.here.client
    before = texts(client)
    key = client.make_recovery_key(PASSWORD)

    def ends(wanted: Request) -> Any:
        if wanted.path.endswith("/batch"):
            raise Crash
        return World._carry(devices.here.world, wanted)

    devices.here.world._carry = ends  # type: ignore[method-assign]
    with pytest.raises(Crash):
        client.rotate_keys(PASSWORD)
    other = devices.client()
    other.recover(devices.crew.email, key, NEW)
    assert other._core.keyring().generation == 2
    assert texts(other) == before


def test_a_rotation_makes_no_recovery_key_where_there_was_none(devices: Devices) -> None:
    """Nothing is returned, and the descriptor of the password stays."""
    kdf = devices.stored_keyring()[2]
    assert devices.here.client.rotate_keys(PASSWORD).recovery_key is None
    assert devices.stored_keyring()[2] == kdf


def test_the_rotation_of_a_vault_is_met_by_devices_that_are_logged_in(devices: Devices) -> None:
    """Handles that were made before it read and write on: with the new key, on this device and on another."""
    [first, *_] = fill(devices)
    here, there = devices.here.client.vault("v"), devices.there.client.vault("v")
    notes, theirs = here.collection("notes"), there.collection("notes")
    local = devices.notes(devices.there)
    assert len(list(theirs)) == 5
    here.rotate()
    assert generations(devices.here.client) == {2}
    made = notes.create("by a handle of before")
    assert seal.read_proof(made.proof).generation == 2
    assert theirs.get(first.uid).value == "note 0"
    assert theirs.get(made.uid).value == made.value
    assert sorted(note.value for note in theirs) == sorted(note.value for note in notes)
    assert seal.read_proof(theirs.replace(theirs.get(made.uid), "changed").proof).generation == 2
    blob = there.blob.get()
    assert blob is not None
    assert blob.value == "the blob"
    assert devices.there.replica.sync().conflicts == []
    assert local.get(made.uid).value == "changed"
    assert seal.read_proof(local.create("local").proof).generation == 2
    assert devices.values()[0] == devices.values()[1] == devices.values()[2]


def test_a_list_that_meets_new_keys_shows_all(devices: Devices) -> None:
    """A client with the directory of before begins its list anew, and shows nothing twice."""
    fill(devices, 3)
    theirs = devices.there.client.vault("v").collection("notes")
    devices.here.client.vault("v").rotate()
    devices.here.client.vault("v").collection("notes").create("under the new name")
    found = sorted(note.value for note in theirs)
    assert found == ["note 0", "note 1", "note 2", "under the new name"]


def test_a_queued_change_is_sealed_under_the_newest_key(devices: Devices) -> None:
    """What was written offline before the rotation is sent under the keys of after it."""
    [first, *_] = fill(devices)
    local = devices.notes(devices.there)
    local.replace(local.get(first.uid), "offline")
    made = local.create("made offline")
    devices.here.client.vault("v").rotate()
    assert (
        devices.there.replica.sync().conflicts == []
    )  # the server's row says the same as the one that it was made from
    stored = devices.here.client.vault("v").collection("notes")
    assert stored.get(first.uid).value == "offline"
    assert {seal.read_proof(stored.get(uid).proof).generation for uid in (first.uid, made.uid)} == {2}


@pytest.mark.parametrize("whole", [True, False])
def test_a_rotation_that_is_killed_at_any_step_is_finished(
    devices: Devices, monkeypatch: pytest.MonkeyPatch, *, whole: bool
) -> None:
    """Ended before and after each request of it in turn: a new process finishes it, and nothing is lost."""
    monkeypatch.setattr(batches, "MOST_OPERATIONS", 50)  # so that there are two
    fill(devices, 52)
    expected, ended = texts(devices.login()), 0
    for number in range(100):
        client = devices.login()
        token = client.vault("v").token("agent")
        world = world_of(client)
        newest = client._core.keyring().vaults[0].keys[-1][0]
        left = [number // 2 + 1]

        def carry(wanted: Request, left: list[int] = left, number: int = number, world: Any = world) -> Any:
            left[0] -= 1
            if left[0] == 0 and number % 2 == 0:
                raise Crash
            answer = World._carry(world, wanted)
            if left[0] == 0:
                raise Crash
            return answer

        vault = client.vault("v")
        world._carry = carry  # type: ignore[method-assign]
        try:
            if whole:
                client.rotate_keys(PASSWORD)
            else:
                vault.rotate()
        except Crash:
            ended += 1
        else:
            break
        again = devices.login()
        again.finish_rotation(accept=again.finish_rotation().unseen)  # it has read nothing before: a person is asked
        now = again._core.keyring().vaults[0].keys[-1][0]
        assert generations(again) == {now}
        assert texts(again) == expected
        blob = again.vault("v").blob.get()
        assert blob is not None
        assert blob.value == "the blob"
        if now != newest:
            with pytest.raises(errors.Unauthorized):
                token_client(devices, token).vault()
    else:
        pytest.fail("it never ends")
    assert ended > 10


def test_a_change_during_a_rotation_wins(devices: Devices) -> None:
    """Somebody changes a document while it is sealed anew: theirs stays, under the new key in the end."""
    [first, *_] = fill(devices)
    client, other = devices.here.client, devices.login()
    theirs = other.vault("v").collection("notes")
    world = devices.here.world
    real, done = World._carry, [False]

    def carry(wanted: Request) -> Any:
        if wanted.path.endswith("/batch") and not done[0]:
            done[0] = True
            theirs.replace(theirs.get(first.uid), "quicker")
        return real(world, wanted)

    world._carry = carry  # type: ignore[method-assign]
    client.vault("v").rotate()
    assert done == [True]
    assert client.vault("v").collection("notes").get(first.uid).value == "quicker"
    assert generations(client) == {2}


@pytest.mark.parametrize("many", [False, True])
def test_a_client_with_an_older_keyring_writes_nothing_under_old_keys(devices: Devices, *, many: bool) -> None:
    """It has not read anything since another device rotated the key: what it writes is sealed anew."""
    fill(devices)
    there = devices.there.client.vault("v")
    notes = there.collection("notes")
    devices.here.client.vault("v").rotate()
    assert there._opened.keys.newest.generation == 1
    if many:
        [made] = notes.create_many(["made"])
        assert made.document.value == "made"
    else:
        assert notes.create("made").value == "made"
    assert devices.there.client._core.keyring().vaults[0].keys[-1][0] == 2
    assert generations(devices.login()) == {2}
    there.blob.get()
    devices.here.client.vault("v").rotate()
    there.blob.put("another blob")
    row = devices.server.ask("GET", f"/vault/{there.uid}", devices.here.client._core.session._access).body
    assert seal.blob_generation(row["data"]) == 3


def test_a_batch_that_arrives_after_a_rotation_is_sealed_anew(devices: Devices) -> None:
    """The keyring was read before the rotation, the batch arrives after it."""
    [first, *_] = fill(devices)
    local, world, done = devices.notes(devices.there), devices.there.world, [False]
    made = local.create("made offline")
    local.replace(local.get(first.uid), "changed offline")

    def carry(wanted: Request) -> Any:
        if wanted.path.endswith("/batch") and not done[0]:
            done[0] = True
            devices.here.client.vault("v").rotate()
        return World._carry(world, wanted)

    world._carry = carry  # type: ignore[method-assign]
    assert devices.there.replica.sync().conflicts == []
    assert done == [True]
    assert generations(devices.login()) == {2}
    stored = devices.login().vault("v").collection("notes")
    assert (stored.get(made.uid).value, stored.get(first.uid).value) == ("made offline", "changed offline")
