"""The collections of a vault, by name."""

from __future__ import annotations

import pytest

from tests.kit.clients.factory import ClientFactory


@pytest.mark.both_languages
@pytest.mark.parametrize("sealed", [True, False])
def test_collections_are_listed_by_name(clients: ClientFactory, *, sealed: bool) -> None:
    """Each once, also after a rotation, which gives it another name on the wire; not one without documents."""
    vault = clients.person().vault("v", create=True, sealed=sealed)
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


@pytest.mark.both_languages
def test_many_collections_are_listed_in_pages(clients: ClientFactory) -> None:
    """More than one response holds; a vault's token sees them too."""
    vault = clients.person().vault("v", create=True)
    names = [f"{number:03}" for number in range(120)]
    for name in names:
        vault.collection(name).create(1)
    assert [one.name for one in vault.collections()] == names
    agent = clients.with_token(vault.token("agent")).vault()
    assert [one.name for one in agent.collections()] == names
