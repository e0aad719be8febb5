"""A vault gets another name: on every device, in replicas, for tokens; and a name that cannot be is refused in time."""

from __future__ import annotations

import pytest

from strongroom.client import Tampered
from strongroom.errors import Invalid, VaultAlreadyExists, VaultNotFound
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


@pytest.mark.both_languages
@pytest.mark.parametrize("name", ["x" * 128, "\N{GRINNING FACE}" * 40, "", "sr2.x", "two\nlines"])
def test_a_name_that_cannot_be_is_refused_before_anything_changes(clients: ClientFactory, name: str) -> None:
    """The directory of vaults stays as it was, on this device and on every other."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    vault = client.vault("v", create=True)
    with pytest.raises(Invalid):
        vault.rename(name)
    with pytest.raises(Invalid):
        client.vault(name, create=True)
    other = clients.client()
    other.login(email, PASSWORD)
    assert [one.name for one in other.vaults()] == [one.name for one in client.vaults()] == ["v"]


@pytest.mark.both_languages
def test_two_vaults_never_have_one_name(clients: ClientFactory) -> None:
    """The server cannot tell, because names are sealed; the directory can."""
    client = clients.person()
    vault = client.vault("v", create=True)
    client.vault("w", create=True)
    with pytest.raises(VaultAlreadyExists):
        vault.rename("w")
    assert sorted(one.name for one in client.vaults()) == ["v", "w"]
    vault.rename("x")
    assert (vault.name, sorted(one.name for one in client.vaults())) == ("x", ["w", "x"])
    with pytest.raises(VaultNotFound):
        client.vault("v")


@pytest.mark.both_languages
@pytest.mark.parametrize("sealed", [True, False])
def test_whoever_has_the_vault_open_goes_on(clients: ClientFactory, *, sealed: bool) -> None:
    """Another device and an agent read and write documents and the blob, and learn the new name."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    vault = client.vault("v", create=True, sealed=sealed)
    vault.blob.put("blob")
    other = clients.client()
    other.login(email, PASSWORD)
    theirs, agent = other.vault("v"), clients.with_token(vault.token("agent"))
    lent = agent.vault()
    vault.rename("w")
    for place in (vault, theirs, lent):
        blob = place.blob.get()
        place.blob.put(f"{blob.value} again", after=blob)
        place.collection("notes").create(1)
    assert vault.blob.get().value == "blob again again again"
    assert len(list(vault.collection("notes"))) == 3
    assert [agent.vault(name).name for name in (None, "v", "w")] == ["w"] * 3
    with pytest.raises(VaultNotFound):
        agent.vault("x")
    assert other.vault("w").uid == vault.uid


@pytest.mark.both_languages
def test_a_replica_follows(devices: Devices) -> None:
    """Its vault has the new name after a sync, with what was there, and what waits to be sent is sent."""
    notes = devices.notes(devices.there)
    notes.create("kept")
    devices.sync()
    devices.here.client.vault("v").blob.put("blob")
    devices.there.replica.sync()
    waiting = devices.notes(devices.there).create("waits")
    devices.here.client.vault("v").rename("w")
    devices.there.replica.sync()
    devices.here.replica.sync()
    for device in (devices.here, devices.there):
        vault = device.replica.vault("w")
        assert sorted(note.value for note in vault.collection("notes")) == ["kept", "waits"]
        assert vault.blob() == "blob"
        with pytest.raises(VaultNotFound):
            device.replica.vault("v")
    assert devices.there.replica.pending == 0
    assert devices.here.client.vault("w").collection("notes").get(waiting.uid).value == "waits"


def test_an_agent_is_told_no_false_name(clients: ClientFactory, server: Server) -> None:
    """A name that no key holder gave the vault is refused; so is one in the clear."""
    vault = clients.person().vault("v", create=True)
    token = vault.token("agent")
    liar = Liar(server.port)
    try:
        agent = clients.with_token(token, liar.url)
        lent = agent.vault()
        lent.collection("notes").create(1)
        for name in ("in the clear", lent._opened.wire[:-6] + "AAAAAA"):

            def lie(talk: Talk, name: str = name) -> None:
                if talk.path == f"/vault/{vault.uid}":
                    talk.say(talk.told | {"name": name})

            liar.lie = lie
            for act in (agent.vault, lent.blob.get):
                with pytest.raises(Tampered):
                    act()
    finally:
        liar.close()
