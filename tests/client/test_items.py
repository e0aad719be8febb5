"""Items through clients and replicas: both kinds of client, tokens, and what other programs have stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.client import DocumentConflict, Invalid, Locked
from strongroom.items import AmbiguousName, ItemNotFound, Login, Note, Other
from tests.kit.clients.factory import ClientFactory

CANARY = "medlar-8125"


def test_items_of_a_vault(clients: ClientFactory) -> None:
    """Add, get, list, find, replace and delete, with the types of Python."""
    client = clients.person()
    items = client.items("personal", create=True)
    made = items.create(Login(title="GitHub", username="ada", password="one"))
    items.create(Note(title="Shopping", notes="milk"))
    assert {one.value.title for one in items.list()} == {"GitHub", "Shopping"}
    assert items.get(made.uid).value == Login(title="GitHub", username="ada", password="one")
    found = items.find("github")
    assert found.uid == made.uid
    changed = items.replace(found, Login(title="GitHub", username="ada", password="two"))
    with pytest.raises(DocumentConflict):
        items.replace(made, Login())
    assert items.find(made.uid).value.password == "two"
    items.delete(changed)
    with pytest.raises(ItemNotFound):
        items.find("GitHub")
    items.create(Note(title="shopping"))
    with pytest.raises(AmbiguousName):
        items.find("SHOPPING")
    assert [one.value.title for one in client.vault("personal").items().list()] == ["Shopping", "shopping"]


def test_what_other_programs_store(clients: ClientFactory) -> None:
    """Items are the documents of the collection `items`: unknown members stay, and a bad document hides no other."""
    vault = clients.person().vault("personal", create=True)
    raw, items = vault.collection("items"), vault.items()
    kept = raw.create({"type": "login", "title": "A", "novel": {"x": 1}})
    raw.create({"type": "login", "password": 5})
    raw.create(b"\0")
    assert [type(one.value) for one in items.list()] == [Login, Other, Other]
    document = items.get(kept.uid)
    document.value.username = "ada"
    items.replace(document, document.value)
    assert raw.get(kept.uid).value == {"type": "login", "title": "A", "novel": {"x": 1}, "username": "ada"}


def test_a_wrong_value_is_refused(clients: ClientFactory) -> None:
    """What is no item is not written, and the sentence does not show it."""
    items = clients.person().items("personal", create=True)
    for wrong in (Login(password=["x", CANARY]), Note(tags=CANARY), {"type": "login"}, "text"):  # type: ignore[arg-type]
        with pytest.raises(Invalid) as told:
            items.create(wrong)
        assert CANARY not in str(told.value)
    assert items.list() == []


def test_tokens_for_items(clients: ClientFactory) -> None:
    """A token for the vault, or for its items alone, opens them; one for another collection is told so."""
    client = clients.person()
    vault = client.vault("personal", create=True)
    vault.items().create(Login(title="GitHub"))
    for token in (vault.token("agent"), vault.items().token("agent", permissions=["read"])):
        assert clients.with_token(token).items().find("GitHub").value == Login(title="GitHub")
    with pytest.raises(Locked, match="another collection"):
        clients.with_token(vault.collection("notes").token("agent")).items()


def test_items_of_a_replica(clients: ClientFactory, tmp_path: Path) -> None:
    """The same on this device, without a server, and sent with the next sync."""
    client = clients.person()
    items = client.items("personal", create=True)
    items.create(Login(title="GitHub", password="one"))
    replica = client.open_replica(tmp_path / "replica")
    replica.sync()
    local = replica.items("personal")
    found = local.find("GITHUB")
    local.replace(found, Login(title="GitHub", password="two"))
    local.create(Note(title="Offline"))
    assert {one.value.title for one in local.list()} == {"GitHub", "Offline"}
    with pytest.raises(ItemNotFound):
        local.find("nothing")
    replica.sync()
    assert items.find("GitHub").value.password == "two"
    assert items.find("Offline").value == Note(title="Offline")
    replica.items("new", create=True).create(Note(title="x"))
    replica.close()
    other = clients.with_token(client.vault("personal").items().token("agent")).open_replica(tmp_path / "other")
    other.sync()
    assert len(other.items().list()) == 2
    other.close()
