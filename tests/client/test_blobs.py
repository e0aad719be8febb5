"""The blob of a vault, written by several devices: nobody overwrites what they have not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Invalid, VaultConflict
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email

_SENTENCE = "The vault has another blob than the one that this client has last read or written; read it with blob.get"


def two(clients: ClientFactory) -> tuple[Any, Any]:
    """Two clients of one account, and each its vault."""
    email = unique_email()
    one, other = clients.client(), clients.client()
    one.register(email, PASSWORD)
    one.vault("v", create=True)
    other.login(email, PASSWORD)
    return one, other


@pytest.mark.both_languages
def test_a_blob_that_was_not_read_is_not_overwritten(clients: ClientFactory) -> None:
    """Neither the first one of another device, nor its next; opening the vault again is not reading its blob."""
    one, other = two(clients)
    a, b = one.vault("v"), other.vault("v")
    a.blob.put({"by": "a"})
    for vault in (b, other.vault("v")):
        with pytest.raises(VaultConflict, match=_SENTENCE) as raised:
            vault.blob.put({"by": "b"})
    assert (raised.value.details or {})["version"] == a.blob.get().version
    assert b.blob.get().value == {"by": "a"}
    b.blob.put({"by": "b"})
    for vault in (a, one.vault("v")):
        with pytest.raises(VaultConflict, match=_SENTENCE):
            vault.blob.put({"by": "a2"})
        with pytest.raises(VaultConflict, match=_SENTENCE):
            vault.blob.restore(2)
    assert b.blob.get().value == {"by": "b"}


def test_a_blob_is_overwritten_on_purpose(clients: ClientFactory) -> None:
    """With `after`, the blob that is there now; of this vault, and a blob."""
    one, other = two(clients)
    a, b = one.vault("v"), other.vault("v")
    a.blob.put("a", after=a.blob.get())
    b.blob.put("b", after=b.blob.get())
    assert a.blob.restore(2, after=a.blob.get()).value == "a"
    elsewhere = one.vault("w", create=True).blob.put("elsewhere")
    for after, told in ((elsewhere, "of this vault, and is one of another"), (1, "not int"), ("b", "not str")):
        with pytest.raises(Invalid, match=f"after must be a Blob.*{told}"):
            a.blob.put("c", after=after)
    assert b.blob.get().value == "a"


@pytest.mark.both_languages
def test_what_a_client_wrote_itself_it_replaces(clients: ClientFactory) -> None:
    """Through every vault that it opens, and after a rename or a rotation by any device: the content is the same."""
    one, other = two(clients)
    a, b = one.vault("v"), other.vault("v")
    a.blob.put(1)
    one.vault("v").blob.put(2)
    a.rename("w")
    a.blob.put(3)
    b.blob.get()
    a.rotate()
    a.blob.put(4)
    with pytest.raises(VaultConflict):
        b.blob.put(5)
    b.blob.get()
    a.rename("x")
    one.vault("x").rotate()
    b.blob.put(5)
    assert one.vault("x").blob.get().value == 5


@pytest.mark.both_languages
def test_a_put_can_be_repeated(clients: ClientFactory) -> None:
    """After an attempt without a response: what is there already conflicts with nothing."""
    one, other = two(clients)
    one.vault("v").blob.put({"same": True})
    assert other.vault("v").blob.put({"same": True}).value == {"same": True}


def test_an_export_reads_no_blob(clients: ClientFactory, tmp_path: Path) -> None:
    """The program has not seen what an export writes."""
    one, other = two(clients)
    one.vault("v").blob.put("a")
    other.export_plaintext(tmp_path / "export")
    with pytest.raises(VaultConflict):
        other.vault("v").blob.put("b")


@pytest.mark.both_languages
def test_a_blob_of_a_replica_was_read(devices: Devices) -> None:
    """The client of a replica may replace the blob that the replica has shown, and no later one."""
    here, there = devices.here.client.vault("v"), devices.there.client.vault("v")
    here.blob.put("first")
    devices.sync()
    with pytest.raises(VaultConflict):
        there.blob.put("unread")
    assert devices.there.replica.vault("v").blob() == "first"
    there.blob.put("second")
    assert devices.here.replica.vault("v").blob() == "first"
    with pytest.raises(VaultConflict):
        here.blob.put("third")
    devices.sync()
    assert devices.here.replica.vault("v").blob() == "second"
    here.blob.put("third")
