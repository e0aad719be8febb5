"""A security key that is plugged in: the library for it and the client together, with a key in software."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fido2.hid import CtapHidDevice

from strongroom.client import CeremonyFailed, Client, SecurityKey
from strongroom.client.operations.ceremonies import Authenticator
from tests.kit.clients.secrets import assert_hidden
from tests.kit.network.unreliable_network import World
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.people.soft_ctap_device import SoftCtapDevice
from tests.kit.servers.restartable_server import RestartableServer

URL = "http://localhost:1"


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> list[SoftCtapDevice]:
    """The keys that are plugged in."""
    devices = [SoftCtapDevice()]
    monkeypatch.setattr(CtapHidDevice, "list_devices", classmethod(lambda _cls: iter(devices)))
    return devices


@pytest.fixture
def restartable_server(tmp_path: Path) -> Iterator[RestartableServer]:
    made = RestartableServer(str(tmp_path / "vault.db"), public_url=URL)
    yield made
    made.close()


def client_of(server: RestartableServer) -> Client:
    client = Client(URL)
    client._driver = World(server, [])
    return client


def test_a_key_is_a_second_factor_and_unlocks(
    restartable_server: RestartableServer, plugged: list[SoftCtapDevice]
) -> None:
    """Registered, enabled, used as a factor and to log in: real CTAP, with PIN, `hmac-secret` and a real server."""
    client, email, touched = client_of(restartable_server), unique_email(), [0]

    def touch() -> None:
        touched[0] += 1

    key = SecurityKey("1234", on_touch=touch)
    assert isinstance(key, Authenticator)
    client.register(email, PASSWORD)
    client.vault("v", create=True)
    added = client.passkeys.add("key", PASSWORD, key)
    assert added.has_prf
    client.passkeys.enable_unlock(added.passkey, PASSWORD, key)
    fresh = client_of(restartable_server)
    fresh.login_with_passkey(SecurityKey(lambda: "1234"))
    assert [vault.name for vault in fresh.vaults()] == ["v"]
    client_of(restartable_server).login(email, PASSWORD, code=key)
    assert touched[0] >= 3
    assert plugged[0].closed == 4
    with pytest.raises(CeremonyFailed, match="has one already"):
        client.passkeys.add("again", PASSWORD, key, code=key)


def test_a_key_without_the_extension_does_not_unlock(
    restartable_server: RestartableServer, plugged: list[SoftCtapDevice]
) -> None:
    """An older key is a second factor."""
    plugged[:] = [SoftCtapDevice(prf=False)]
    client, email, key = client_of(restartable_server), unique_email(), SecurityKey("1234")
    client.register(email, PASSWORD)
    assert not client.passkeys.add("key", PASSWORD, key).has_prf
    client_of(restartable_server).login(email, PASSWORD, code=key)


def test_what_can_go_wrong_is_said(restartable_server: RestartableServer, plugged: list[SoftCtapDevice]) -> None:
    """No key, two keys, a wrong PIN, none, and a key that has no passkey of the server; the PIN is in no traceback."""
    with pytest.raises(CeremonyFailed, match="no passkey"):
        client_of(restartable_server).login_with_passkey(SecurityKey("1234"))
    for wrong in (SecurityKey("9876"), SecurityKey(lambda: "9876")):
        with pytest.raises(CeremonyFailed, match="PIN") as raised:
            client_of(restartable_server).login_with_passkey(wrong)
        assert_hidden(raised.value, ["9876"])
    with pytest.raises(CeremonyFailed, match="PIN"):
        client_of(restartable_server).login_with_passkey(SecurityKey())
    plugged.append(SoftCtapDevice())
    with pytest.raises(CeremonyFailed, match="Several"):
        client_of(restartable_server).login_with_passkey(SecurityKey("1234"))
    plugged.clear()
    with pytest.raises(CeremonyFailed, match="Plug one in"):
        client_of(restartable_server).login_with_passkey(SecurityKey("1234"))
    assert "1234" not in repr(SecurityKey("1234"))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client alone does not install it."""
    hidden: dict[str, Any] = {name: None for name in sys.modules if name.split(".")[0] == "fido2"} | {"fido2": None}
    for name, module in hidden.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ModuleNotFoundError, match=r"strongroom\[fido\]"):
        SecurityKey("1234").get(URL, {})
