"""Half of a surrogate pair is no text that UTF-8 can hold: at every door it is refused as any other bad value is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email

LONE = "a\ud800"


def someone(clients: Any) -> tuple[Any, str]:
    """A client of somebody new, and the email."""
    client, email = clients.client(), unique_email()
    client.register(email, PASSWORD)
    return client, email


def _doors(clients: Any, client: Any, email: str) -> dict[str, Callable[[], object]]:
    vault = client.vault("v", create=True)
    notes = vault.collection("notes")
    note = notes.create("one")
    return {
        "the email of a new account": lambda: clients.client().register(f"{LONE}@example.com", PASSWORD),
        "the email of a login": lambda: clients.client().login(f"{LONE}@example.com", PASSWORD),
        "the password of a new account": lambda: clients.client().register(unique_email(), LONE * 8),
        "the password of a login": lambda: clients.client().login(email, LONE),
        "a new password": lambda: client.change_password(PASSWORD, LONE * 8),
        "a recovery key": lambda: clients.client().recover(email, LONE, "a new and better password"),
        "the name of a device": lambda: clients.client(device_name=LONE).login(email, PASSWORD),
        "a token": lambda: clients.with_token(f"srv_{LONE}"),
        "the name of a token": lambda: notes.token(LONE),
        "the name of a vault": lambda: client.vault(LONE, create=True),
        "the name of a vault that is not sealed": lambda: client.vault(LONE, create=True, sealed=False),
        "another name of a vault": lambda: vault.rename(LONE),
        "the name of a collection": lambda: vault.collection(LONE).create("one"),
        "a text in a value": lambda: notes.create({"title": LONE}),
        "the name of a member": lambda: notes.replace(note, {LONE: 1}),
        "the uid of a new document": lambda: notes.create("one", uid=LONE),
        "the uid of a document": lambda: notes.get(LONE),
        "the uid of a history": lambda: notes.history(LONE),
        "a blob": lambda: vault.blob.put(LONE),
        "the id of a session": lambda: client.end_session(LONE),
        "the uid of an API key": lambda: client.revoke_api_key(LONE),
    }


@pytest.mark.both_languages
def test_every_door_refuses_it(clients: ClientFactory) -> None:
    """Emails, passwords, names, uids, titles, tokens, values: each is the caller's mistake, and nothing is sent."""
    client, email = someone(clients)
    found = {}
    for name, door in _doors(clients, client, email).items():
        try:
            found[name] = f"taken: {door()!r}"
        except errors.Invalid:
            continue
        except Exception as fault:  # noqa: BLE001 - all of them are shown together
            found[name] = repr(fault)
    assert found == {}
    assert [vault.name for vault in client.vaults()] == ["v"]


def test_a_replica_whose_file_was_changed(clients: ClientFactory, tmp_path: Path) -> None:
    """A text in the file that is not UTF-8 is damage, wherever it stands."""
    client, _ = someone(clients)
    client.vault("v", create=True).collection("notes").create("one")
    path = tmp_path / "replica"
    replica = client.open_replica(path)
    replica.sync()
    replica.close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE documents SET uid = CAST(X'EDA080' AS TEXT)")
    replica = client.open_replica(path)
    with pytest.raises(errors.Invalid, match="is a replica that is damaged: replica"):
        list(replica.vault("v").collection("notes"))
    replica.close()
