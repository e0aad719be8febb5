"""The ways into an account: what was replaced opens nothing, and what opens it changes only with the password."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from strongroom.client import Tampered
from strongroom.client.format import derive
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.errors import InvalidCredentials
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import world_of
from tests.kit.people.credentials import PASSWORD

NEW = "another horse, another staple"


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_a_replaced_recovery_key_does_not_log_in(devices: Devices, *, removed: bool, replayed: bool) -> None:
    """Also where the server hands out the descriptor that was sealed for it."""
    client = devices.here.client
    old = client.make_recovery_key(PASSWORD)
    before = devices.stored_keyring()[2]
    new = None if removed else client.make_recovery_key(PASSWORD)
    if removed:
        client.remove_recovery_key(PASSWORD)
    other = devices.client()

    def replay(_wanted: Any, told: Any) -> None:
        if replayed and "kdf" in told:
            told["kdf"] = before

    world_of(other).lie = replay
    with pytest.raises(InvalidCredentials):
        other.recover(devices.crew.email, old, NEW)
    assert devices.login(PASSWORD).vault("v").name == "v"
    if new is not None:
        devices.client().recover(devices.crew.email, new, NEW)
        assert devices.login(NEW).vault("v").name == "v"


def flipped(keyring: str, at: int) -> str:
    """A keyring with another bit at a byte."""
    raw = bytearray(base64.b64decode(keyring))
    raw[at] ^= 1
    return base64.b64encode(raw).decode()


@pytest.mark.parametrize("at", [26, 62, 64, 65, 1248])
def test_an_access_token_alone_does_not_change_what_opens_the_account(devices: Devices, at: int) -> None:
    """Generation and slots change only with the password; the account id never does."""
    keyring, version, kdf = devices.stored_keyring()
    bearer = devices.here.client._core.session._access
    right = str(derive.password_keys(devices.crew.email, PASSWORD, Descriptor.read(kdf)).password)
    body: dict[str, Any] = {"keyring": flipped(keyring, at), "version": version}
    assert devices.server.ask("PUT", "/auth/keyring", bearer, body).status == 400
    wrong = body | {"currentPassword": "wrong horse battery"}
    assert devices.server.ask("PUT", "/auth/keyring", bearer, wrong).status == 401
    other = body | {"keyring": flipped(keyring, 2), "currentPassword": right}
    assert devices.server.ask("PUT", "/auth/keyring", bearer, other).status == 400
    assert devices.stored_keyring()[:2] == (keyring, version)
    assert devices.server.ask("PUT", "/auth/keyring", bearer, body | {"currentPassword": right}).status == 200


def test_a_keyring_that_was_destroyed_can_be_put_back(devices: Devices) -> None:
    """Whoever has an access token can still write nonsense into the body: the keyring before it is kept."""
    keyring, version, _ = devices.stored_keyring()
    bearer = devices.here.client._core.session._access
    body = {"keyring": flipped(keyring, 1400), "version": version}
    assert devices.server.ask("PUT", "/auth/keyring", bearer, body).status == 200
    with pytest.raises(Tampered):
        devices.login()
    kept = devices.server.ask("GET", "/auth/keyring/versions", bearer).body["versions"]
    assert kept[0]["version"] == version
    assert devices.server.ask("GET", f"/auth/keyring/versions/{version}", bearer).body["keyring"] == keyring


def test_figures_below_the_default_are_lifted_at_login(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later edition asks for more work: a login on a device that knows the account sets it, once."""
    devices.notes(devices.here).create("before")
    devices.sync()
    monkeypatch.setattr(derive, "DEFAULT", Floor(131_072, 4))
    before = devices.stored_keyring()
    assert (before[2]["memory"], before[2]["passes"]) == (65_536, 3)
    client = devices.here.client
    client.login(devices.crew.email, PASSWORD)
    bearer = client._core.session._access
    lifted = devices.server.ask("POST", "/auth/email/prelogin", body={"email": devices.crew.email}).body["kdf"]
    assert (lifted["memory"], lifted["passes"]) == (131_072, 4)
    assert devices.server.ask("GET", "/auth/keyring", bearer).body["version"] == before[1] + 1
    assert [note.value for note in client.vault("v").collection("notes")] == ["before"]
    again = devices.login()
    assert devices.server.ask("GET", "/auth/keyring", again._core.session._access).body["version"] == before[1] + 1


def test_a_device_without_memory_lifts_no_figures(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may have been restored just now: other slots would part the new device from all others."""
    devices.server.backup()
    devices.here.client.vault("since the backup", create=True)
    devices.here.replica.sync()
    devices.server.restore()
    monkeypatch.setattr(derive, "DEFAULT", Floor(131_072, 4))
    before = devices.stored_keyring(devices.there)
    devices.login()
    assert devices.stored_keyring(devices.there) == before
    devices.here.replica.sync()
    assert {vault.name for vault in devices.login().vaults()} == {"v", "since the backup"}


def test_a_recovery_key_goes_on_after_figures_were_lifted(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lift is a change of password in every respect."""
    key = devices.here.client.make_recovery_key(PASSWORD)
    monkeypatch.setattr(derive, "DEFAULT", Floor(65_536, 4))
    devices.here.client.login(devices.crew.email, PASSWORD)
    assert devices.stored_keyring()[2]["passes"] == 4
    devices.client().recover(devices.crew.email, key, NEW)
    assert devices.login(NEW).vault("v").name == "v"


def test_a_later_login_checks_whose_session_it_got(devices: Devices) -> None:
    """A client that was unlocked without a server logs in with its first request: no session of somebody else."""
    devices.here.replica.close()
    client = devices.client()
    client.unlock(devices.here.path, PASSWORD)

    def another(_wanted: Any, told: Any) -> None:
        if "user" in told:
            told["user"]["email"] = "mallory@example.com"

    world_of(client).lie = another
    with pytest.raises(Tampered):
        client.vaults()
    assert not client._core.session.is_open
    world_of(client).lie = None
    assert [vault.name for vault in client.vaults()] == ["v"]
