"""What a device stores for itself is sealed under keys of the keyring's storage seed, and of nothing else in it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import msgspec
import pytest

from strongroom.client.errors import Tampered
from strongroom.client.format import box, derive, keyring
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.encoding import from_base64, from_url, generation_bytes, items, label, number, text
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import derive as below
from strongroom.client.operations.session_file import SessionFile
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.network.unreliable_network import ReplicaDevice
from tests.kit.people.credentials import PASSWORD


def ring_of(devices: Devices) -> Keyring:
    """The account's keyring, opened with the password."""
    sealed, _, spelled = devices.stored_keyring()
    descriptor = Descriptor.read(spelled)
    return keyring.open_with_password(
        sealed, derive.password_keys(devices.crew.email, PASSWORD, descriptor), descriptor
    )


def stored(device: ReplicaDevice) -> tuple[str, dict[str, str]]:
    """The sealed email of a replica's file, and the sealed keys of its vaults by uid; of either client."""
    raw = Path(device.path).read_bytes()
    if raw.startswith(b"SQLite"):
        with sqlite3.connect(device.path) as db:
            [(email,)] = db.execute("SELECT value FROM facts WHERE name = 'email'")
            return email, dict(db.execute("SELECT vault, sealed FROM vault_keys"))
    log = [change for line in raw.decode().splitlines() for change in json.loads(line[17:])]
    facts = {tuple(at): value for at, *values in log for value in values}
    keys = {at[1]: kept["sealed"] for at, kept in facts.items() if at[0] == "keys"}
    return facts["facts", "email"], keys


@pytest.mark.both_languages
def test_a_replica_opens_with_the_seed_alone(devices: Devices) -> None:
    """Before a rotation and after it: the email, and the keys of each vault."""
    for generation in (1, 2):
        ring = ring_of(devices)
        email, keys = stored(devices.here)
        seed = ring.storage[-1].seed
        assert [one.generation for one in ring.storage] == list(range(1, generation + 1))
        place = items(label("replica-email"), ring.account)
        opened = box.open_(below(seed, "replica-email"), from_base64(email), place)
        assert opened.decode() == devices.crew.email
        assert {entry.uid for entry in ring.vaults} == keys.keys()
        for uid, sealed in keys.items():
            raw = from_base64(sealed)
            place = items(label("replica-vault"), ring.account, text(uid), number(generation))
            assert raw[:4] == generation_bytes(generation)
            assert json.loads(box.open_(below(seed, "replica-vault"), raw[4:], place))["name"] == "v"
        devices.here.client.rotate_keys(PASSWORD)


def test_a_session_that_needs_the_password_opens_with_the_seed(clients: ClientFactory, tmp_path: Path) -> None:
    """Without the account key, and not with another seed."""
    client = clients.person()
    client.save_session(tmp_path / "session", needs_password=True)
    core = getattr(client, "_thing", client)._core
    found = json.loads((tmp_path / "session").read_text())
    assert found["key"] is None
    place = items(label("session-file"), text(found["id"]))
    key = below(core.keyring().storage[-1].seed, "session-file", text(found["id"]))
    assert core.email in box.open_(key, from_url(found["sealed"]), place).decode()
    key = below(core.keyring().key, "session-file", text(found["id"]))
    with pytest.raises(Tampered):
        box.open_(key, from_url(found["sealed"]), place)
    other = msgspec.structs.replace(core.keyring(), key=bytes(32), identity=())
    assert SessionFile.open_(tmp_path / "session", other)[1].email == core.email


def test_an_unknown_generation_has_no_storage_key() -> None:
    """A keyring holds the seeds of its own generations."""
    ring = Keyring.new(derive.split(bytes(32)), Descriptor.new())
    with pytest.raises(Tampered):
        ring.storage_key("replica-vault", generation=2)
