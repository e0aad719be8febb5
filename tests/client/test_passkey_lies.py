"""A server that lies about passkeys, and authenticators that fail: nothing opens, and nothing secret gets out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import (
    CeremonyFailed,
    Client,
    ListedPasskey,
    Locked,
    PasskeyNotFound,
    Refusal,
    RolledBack,
    Tampered,
    WrongServer,
)
from strongroom.client.format import keyring, passkey
from strongroom.client.format.encoding import to_base64, to_url
from tests.client.passkey_owner import Owner
from tests.kit.clients.secrets import assert_hidden, secrets_of
from tests.kit.network.unreliable_network import World, world_of
from tests.kit.people.credentials import PASSWORD
from tests.kit.people.soft_authenticator import unb64
from tests.kit.people.soft_key import SoftKey
from tests.kit.servers.restartable_server import RestartableServer

URL = "http://localhost:1"  # nobody is there: every step goes through the world


@pytest.fixture
def restartable_server(tmp_path: Path) -> Iterator[RestartableServer]:
    made = RestartableServer(str(tmp_path / "vault.db"), public_url=URL)
    yield made
    made.close()


@pytest.fixture
def owner(restartable_server: RestartableServer) -> Owner:
    def make() -> Client:
        client = Client(URL)
        client._driver = World(restartable_server, [])
        return client

    return Owner(make)


def _liar(owner: Owner, lie: Callable[[Any, Any], None]) -> Client:
    client: Client = owner.make()
    world_of(client).lie = lie
    return client


def test_the_output_of_the_prf_leaves_the_device_in_no_request(owner: Owner) -> None:
    """Neither it nor what follows from it, in any spelling, in all that registration, unlocking and login send."""
    client = owner.enter()
    [output] = set(owner.key.outputs)
    account = client._core.keyring().account
    secret = passkey.PasskeySecret.of("localhost", owner.key.passkeys[0].id, output)
    requests = [request for one in (owner.client, client) for request in world_of(one).sent]
    sent = b"".join(request.body for request in requests if isinstance(request.body, bytes))
    assert b"clientDataJSON" in sent
    for value in (output, secret.wrap(account)):
        for spelled in (value, value.hex().encode(), to_base64(value).encode(), to_url(value).encode()):
            assert spelled not in sent
    assert b'prf":{' not in sent


def test_an_authenticator_is_asked_what_the_format_says(owner: Owner) -> None:
    """The constant input, user verification and no attestation, whatever the server's options say."""

    def lie(wanted: Any, told: Any) -> None:
        options = told.get("publicKey")
        if options is not None:
            options |= {"userVerification": "discouraged", "attestation": "direct"}
            options["extensions"] = {"prf": {"eval": {"first": to_url(b"another input")}}, "largeBlob": {"read": True}}
            options["authenticatorSelection"] = {"userVerification": "discouraged"}
        del wanted

    _liar(owner, lie).login_with_passkey(owner.key)
    asked = owner.key.asked[-1]
    assert asked["userVerification"] == "required"
    assert asked["extensions"] == {"prf": {"eval": {"first": to_url(passkey.INPUT)}}}
    world_of(owner.client).lie = lie
    owner.client.passkeys.add("second", PASSWORD, SoftKey(), code=owner.key)
    world_of(owner.client).lie = None


@pytest.mark.parametrize(
    "rp_id", ["evil.example", "example.com", "", "LOCALHOST", "a.localhost", "localhost.", "host\n"]
)
def test_another_rp_id_is_refused_before_the_authenticator_is_asked(owner: Owner, rp_id: str) -> None:
    """At login, as a second factor, and at registration."""

    def lie(_wanted: Any, told: Any) -> None:
        if "publicKey" in told:
            told["publicKey"] |= {"rpId": rp_id}
            if "rp" in told["publicKey"]:
                told["publicKey"]["rp"]["id"] = rp_id

    before = len(owner.key.asked)
    with pytest.raises(WrongServer) as raised:
        _liar(owner, lie).login_with_passkey(owner.key)
    assert "\n" not in str(raised.value)
    with pytest.raises(WrongServer):
        _liar(owner, lie).login(owner.email, PASSWORD, code=owner.key)
    world_of(owner.client).lie = lie
    with pytest.raises(WrongServer):
        owner.client.passkeys.add("second", PASSWORD, SoftKey(), code=owner.ask)
    world_of(owner.client).lie = None
    assert len(owner.key.asked) == before


def _slots(change: Callable[[bytearray, list[int]], None]) -> Callable[[Any, Any], None]:
    """A lie about the slots of the keyring: `change` gets its bytes and where the slots begin."""

    def lie(_wanted: Any, told: Any) -> None:
        if "keyring" in told:
            raw = bytearray(base64.b64decode(told["keyring"]))
            change(raw, [65 + 148 * place for place in range(8)])
            told["keyring"] = base64.b64encode(raw).decode()

    return lie


def _rotated(raw: bytearray, starts: list[int]) -> None:
    raw[65:1249] = raw[starts[1] : 1249] + raw[65 : starts[1]]


def _zeros(raw: bytearray, _starts: list[int]) -> None:
    raw[65:1249] = bytes(1184)


@pytest.mark.parametrize("change", [_rotated, _zeros])
def test_slots_that_the_server_has_changed_open_nothing(
    owner: Owner, change: Callable[[bytearray, list[int]], None]
) -> None:
    """Swapped with those of others, or taken away: the whole keyring is refused, and nothing is used of it."""
    client = _liar(owner, _slots(change))
    with pytest.raises((Tampered, Locked)):
        client.login_with_passkey(owner.key)
    with pytest.raises(Locked):
        client.vaults()


def test_the_slots_of_an_earlier_keyring_open_nothing(owner: Owner) -> None:
    """A removed passkey does not come back with the slots of before; and a device refuses the keyring of before."""
    before = owner.client._core.sealed
    device = owner.enter()
    owner.client.passkeys.disable_unlock(owner.passkey, PASSWORD, code=owner.key)
    assert before is not None
    assert device._core.keyring().version == keyring.version_of(before)
    old = base64.b64decode(before)

    def graft(raw: bytearray, _starts: list[int]) -> None:
        raw[65:1249] = old[65:1249]

    with pytest.raises((Tampered, Locked)):
        _liar(owner, _slots(graft)).login_with_passkey(owner.key)
    owner.client.passkeys.enable_unlock(owner.passkey, PASSWORD, owner.key)
    device.login_with_passkey(owner.key)

    def replay(_wanted: Any, told: Any) -> None:
        if "keyring" in told:
            told |= {"keyring": before, "version": keyring.version_of(before)}

    world_of(device).lie = replay
    with pytest.raises(RolledBack):
        device.login_with_passkey(owner.key)


def test_a_passkey_of_the_servers_own_unlocks_nothing(owner: Owner) -> None:
    """It may stand in the list; that it opens the account is not believed. One that is hidden is shown."""

    def lie(_wanted: Any, told: Any) -> None:
        if "passkeys" in told:
            told["passkeys"] = [
                told["passkeys"][0] | {"uid": "x", "credentialId": to_url(b"the server's"), "prf": True}
            ]

    world_of(owner.client).lie = lie
    listed = owner.client.passkeys.list()
    world_of(owner.client).lie = None
    assert [(one.uid, one.unlocks) for one in listed] == [("x", False), (None, True)]
    with pytest.raises(PasskeyNotFound):
        owner.client.passkeys.rename(listed[1], "x")
    owner.client.passkeys.disable_unlock(listed[1], PASSWORD, code=owner.key)
    assert [one.unlocks for one in owner.client.passkeys.list()] == [False]


def test_a_server_that_registers_another_passkey_is_refused(owner: Owner) -> None:
    """What it says that it registered must be what it was given."""

    def lie(_wanted: Any, told: Any) -> None:
        if "passkey" in told:
            told["passkey"]["credentialId"] = to_url(b"another")

    world_of(owner.client).lie = lie
    with pytest.raises(Tampered):
        owner.client.passkeys.add("second", PASSWORD, SoftKey(), code=owner.key)
    world_of(owner.client).lie = None


def test_a_session_of_another_account_is_refused(owner: Owner) -> None:
    """The server names the account after a login with a passkey; the keyring that is opened must be its own."""
    mallory = Owner(owner.make)
    theirs = mallory.client._core.sealed

    def lie(_wanted: Any, told: Any) -> None:
        if "keyring" in told:
            told |= {"keyring": theirs, "version": keyring.version_of(theirs)}

    with pytest.raises(Locked):
        _liar(owner, lie).login_with_passkey(owner.key)

    def nobody(_wanted: Any, told: Any) -> None:
        if "user" in told:
            told["user"]["email"] = "nobody"

    with pytest.raises(Tampered):
        _liar(owner, nobody).login_with_passkey(owner.key)


# Authenticators that fail


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"id": "!", "response": {}},
        {"id": "AA", "response": {"clientDataJSON": "AA", "authenticatorData": "AA"}},
        {"id": 1, "response": None},
        [],
        None,
        "text",
    ],
)
def test_a_response_that_cannot_be_read_is_a_failed_ceremony(owner: Owner, response: Any) -> None:
    """Whatever a program's own authenticator gives."""
    key = owner.key
    key.get = lambda *_: response  # type: ignore[method-assign]
    with pytest.raises(CeremonyFailed):
        owner.make().login_with_passkey(key)
    with pytest.raises(CeremonyFailed):
        owner.make().login(owner.email, PASSWORD, code=key)


@pytest.mark.parametrize("cut", ["short output", "wrong id", "no base64", "keyring"])
def test_the_output_is_in_no_traceback(owner: Owner, cut: str) -> None:
    """Neither the output nor a key, when the response is damaged or the keyring is."""
    right = owner.key.get
    outputs: list[str] = []

    def damaged(origin: str, options: dict[str, Any]) -> dict[str, Any]:
        response = json.loads(json.dumps(right(origin, options)))
        values = response.get("clientExtensionResults", {}).get("prf", {}).get("results", {"first": ""})
        outputs.append(values["first"])
        if cut == "short output":
            values["first"] = values["first"][:-4]
        if cut == "no base64":
            values["first"] += "!"
        if cut == "wrong id":
            response["id"] = "!"
        return response  # type: ignore[no-any-return]

    owner.key.get = damaged  # type: ignore[method-assign]
    client = _liar(owner, _slots(_zeros)) if cut == "keyring" else owner.make()
    with pytest.raises(Refusal) as raised:
        client.login_with_passkey(owner.key)
    [shown] = outputs
    assert len(unb64(shown)) == 32
    assert_hidden(raised.value, [shown, shown[:-4], unb64(shown), *secrets_of(owner.client)])


def test_an_authenticator_that_uses_another_passkey_is_refused(owner: Owner) -> None:
    """The slot is for the passkey that was named, and for no other."""
    other = SoftKey()
    second = owner.client.passkeys.add("second", PASSWORD, other, code=owner.key).passkey
    version = owner.client._core.keyring().version
    right = owner.key.get

    def ignores(origin: str, options: dict[str, Any]) -> dict[str, Any]:
        return right(origin, options | {"allowCredentials": []})

    owner.key.get = ignores  # type: ignore[method-assign]
    with pytest.raises(CeremonyFailed, match="another passkey"):
        owner.client.passkeys.enable_unlock(second, PASSWORD, owner.key)
    gone = ListedPasskey(uid=None, name="", rp_id="localhost", credential_id=second.credential_id, unlocks=True)
    with pytest.raises(PasskeyNotFound):
        owner.client.passkeys.enable_unlock(gone, PASSWORD, other)
    assert owner.client._core.keyring().version == version


def test_all_eight_ways_in_are_taken(owner: Owner) -> None:
    """A ninth is refused before anybody touches a key; one that is there may be enabled again."""
    keys = [owner.key]
    for number in range(7):
        keys.append(SoftKey())
        made = owner.client.passkeys.add(f"key {number}", PASSWORD, keys[-1], code=keys[0]).passkey
        if number < 6:
            owner.client.passkeys.enable_unlock(made, PASSWORD, keys[-1])
    with pytest.raises(Refusal, match="eight ways"):
        owner.client.passkeys.enable_unlock(made, PASSWORD, keys[-1])
    assert len(keys[-1].asked) == 1
    owner.client.passkeys.enable_unlock(owner.passkey, PASSWORD, owner.key)
    owner.make().login_with_passkey(keys[3])
