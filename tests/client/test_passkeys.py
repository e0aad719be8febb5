"""Passkeys with both clients and a real server: a second factor, and a login that also unlocks."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.client import (
    CeremonyFailed,
    InvalidCredentials,
    InvalidPasskey,
    Locked,
    PasskeyNotFound,
    SecondFactorRequired,
    Tampered,
)
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.client.passkey_owner import Owner
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD
from tests.kit.people.soft_key import SoftKey
from tests.kit.servers.process import Server

NEW = "another horse, another staple"


# Both clients, with a real server


@pytest.mark.both_languages
def test_one_ceremony_logs_in_and_unlocks(named_clients: ClientFactory) -> None:
    """Without the password and without naming the account."""
    owner = Owner(named_clients.client)
    before = len(owner.key.asked)
    client = owner.enter()
    assert len(owner.key.asked) == before + 1
    assert [vault.name for vault in client.vaults()] == ["v"]
    client.vault("w", create=True)
    assert {vault.name for vault in owner.client.vaults()} == {"v", "w"}
    named_clients.client().login_with_passkey(owner.key, email=f" {owner.email.upper()} ")
    with pytest.raises(Tampered, match="another account"):
        named_clients.client().login_with_passkey(owner.key, email="mallory@example.com")


class _KeyOfServer(SoftKey):
    """An authenticator that takes a proxy for the server itself."""

    def __init__(self, key: SoftKey, origin: str) -> None:
        self.__dict__.update(key.__dict__)
        self._origin = origin

    def get(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        del origin
        return super().get(self._origin, options)


@pytest.mark.both_languages
def test_another_email_does_not_lift_what_a_device_has_seen(named_clients: ClientFactory, named_server: Server) -> None:
    """The passkey says which account it is, and the email is the server's word: memory counts for the account."""
    owner, liar = Owner(named_clients.client), Liar(named_server.port)
    key = _KeyOfServer(owner.key, named_clients.url)
    known: list[Any] = []

    def watch(talk: Talk) -> None:
        if talk.path == "/auth/email/prelogin":
            known.append(talk.told)

    def lie(talk: Talk) -> None:
        if talk.path == "/auth/email/prelogin":
            talk.say(known[0])
        elif talk.path == "/auth/passkeys/login":
            talk.say(talk.told | {"user": talk.told["user"] | {"email": "mallory@example.com"}})

    try:
        device = named_clients.client(liar.url.replace("127.0.0.1", "localhost"))
        liar.lie = watch
        device.login_with_passkey(key)
        liar.lie = lie
        with pytest.raises(Tampered, match="another email"):
            device.login_with_passkey(key)
    finally:
        liar.close()


@pytest.mark.both_languages
def test_a_passkey_is_a_second_factor(named_clients: ClientFactory) -> None:
    """From its registration on a login with the password needs one; the passkey, or one of its recovery codes."""
    owner = Owner(named_clients.client, unlock=False)
    assert len(owner.codes) == 10
    with pytest.raises(SecondFactorRequired) as raised:
        named_clients.client().login(owner.email, PASSWORD)
    assert raised.value.details is not None
    assert "passkey" in raised.value.details["methods"]
    client = named_clients.client()
    client.login(owner.email, PASSWORD, code=owner.key)
    assert [vault.name for vault in client.vaults()] == ["v"]
    client.change_password(PASSWORD, NEW, code=owner.key)
    named_clients.client().login(owner.email, NEW, code=owner.ask)
    client.second_factor.new_recovery_codes(NEW, code=owner.key)
    client.delete_account(NEW, code=owner.key)
    with pytest.raises(InvalidPasskey):
        owner.enter()


@pytest.mark.both_languages
def test_without_prf_it_never_unlocks(named_clients: ClientFactory) -> None:
    """It is a second factor, and says so before anything is sent."""
    owner = Owner(named_clients.client)
    plain = SoftKey(prf=False)
    added = owner.client.passkeys.add("old key", PASSWORD, plain, code=owner.key)
    assert not added.has_prf
    assert added.recovery_codes is None
    with pytest.raises(CeremonyFailed, match="PRF"):
        owner.client.passkeys.enable_unlock(added.passkey, PASSWORD, plain)
    with pytest.raises(Locked, match="PRF"):
        named_clients.client().login_with_passkey(plain)
    named_clients.client().login(owner.email, PASSWORD, code=plain)


@pytest.mark.both_languages
def test_a_passkey_that_was_not_enabled_does_not_unlock(named_clients: ClientFactory) -> None:
    """It logs in, and the keys stay closed; nothing is left open."""
    owner = Owner(named_clients.client, unlock=False)
    client = named_clients.client()
    with pytest.raises(Locked, match="enable_unlock"):
        client.login_with_passkey(owner.key)
    with pytest.raises(Locked):
        client.vaults()


@pytest.mark.both_languages
def test_passkeys_are_listed_renamed_and_deleted(named_clients: ClientFactory) -> None:
    """Whether one opens the account is the keyring's word."""
    owner = Owner(named_clients.client)
    client, other = owner.client, SoftKey()
    second = client.passkeys.add("green key", PASSWORD, other, code=owner.key).passkey
    client.passkeys.rename(second, "grey key")
    listed = client.passkeys.list()
    assert [(one.name, one.unlocks) for one in listed] == [("blue key", True), ("grey key", False)]
    assert all(one.created_at is not None for one in listed)
    client.passkeys.enable_unlock(second, PASSWORD, other)
    named_clients.client().login_with_passkey(other)
    client.passkeys.disable_unlock(second, PASSWORD, code=owner.key)
    with pytest.raises(Locked):
        named_clients.client().login_with_passkey(other)
    with pytest.raises(SecondFactorRequired):
        client.passkeys.delete(listed[0], PASSWORD)
    with pytest.raises(InvalidCredentials):
        client.passkeys.delete(listed[0], "wrong horse battery", code=other)
    client.passkeys.delete(listed[0], PASSWORD, code=other)
    assert [one.name for one in client.passkeys.list()] == ["grey key"]
    with pytest.raises(InvalidPasskey):
        owner.enter()
    with pytest.raises(PasskeyNotFound):
        client.passkeys.rename(listed[0], "gone")
    client.passkeys.delete(second, PASSWORD, code=other)
    assert client.passkeys.list() == []
    named_clients.client().login(owner.email, PASSWORD)


@pytest.mark.both_languages
def test_a_rotation_drops_passkeys_until_they_are_touched(named_clients: ClientFactory) -> None:
    """A change of password and a recovery leave them; the result of a rotation names what it has dropped."""
    owner = Owner(named_clients.client)
    owner.client.change_password(PASSWORD, NEW, code=owner.ask)
    assert [vault.name for vault in owner.enter().vaults()] == ["v"]
    key = owner.client.make_recovery_key(NEW, code=owner.ask)
    other = named_clients.client()
    other.login(owner.email, NEW, code=owner.ask)
    rotation = owner.client.rotate_keys(NEW, code=owner.ask)
    [dropped] = rotation.passkeys
    assert (dropped.name, dropped.unlocks) == (owner.client.passkeys.list()[0].name, False)
    assert [one.current for one in rotation.devices] == [False] * len(rotation.devices)
    assert rotation.devices
    with pytest.raises(Locked):
        owner.enter()
    owner.client.passkeys.enable_unlock(dropped, NEW, owner.key)
    client = owner.enter()
    assert client._core.keyring().generation == 2
    assert [vault.name for vault in client.vaults()] == ["v"]
    with pytest.raises(InvalidCredentials):
        named_clients.client().recover(owner.email, key, PASSWORD, code=owner.ask)
    newest = client.make_recovery_key(NEW, code=owner.ask)
    named_clients.client().recover(owner.email, newest, PASSWORD, code=owner.ask)
    assert [vault.name for vault in owner.enter().vaults()] == ["v"]
    assert [one.unlocks for one in owner.enter().passkeys.list()] == [True]
