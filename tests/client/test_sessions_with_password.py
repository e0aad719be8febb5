"""A saved session that needs the password: the file alone opens nothing, and unlocking goes on with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Locked
from strongroom.errors import Invalid, InvalidRefreshToken
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.people.credentials import PASSWORD

NEW = "another horse, another staple"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of one's own."""
    folder = tmp_path / "own"
    folder.mkdir(0o700)
    return folder


def saved(clients: PythonClientFactory, folder: Path) -> Any:
    """Somebody with a replica and a saved session."""
    client = clients.person()
    client.vault("personal", create=True).collection("notes").create("one")
    client.open_replica(folder / "replica").sync()
    client.save_session(folder / "session", needs_password=True)
    return client


def test_the_file_alone_opens_nothing(clients: PythonClientFactory, folder: Path) -> None:
    """No key is in it, `resume` says what it needs, and it is not combined with the system's keyring."""
    client = saved(clients, folder)
    client.close()
    raw = json.loads((folder / "session").read_text())
    assert raw["key"] is None
    assert raw["service"] is None
    with pytest.raises(Locked, match="unlock its replica"):
        clients.resume(folder / "session")
    other = clients.person()
    with pytest.raises(Invalid, match="needs_password"):
        other.save_session(folder / "other", keyring="name", needs_password=True)


def test_unlocking_goes_on_with_the_session(clients: PythonClientFactory, folder: Path) -> None:
    """The same session and no second one, also after the password and the keys were changed here."""
    client = saved(clients, folder)
    watcher = clients.client()
    watcher.login(client._core.email, PASSWORD)
    before = {one.id for one in watcher.sessions()}
    client.close()
    again = clients.client()
    again.unlock(folder / "replica", PASSWORD, session=folder / "session")
    assert [note.value for note in again.vault("personal").collection("notes")] == ["one"]
    assert {one.id for one in watcher.sessions()} == before
    replica = again.open_replica(folder / "replica")
    replica.sync()
    again.rotate_keys(PASSWORD, new_password=NEW)
    replica.sync()
    own = {one.id for one in again.sessions() if one.current}
    again.close()
    third = clients.client()
    third.unlock(folder / "replica", NEW, session=folder / "session")
    assert {one.id for one in third.sessions()} == own


def test_a_session_that_has_ended_is_replaced_by_a_login(clients: PythonClientFactory, folder: Path) -> None:
    """The first request says that it has ended, the next one logs in; without the file, and with a damaged one, too."""
    client = saved(clients, folder)
    email = client._core.email
    client.close()
    watcher = clients.client()
    watcher.login(email, PASSWORD)
    for one in watcher.sessions():
        if not one.current:
            watcher.end_session(one.id)
    again = clients.client()
    again.unlock(folder / "replica", PASSWORD, session=folder / "session")
    with pytest.raises(InvalidRefreshToken):
        again.sessions()
    assert len(again.sessions()) == 2
    again.close()
    (folder / "session").write_text("damaged")
    (folder / "session").chmod(0o600)
    again = clients.client()
    again.unlock(folder / "replica", PASSWORD, session=folder / "session")
    assert len(again.sessions()) == 3
    again.close()
    again = clients.client()
    again.unlock(folder / "replica", PASSWORD, session=folder / "nothing")
    assert len(again.sessions()) == 4
