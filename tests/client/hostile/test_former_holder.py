"""Somebody who has had the keys, together with the server: a rotation shuts them out, also as writers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strongroom.client import Tampered
from strongroom.client.format import keyring, primitives
from strongroom.client.format.derive import PasswordKeys
from strongroom.client.format.keyring import Keyring
from tests.client.forged_keyrings import after
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import about, core_of
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email


def forged(leaked: Keyring, newest: Keyring) -> str:
    """A keyring with keys of the forger's choice, sealed for every way in that the leaked keyring names."""
    guess = PasswordKeys(auth=primitives.random(32), wrap=primitives.random(32))
    return keyring.seal(after(leaked.rotated().rotated(), newest), password=guess)[0]


def forged_below(leaked: Keyring, newest: Keyring) -> str:
    """A keyring of the leaked generation, with its slots, which the password of that time opens."""
    return keyring.seal(after(leaked, newest))[0]


@pytest.mark.parametrize("forge", [forged, forged_below])
def test_a_former_holder_makes_no_keyring(hostile: PythonClientFactory, liar: Liar, forge: Callable[..., str]) -> None:
    """The keys of before a rotation, and all that their keyring says, do not make a keyring that a password opens."""
    email = unique_email()
    owner = hostile.client(liar.url)
    owner.register(email, PASSWORD)
    owner.vault("v", create=True)
    leaked = core_of(owner).keyring()
    owner.rotate_keys(PASSWORD, new_password="another password")
    core = core_of(owner)
    lie = {"keyring": forge(leaked, core.keyring()), "version": core.keyring().version + 1}
    liar.lie = about("GET", "/auth/keyring", lambda talk: talk.say(talk.told | lie))
    fresh = hostile.client(liar.url)
    with pytest.raises(Tampered):
        fresh.login(email, "another password")
    with pytest.raises(Tampered):
        owner.login(email, "another password")


def test_a_device_that_has_seen_a_rotation_takes_no_older_keys(hostile: PythonClientFactory, liar: Liar) -> None:
    """Also where the password is the same, so that the slots of before still open."""
    email = unique_email()
    owner = hostile.client(liar.url)
    owner.register(email, PASSWORD)
    owner.vault("v", create=True)
    leaked = core_of(owner).keyring()
    owner.rotate_keys(PASSWORD)
    core = core_of(owner)
    lie = {"keyring": forged_below(leaked, core.keyring()), "version": core.keyring().version + 1}
    liar.lie = about("GET", "/auth/keyring", lambda talk: talk.say(talk.told | lie))
    with pytest.raises(Tampered):
        owner.vault("none")
    with pytest.raises(Tampered):
        owner.login(email, PASSWORD)
