"""The collections of a vault: their names are opened here, and a server neither invents nor hides them unnoticed."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.client import RolledBack, Tampered
from tests.client.both_clients import PASSWORD, Faces, unique_email
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.contract.harness import Server


@pytest.mark.parametrize("sealed", [True, False])
def test_collections_are_listed_by_name(faces: Faces, *, sealed: bool) -> None:
    """Each once, also after a rotation, which gives it another name on the wire; not one without documents."""
    vault = faces.person().vault("v", create=True, sealed=sealed)
    assert vault.collections() == []
    for name in ("notes", "tasks", "a/b", "\N{GRINNING FACE}"):
        vault.collection(name).create(1)
    vault.rotate()
    last = vault.collection("notes").create(2)
    assert [one.name for one in vault.collections()] == ["a/b", "notes", "tasks", "\N{GRINNING FACE}"]
    vault.collection("tasks").delete(next(iter(vault.collection("tasks"))))
    found = {one.name: one for one in vault.collections()}
    assert sorted(found) == ["a/b", "notes", "\N{GRINNING FACE}"]
    assert found["notes"].get(last.uid).value == 2


def test_many_collections_are_listed_in_pages(faces: Faces) -> None:
    """More than one response holds; a vault's token sees them too."""
    vault = faces.person().vault("v", create=True)
    names = [f"{number:03}" for number in range(120)]
    for name in names:
        vault.collection(name).create(1)
    assert [one.name for one in vault.collections()] == names
    agent = faces.with_token(vault.token("agent")).vault()
    assert [one.name for one in agent.collections()] == names


LIES: dict[str, tuple[Any, type[Exception]]] = {
    "an invented name": (lambda told: {**told, "collections": [*told["collections"], "invented"]}, Tampered),
    "a forged name": (lambda told: {**told, "collections": [told["collections"][0][:-6] + "AAAAAA"]}, Tampered),
    "a name twice": (lambda told: {**told, "collections": told["collections"] * 2}, Tampered),
    "no end": (lambda told: {**told, "collections": [], "hasMore": True}, Tampered),
    "the same page for ever": (lambda told: {**told, "hasMore": True}, Tampered),
    "one is hidden": (lambda told: {**told, "collections": []}, RolledBack),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_list_that_lies_is_refused(faces: Faces, server: Server, lie: str) -> None:
    """Names are proven by the vault's key, and a document that was seen holds its collection there."""
    change, due = LIES[lie]

    def told(talk: Talk) -> None:
        if talk.path.endswith("/collections"):
            talk.say(change(talk.told))

    liar = Liar(server.port)
    try:
        client = faces.client(liar.url)
        client.register(unique_email(), PASSWORD)
        vault = client.vault("v", create=True)
        vault.collection("notes").create(1)
        liar.lie = told
        with pytest.raises(due):
            vault.collections()
        liar.lie = None
        assert [one.name for one in vault.collections()] == ["notes"]
    finally:
        liar.close()
