"""Deletion is a statement of a key holder; absence is an error: of vaults, on devices that had them and on new ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from strongroom.client import RolledBack
from strongroom.client.format.keyring import Keyring
from strongroom.client.operations import keyrings
from strongroom.errors import VaultNotFound
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import world_of


def two_vaults(devices: Devices) -> str:
    """A second vault, with a note, on both devices; its uid."""
    vault = devices.here.client.vault("w", create=True)
    vault.collection("notes").create("in w")
    devices.sync()
    return vault.uid


def shown(devices: Devices) -> list[Any]:
    """What the other device has on its disk of the second vault."""
    return [note.value for note in devices.there.replica.vault("w").collection("notes")]


def test_a_vault_goes_when_a_key_holder_says_so(devices: Devices) -> None:
    """From the server, from the directory, and from the disk of every device."""
    uid = two_vaults(devices)
    devices.here.client.vault("w").delete()
    assert devices.here.client._core.keyring().is_gone(uid)
    devices.there.replica.sync()
    with pytest.raises(VaultNotFound):
        devices.there.replica.vault("w")
    assert devices.there.replica._local.file.documents.uids(uid) == set()
    with pytest.raises(VaultNotFound):
        devices.there.client.vault("w")


@pytest.mark.both_languages
def test_a_client_that_knows_the_vault_learns_that_it_is_gone(devices: Devices) -> None:
    """Its copy of the directory is older: no lie, no alarm; and the name is free for a new vault."""
    uid = two_vaults(devices)
    client = devices.login()
    assert [note.value for note in client.vault("w").collection("notes")] == ["in w"]
    devices.here.client.vault("w").delete()
    with pytest.raises(VaultNotFound):
        client.vault("w")
    assert client.vault("w", create=True).uid != uid


def test_a_vault_that_a_directory_does_not_list_stays(devices: Devices) -> None:
    """A keyring without the vault, and without a word that it was deleted, takes nothing from a disk."""
    uid = two_vaults(devices)

    def without(ring: Keyring) -> Keyring:
        return msgspec.structs.replace(ring.without_vault(uid), gone=ring.gone)

    client = devices.login()
    client._run(keyrings.update(client._core, without))
    with pytest.raises(RolledBack):
        devices.there.replica.sync()
    assert devices.there.replica._local.file.documents.uids(uid) != set()


@pytest.mark.both_languages
@pytest.mark.parametrize("restored", [False, True])
def test_a_vault_that_the_server_does_not_list_stays(devices: Devices, *, restored: bool) -> None:
    """Hidden, that is an error; lost in a restore, it is made again. Neither takes it from a disk."""
    uid = two_vaults(devices)
    if restored:
        devices.restored_without_loss()
    devices.server.ask("DELETE", f"/vault/{uid}", devices.here.client._core.session._access)
    if restored:
        devices.there.replica.sync()
        [found] = [vault for vault in devices.login().vaults() if vault.name == "w"]
        assert found.uid == uid
        assert [note.value for note in found.collection("notes")] == ["in w"]
    else:
        with pytest.raises(RolledBack):
            devices.there.replica.sync()
    assert shown(devices) == ["in w"]


@pytest.mark.parametrize("how", ["vaults", "export", "vault", "first sync"])
def test_a_vault_that_was_made_cannot_be_hidden_from_a_new_device(devices: Devices, tmp_path: Path, how: str) -> None:
    """The keyring says that it was made: what does not show it is refused, also by a device that has never seen it."""
    uid = two_vaults(devices)
    client = devices.login()

    def hide(_wanted: Any, told: Any) -> None:
        if "vaults" in told:
            told["vaults"] = [one for one in told["vaults"] if one["uid"] != uid]

    world_of(client).lie = hide
    if how == "vault":
        devices.server.ask("DELETE", f"/vault/{uid}", devices.here.client._core.session._access)
    replica = client.open_replica(tmp_path / "replica")
    attempts: dict[str, Callable[[], Any]] = {
        "vaults": client.vaults,
        "export": lambda: client.export_plaintext(tmp_path / "export.jsonl"),
        "vault": lambda: client.vault("w", create=True),
        "first sync": replica.sync,
    }
    with pytest.raises(RolledBack):
        attempts[how]()
    replica.close()
    assert not (tmp_path / "export.jsonl").exists()


def test_a_vault_that_was_never_made_is_not_missed(devices: Devices) -> None:
    """A process that ended between the entry in the directory and the making of the vault hides nothing."""
    enter = keyrings.update(
        devices.here.client._core,
        lambda ring: ring.with_vault("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6", "w", sealed=True),
    )
    devices.here.client._run(enter)
    client = devices.login()
    assert [vault.name for vault in client.vaults()] == ["v"]
    devices.there.replica.sync()
    with pytest.raises(VaultNotFound):
        client.vault("w")
    assert client.vault("w", create=True).uid == "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
    assert sorted(vault.name for vault in devices.login().vaults()) == ["v", "w"]


@pytest.mark.parametrize("how", ["sync", "vaults", "vault"])
def test_a_rename_that_was_interrupted_is_finished_by_any_device(devices: Devices, how: str) -> None:
    """The directory has the new name and the server the old one: a client that meets it sends the right one."""
    devices.here.client.vault("v").blob.put("the blob")
    devices.sync()
    [entry] = devices.here.client._core.keyring().vaults
    rename = keyrings.update(devices.here.client._core, lambda ring: ring.with_entry(entry.uid, name="new"))
    devices.here.client._run(rename)
    if how == "sync":
        assert devices.there.replica.sync().conflicts == []
    elif how == "vaults":
        assert [vault.name for vault in devices.there.client.vaults()] == ["new"]
    else:
        assert devices.there.client.vault("new").uid == entry.uid
    bearer = devices.here.client._core.session._access
    stored = devices.server.ask("GET", f"/vault/{entry.uid}", bearer).body["name"]
    assert stored == devices.here.client.vault("new")._opened.wire
    found = devices.here.client.vault("new").blob.get()
    assert found is not None
    assert found.value == "the blob"
    devices.sync()
    assert devices.here.replica.vault("new").blob() == "the blob"
