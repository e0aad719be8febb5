"""The floor of generations: nothing is current that was made with keys of before a rotation that was finished."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom import identifiers
from strongroom.client import Client, CredentialsRolledBack, Tampered
from strongroom.client.format import names, seal
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import NO_PARENT, short
from strongroom.client.format.keys import CollectionKeys, VaultKeys
from strongroom.client.net.effects import Request
from strongroom.client.operations.core import now
from tests.client.both_clients import PASSWORD
from tests.client.devices import Devices
from tests.client.test_rotation import fill, generations, texts, token_client
from tests.client.unreliable_network import Crash, World

NEW = "another horse, another staple"


class FormerHolder:
    """Somebody who has the keys of a vault of before its rotation, and a server that keeps whatever they make."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        entry = devices.here.client._core.keyring().vaults[0]
        self.vault = entry.uid
        self.keys: VaultKeys = devices.here.client._core.keyring().vault_keys(entry)
        self.notes: CollectionKeys = names.collection_keys(self.keys, "notes", sealed=entry.sealed)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._devices.place.ask(method, path, self._devices.here.client._core.session._access, body)
        assert answer.status < 300, answer.body
        return answer.body

    def create(self, value: str = "forged") -> str:
        """A new document."""
        uid = identifiers.new_uid(now())
        made = seal.seal_content(self.notes, seal.DOCUMENT, uid, 1, to_content(value), parent=NO_PARENT)
        body = {"collection": self.notes.wire, "data": made.data, "hmac": made.hmac, "uid": uid}
        self.ask("POST", f"/vaults/{self.vault}/documents", body)
        return uid

    def delete(self, uid: str) -> None:
        """The deletion of what is there."""
        row = self.ask("GET", f"/vaults/{self.vault}/documents/{uid}")
        version, parent = row["version"], short(row["hmac"])
        last = to_content("forged")
        made = seal.seal_deletion(self.notes, uid, version + 1, last, parent=parent, wire=row["collection"])
        put = {"op": "put", "uid": uid, "data": made.data, "hmac": made.hmac, "version": version}
        operations = [put, {"op": "delete", "uid": uid, "version": version + 1}]
        self.ask("POST", f"/vaults/{self.vault}/batch", {"operations": operations})

    def put_blob(self) -> None:
        """Another blob."""
        row = self.ask("GET", f"/vault/{self.vault}")
        parent = seal.parent_after_blob(row["data"])
        made = seal.seal_blob(self.keys, row["name"], row["version"] + 1, "forged", parent=parent)
        body = {"data": made.data, "salt": made.salt, "version": row["version"]}
        self.ask("PUT", f"/vault/{self.vault}", body)


def floor(client: Client) -> int:
    return client._core.keyring().vaults[0].floor


@pytest.mark.parametrize("whole", [True, False])
def test_a_finished_rotation_says_so(devices: Devices, *, whole: bool) -> None:
    """Documents, the trash and the blob are of the new generation; what was before can be read as history."""
    [first, *_] = fill(devices)
    client = devices.here.client
    notes = client.vault("v").collection("notes")
    notes.replace(notes.get(first.uid), "changed")
    assert floor(client) == 1
    if whole:
        client.rotate_keys(PASSWORD)
    else:
        client.vault("v").rotate()
    assert floor(client) == 2
    other = devices.login().vault("v").collection("notes")
    [gone] = list(other.trash)
    assert seal.read_proof(gone.proof).generation == 2
    assert gone.value == "unwanted"
    assert other.revive(gone).value == "unwanted"
    assert other.get_version(first.uid, 1).value == "note 0"
    assert [version.version for version in other.history(first.uid)] == [2, 1]
    assert floor(devices.login()) == 2


def test_an_unfinished_rotation_says_nothing(devices: Devices) -> None:
    """Until everything is sealed anew, what is older is current."""
    fill(devices)
    world, client = devices.here.world, devices.here.client

    def carry(wanted: Request) -> Any:
        if wanted.path.endswith("/batch"):
            raise Crash
        return World._carry(world, wanted)

    world._carry = carry  # type: ignore[method-assign]
    with pytest.raises(Crash):
        client.vault("v").rotate()
    again = devices.login()
    assert floor(again) == 1
    assert generations(again) == {1}
    assert devices.there.replica.sync().conflicts == []
    again.finish_rotation()
    assert floor(again) == 2
    assert devices.there.replica.sync().conflicts == []
    devices.there.client.rotate_keys(PASSWORD)
    assert floor(devices.login()) == 3


@pytest.mark.parametrize("forged", ["create", "delete", "put_blob"])
def test_a_former_holder_makes_nothing_that_is_new(devices: Devices, forged: str) -> None:
    """Not for a device that has seen all, for one that was away, for one that is new, or for an agent."""
    [first, *_] = fill(devices)
    former = FormerHolder(devices)
    devices.here.client.vault("v").rotate()
    token = devices.here.client.vault("v").token("agent")
    devices.here.replica.sync()
    if forged == "delete":
        former.delete(first.uid)
    else:
        getattr(former, forged)()

    def read(client: Client) -> Any:
        vault = client.vault() if client._core.token is not None else client.vault("v")
        if forged == "put_blob":
            return vault.blob.get()
        return vault.collection("notes").get(first.uid) if forged == "delete" else list(vault.collection("notes"))

    for reader in (devices.here.client, devices.there.client, devices.login(), token_client(devices, token)):
        with pytest.raises(Tampered):
            read(reader)
    for device in (devices.here, devices.there):
        with pytest.raises(Tampered):
            device.replica.sync()
    assert "forged" not in [note.value for note in devices.notes(devices.there)]
    assert devices.there.replica.vault("v").blob() == "the blob"
    assert devices.get(devices.there, first.uid).value == "note 0"
    if forged == "delete":
        return  # a replica that is new reads no deletions of before it began
    with (
        devices.login().open_replica(devices.home / "new") as new,
        token_client(devices, token).open_replica(devices.home / "agent") as agents,
    ):
        for replica in (new, agents):
            with pytest.raises(Tampered):
                replica.sync()


def test_a_former_holder_brings_nothing_into_the_trash(devices: Devices) -> None:
    """A deleted document that nobody wrote would be revived with content of theirs."""
    fill(devices)
    former = FormerHolder(devices)
    devices.here.client.vault("v").rotate()
    former.delete(former.create())
    with pytest.raises(Tampered):
        list(devices.login().vault("v").collection("notes").trash)


@pytest.mark.parametrize("away", [False, True])
def test_a_deletion_of_before_whose_content_is_gone(devices: Devices, *, away: bool) -> None:
    """It cannot be sealed anew. A new device does without; one that has the document asks a person."""
    [first, *_] = fill(devices)
    notes = devices.here.client.vault("v").collection("notes")
    notes.delete(notes.get(first.uid))
    if not away:
        devices.there.replica.sync()
    devices.empty_trash()
    devices.here.client.vault("v").rotate()
    assert floor(devices.here.client) == 2
    new = devices.login()
    assert "note 0" not in texts(new)
    with new.open_replica(devices.home / "new") as replica:
        assert replica.sync().conflicts == []
    conflicts = devices.there.replica.sync().conflicts
    assert [(conflict.uid, conflict.needs_manual_resolution) for conflict in conflicts] == [(first.uid, True)][:away]
    assert len(texts(new)) == 5


def test_a_device_refuses_what_it_took_before_it_knew(devices: Devices) -> None:
    """The server holds the newer keyring back and shows what a former holder made: refused when the keyring comes."""
    devices.here.client.vault("plain", create=True, sealed=False)
    devices.sync()
    entry = next(one for one in devices.here.client._core.keyring().vaults if one.name == "plain")
    former = FormerHolder(devices)
    former.vault, former.keys = entry.uid, devices.here.client._core.keyring().vault_keys(entry)
    former.notes = names.collection_keys(former.keys, "notes", sealed=False)
    old = devices.stored_keyring()
    devices.here.client.vault("plain").rotate()
    former.create()
    world, withheld = devices.there.world, [True]

    def carry(wanted: Request) -> Any:
        answer = World._carry(world, wanted)
        if withheld[0] and (wanted.method, wanted.path) == ("GET", "/auth/keyring"):
            import msgspec

            told = msgspec.json.decode(answer.body) | {"keyring": old[0], "version": old[1]}
            return msgspec.structs.replace(answer, body=msgspec.json.encode(told))
        return answer

    world._carry = carry  # type: ignore[method-assign]
    devices.there.replica.sync()
    assert [note.value for note in devices.there.replica.vault("plain").collection("notes")] == ["forged"]
    withheld[0] = False
    with pytest.raises(Tampered, match="before a rotation"):
        devices.there.replica.sync()


def test_what_a_replica_has_of_after_a_rotation_is_sent_again(devices: Devices) -> None:
    """A backup of before the rotation: the rows of after it are repeated as they are, and nothing is left below."""
    fill(devices)
    devices.place.backup()
    devices.here.client.vault("v").rotate()
    devices.sync()
    expected = devices.values()
    devices.place.restore()
    assert devices.here.replica.sync().conflicts == []
    assert devices.there.replica.sync().conflicts == []
    assert devices.values() == expected
    new = devices.login()
    assert (generations(new), floor(new)) == ({2}, 2)


@pytest.mark.parametrize("whole", [True, False])
def test_a_backup_of_before_a_rotation_that_no_replica_has_seen(devices: Devices, *, whole: bool) -> None:
    """Refused, until a person says that the server was restored: then it is sealed anew, and nothing is lost."""
    fill(devices)
    unseen = devices.login().vault("v").collection("notes").create("made without a replica")
    expected = texts(devices.login())
    devices.place.backup()
    if whole:
        devices.here.client.rotate_keys(PASSWORD, new_password=NEW)
    else:
        devices.here.client.vault("v").rotate()
    devices.place.restore()
    password = NEW if whole else PASSWORD
    here = devices.here.replica
    if whole:
        with pytest.raises(CredentialsRolledBack):
            here.sync()
        here.close()
        again = devices.client()
        again.unlock(devices.here.path, NEW)
        again.change_password(PASSWORD, password)
        here = again.open_replica(devices.here.path)
    with pytest.raises(Tampered, match="restored=True"):
        here.sync()
    with pytest.raises(Tampered, match="restored=True"):
        texts(devices.login(password))
    devices.login(password).finish_rotation(restored=True)
    new = devices.login(password)
    assert texts(new) == expected
    assert generations(new) == {2}
    assert here.sync().conflicts == []
    assert here.vault("v").collection("notes").get(unseen.uid).value == "made without a replica"
    assert sorted(note.value for note in here.vault("v")) == expected
    here.close()


def test_what_only_an_old_key_has_is_repeated_and_sealed_anew(devices: Devices) -> None:
    """A restored server has lost it, and the device that has it has not seen the rotation: identical, then anew."""
    gone = devices.notes(devices.there).create("deleted")
    devices.sync()
    devices.place.backup()
    made = devices.notes(devices.there).create("only here")
    devices.notes(devices.there).delete(devices.get(devices.there, gone.uid))
    devices.there.replica.sync()
    rows = devices.stored_rows()
    devices.here.client.vault("v").rotate()
    devices.place.restore()
    for device in (devices.here, devices.there):
        with pytest.raises(Tampered, match="restored=True"):
            device.replica.sync()
    assert devices.stored_rows() == rows
    devices.login().finish_rotation(restored=True)
    assert devices.values() == [["only here"]] * 3
    assert generations(devices.login()) == {2}
    assert devices.get(devices.here, made.uid).value == "only here"


def test_a_floor_does_not_fall(devices: Devices) -> None:
    """A key holder's newer keyring with a lower floor is refused."""
    devices.here.client.vault("v").rotate()
    devices.sync()
    client = devices.login()
    from strongroom.client.operations import keyrings

    uid = client._core.keyring().vaults[0].uid
    client._run(keyrings.update(client._core, lambda ring: ring.with_entry(uid, floor=1)))
    with pytest.raises(Tampered):
        devices.here.replica.sync()
