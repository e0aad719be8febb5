"""After a restore two devices went on separately: their keyrings are merged, and both go on with all vaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strongroom.client import RolledBack, Tampered
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import ReplicaDevice
from tests.kit.people.credentials import PASSWORD


def names(device: ReplicaDevice) -> list[str]:
    """The vaults that a device has, by the names that people use."""
    return sorted(vault.name for vault in device.replica.vaults())


def restart(devices: Devices, device: ReplicaDevice) -> None:
    """The device's program starts again, and logs in."""
    device.replica.close()
    device.client = devices.login()
    device.replica = device._open()


def parted(devices: Devices, here: Callable[[Any], Any], there: Callable[[Any], Any]) -> None:
    """One device changes the keyring before a restore, the other one after it, without having seen that."""
    devices.server.backup()
    here(devices.here.client)
    devices.here.replica.sync()
    devices.server.clock.pass_(5)
    devices.server.restore()
    there(devices.there.client)
    devices.there.replica.sync()


def converged(devices: Devices) -> list[str]:
    """Both devices sync until they agree; the names of all vaults."""
    devices.sync()
    devices.sync()
    assert names(devices.here) == names(devices.there)
    fresh = devices.login()
    assert sorted(vault.name for vault in fresh.vaults()) == names(devices.here)
    assert devices.here.client._core.keyring().version == devices.there.client._core.keyring().version
    return names(devices.here)


@pytest.mark.both_languages
@pytest.mark.parametrize("more", [0, 1, 3])
@pytest.mark.parametrize("begins", ["goes on", "starts again"])
def test_devices_that_went_on_separately_converge(devices: Devices, more: int, begins: str) -> None:
    """Versions are equal, or one is ahead: nobody is stuck, and no vault and no document is lost."""

    def one(client: Any) -> None:
        for number in range(1 + more):
            client.vault(f"here {number}", create=True).collection("notes").create("of here")

    def other(client: Any) -> None:
        client.vault("there", create=True).collection("notes").create("of there")

    parted(devices, one, other)
    if begins == "starts again":
        restart(devices, devices.here)
    assert converged(devices) == [*(f"here {number}" for number in range(1 + more)), "there", "v"]
    for device in (devices.here, devices.there):
        found = [note.value for vault in device.replica.vaults() for note in vault.collection("notes")]
        assert sorted(found) == ["of here"] * (1 + more) + ["of there"]
    devices.here.client.vault("afterwards", create=True)
    devices.sync()
    assert "afterwards" in names(devices.there)


@pytest.mark.both_languages
def test_the_same_name_is_given_a_number(devices: Devices) -> None:
    """Both have made a vault of one name: one of them gets a number, and both keep their documents."""

    def make(what: str) -> Callable[[Any], Any]:
        return lambda client: client.vault("new", create=True).collection("notes").create(what)

    parted(devices, make("of here"), make("of there"))
    assert converged(devices) == ["new", "new (2)", "v"]
    found = {vault.name: [note.value for note in vault.collection("notes")] for vault in devices.here.replica.vaults()}
    assert sorted([*found["new"], *found["new (2)"]]) == ["of here", "of there"]


@pytest.mark.both_languages
def test_a_deletion_and_a_rename_are_merged(devices: Devices) -> None:
    """What either deleted is deleted; of two names of one vault the higher one counts."""
    for name in ("a", "b"):
        devices.here.client.vault(name, create=True)
    devices.sync()

    def one(client: Any) -> None:
        client.vault("a").delete()
        client.vault("v").rename("w")

    def other(client: Any) -> None:
        client.vault("b").delete()
        client.vault("v").rename("x")

    parted(devices, one, other)
    assert converged(devices) == ["x"]


@pytest.mark.both_languages
def test_two_forks_without_a_restore_are_found_out(devices: Devices) -> None:
    """The epoch is the same: the server shows one device another past, and every device says so."""
    devices.server.backup()
    devices.here.client.vault("here", create=True)
    devices.here.replica.sync()
    devices.server.roll_back()
    devices.there.client.vault("there", create=True)
    with pytest.raises((Tampered, RolledBack)):
        devices.here.replica.sync()
    restart(devices, devices.here)
    with pytest.raises((Tampered, RolledBack)):
        devices.here.replica.sync()
    assert names(devices.here) == ["here", "v"]


@pytest.mark.both_languages
def test_two_keys_of_one_generation_are_not_merged(devices: Devices) -> None:
    """Both have rotated one vault: a person decides, with an error that names the way out."""
    parted(devices, lambda client: client.vault("v").rotate(), lambda client: client.vault("v").rotate())
    with pytest.raises(RolledBack, match=r"call replica\.export and begin a new replica"):
        devices.here.replica.sync()
    devices.here.replica.close()
    devices.here.client.unlock(devices.here.path, PASSWORD)
    devices.here.replica = devices.here._open()
    devices.here.replica.export(devices.home / "file")
    assert (devices.home / "file").stat().st_size > 0
