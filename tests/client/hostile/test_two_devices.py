"""Two devices of an account of their own, and a server that lies to one about what the other has done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strongroom.client import RolledBack, Tampered
from strongroom.client.format import keyring
from strongroom.client.format.primitives import sha256
from strongroom.errors import InvalidCredentials
from tests.client.forged_keyrings import after
from tests.client.hostile import three_epochs
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.on_accounts import KEYRING, LOGIN, PRELOGIN
from tests.client.hostile.scenario import People, Stage, about, core_of, together
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email

NEW = "another password"


def pair(hostile: PythonClientFactory, liar: Liar, direct: str) -> tuple[str, Any, Any]:
    """The honest device, and the one that is lied to."""
    email = unique_email()
    here, there = hostile.client(direct), hostile.client(liar.url)
    here.register(email, PASSWORD)
    here.vault("v", create=True)
    there.login(email, PASSWORD)
    return email, here, there


def descriptor_of(client: Any) -> dict[str, Any]:
    descriptor = core_of(client).descriptor
    assert descriptor is not None
    return descriptor.spelled()


@pytest.fixture
def direct(people: Any) -> str:
    url: str = people.url
    return url


def test_a_device_keeps_no_keyring_that_no_password_opens(
    hostile: PythonClientFactory, liar: Liar, direct: str, tmp_path: Path
) -> None:
    """The password was changed elsewhere, and this session goes on; with the descriptor of before, nothing is kept."""
    _, here, there = pair(hostile, liar, direct)
    path = tmp_path / "replica"
    replica = there.open_replica(path)
    replica.sync()
    old = descriptor_of(here)
    here.change_password(PASSWORD, NEW)
    session, other = core_of(there).session, core_of(here).session
    session._access, session._refresh = other._access, other._refresh
    liar.lie = about(*PRELOGIN, lambda talk: talk.say({"kdf": old}))
    with pytest.raises(Tampered):
        replica.sync()
    replica.close()
    hostile.client(liar.url).unlock(path, PASSWORD)
    liar.lie = None
    replica = there.open_replica(path)
    replica.sync()
    replica.close()
    hostile.client(liar.url).unlock(path, NEW)


def test_a_recovery_key_that_was_replaced_opens_nothing(hostile: PythonClientFactory, liar: Liar, direct: str) -> None:
    """Not with the descriptor of before, not when any auth key is taken, not with the keyring of before as well."""
    email, here, there = pair(hostile, liar, direct)
    key = here.make_recovery_key(PASSWORD)
    there.login(email, PASSWORD)
    descriptor, sealed = descriptor_of(here), core_of(here).sealed
    version = core_of(here).keyring().version
    here.make_recovery_key(PASSWORD)
    there.login(email, PASSWORD)
    session = core_of(here).session
    tokens = {"accessToken": str(session._access), "refreshToken": str(session._refresh), "token": ""}
    user = {"id": "x", "email": email}
    before = about(*PRELOGIN, lambda talk: talk.say({"kdf": descriptor}))
    any_auth = about(*LOGIN, lambda talk: talk.say(tokens | {"user": user}, 200))
    old_ring = about(*KEYRING, lambda talk: talk.say(talk.told | {"keyring": sealed, "version": version}))
    for lie, refusal in (
        (before, InvalidCredentials),
        (together(before, any_auth), Tampered),
        (together(before, any_auth, old_ring), RolledBack),
    ):
        liar.lie = lie
        with pytest.raises(refusal):
            there.recover(email, key, NEW)
    assert not [sent for sent in liar.sent if sent.writes and sent.late]


def test_a_replica_remembers_its_keyring_across_logins(
    hostile: PythonClientFactory, liar: Liar, direct: str, tmp_path: Path
) -> None:
    """A device that starts again compares a newer keyring with the one in its replica, and goes no further with it."""
    email, here, there = pair(hostile, liar, direct)
    path = tmp_path / "replica"
    with there.open_replica(path) as replica:
        replica.sync()
    ring = core_of(here).keyring()
    newer, _ = keyring.seal(after(ring, ring, [sha256(b"another"), sha256(b"its next")]))
    lie = {"keyring": newer, "version": ring.version + 2}
    liar.lie = about(*KEYRING, lambda talk: talk.say(talk.told | lie))
    fresh = hostile.client(liar.url)
    fresh.login(email, PASSWORD)
    with fresh.open_replica(path) as replica, pytest.raises(Tampered):
        replica.sync()
    assert core_of(fresh).sealed == core_of(here).sealed
    liar.lie = None
    again = hostile.client(liar.url)
    again.unlock(path, PASSWORD)
    assert core_of(again).sealed == core_of(here).sealed


def test_three_epochs_set_nothing_back(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path
) -> None:
    """A server without a key says that it was restored, three times: what was seen stays, and what was deleted."""
    stage = Stage(hostile, liar, people, tmp_path)
    try:
        three_epochs.play(stage)
    finally:
        stage.close()


def test_an_older_row_of_the_same_content_lowers_nothing(
    hostile: PythonClientFactory, liar: Liar, people: People, tmp_path: Path
) -> None:
    """What was written between the two is older than what this device has seen, and a conflict."""
    stage = Stage(hostile, liar, people, tmp_path)
    try:
        three_epochs.play_equal(stage)
    finally:
        stage.close()
