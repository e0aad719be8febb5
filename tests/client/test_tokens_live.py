"""Tokens: an agent opens what its token was made for, and nothing else, whatever it tries."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom import errors
from strongroom.client import Locked, Tampered
from strongroom.client.format.keys import CollectionKeys
from strongroom.client.format.tokens import read
from strongroom.client.operations.sessions_and_keys import token_scope
from tests.kit.clients.factory import ClientFactory


@pytest.mark.both_languages
def test_a_token_of_a_collection(clients: ClientFactory) -> None:
    """It reads and writes there, and the owner sees what it wrote."""
    vault = clients.person().vault("v", create=True)
    notes = vault.collection("notes")
    notes.create("by the owner")
    vault.collection("secrets").create("not for agents")
    agent = clients.with_token(notes.token("agent"))
    place = agent.collection()
    assert place.name == "notes"
    made = place.create("by the agent")
    place.replace(made, "by the agent, twice")
    assert sorted(note.value for note in notes) == ["by the agent, twice", "by the owner"]
    place.delete(place.get(made.uid))
    assert [note.value for note in place] == ["by the owner"]


def test_a_token_of_a_collection_leads_nowhere_else(clients: ClientFactory) -> None:
    """Neither the server nor the keys let it out."""
    owner = clients.person()
    vault = owner.vault("v", create=True)
    secret = vault.collection("secrets").create("not for agents")
    token = vault.collection("notes").token("agent")
    agent = clients.with_token(token)
    for attempt in (
        lambda: agent.vault("v"),
        agent.vault,
        agent.vaults,
        lambda: agent.vault("new", create=True),
        lambda: agent.change_password("a password", "another password"),
    ):
        with pytest.raises((Locked, errors.Refusal)):
            attempt()
    with pytest.raises(errors.DocumentNotFound):
        agent.collection().get(secret.uid)
    for refused in (agent.sessions, agent.api_keys):
        with pytest.raises(errors.InsufficientScope):
            refused()
    opened = read(token)
    assert isinstance(opened.keys, CollectionKeys)
    assert secret.wire not in opened.keys.wires
    stolen = agent._core if clients.kind == "blocking" else agent._thing._core
    with pytest.raises(Tampered):
        token_scope(stolen).key(secret.wire)


@pytest.mark.both_languages
def test_a_token_of_a_vault(clients: ClientFactory) -> None:
    """It opens every collection and the blob of that vault, by its name or without."""
    owner = clients.person()
    vault = owner.vault("v", create=True)
    other = owner.vault("other", create=True)
    vault.collection("notes").create("n")
    vault.blob.put("settings")
    agent = clients.with_token(vault.token("agent"))
    seen = agent.vault()
    assert (seen.name, seen.uid) == ("v", vault.uid)
    assert [note.value for note in agent.vault("v")] == ["n"]
    assert seen.blob.get().value == "settings"
    seen.collection("tasks").create("t")
    assert {note.collection for note in vault} == {"notes", "tasks"}
    with pytest.raises(errors.VaultNotFound):
        agent.vault("other")
    with pytest.raises(Locked):
        agent.collection()
    with pytest.raises(errors.Refusal):
        seen.delete()
    assert other.uid in {found.uid for found in owner.vaults()}


@pytest.mark.both_languages
@pytest.mark.parametrize("allowed", [["read"], ["write"], ["read", "write"]])
def test_a_token_may_do_what_it_was_allowed(clients: ClientFactory, allowed: list[str]) -> None:
    """The permissions of its API key hold."""
    notes = clients.person().vault("v", create=True).collection("notes")
    note = notes.create("n")
    place = clients.with_token(notes.token("agent", permissions=allowed)).collection()

    def allows(attempt: Any) -> bool:
        try:
            attempt()
        except errors.InsufficientScope:
            return False
        return True

    assert allows(lambda: place.get(note.uid)) == ("read" in allowed)
    assert allows(lambda: place.create("m")) == ("write" in allowed)
    assert not allows(lambda: place.delete(note))


@pytest.mark.both_languages
def test_a_revoked_token_is_dead(clients: ClientFactory) -> None:
    """Revoking its API key ends it."""
    owner = clients.person()
    notes = owner.vault("v", create=True).collection("notes")
    agent = clients.with_token(notes.token("agent"))
    assert list(agent.collection()) == []
    owner.revoke_api_key(owner.api_keys()[0].uid)
    with pytest.raises(errors.Unauthorized):
        list(agent.collection())


@pytest.mark.both_languages
def test_a_token_with_a_slip_is_noticed(clients: ClientFactory) -> None:
    """Before anything is sent."""
    token = clients.person().vault("v", create=True).token("agent")
    for broken in (token[:-1], token[:-1] + ("A" if token[-1] != "A" else "B"), "srv_", "", token + "A"):
        with pytest.raises((errors.Invalid, Tampered)):
            clients.with_token(broken)


@pytest.mark.both_languages
@pytest.mark.parametrize("older_keys", [False, True])
def test_a_token_opens_what_is_live_after_a_rotation(clients: ClientFactory, *, older_keys: bool) -> None:
    """Under old names on the wire too. Versions of before the rotation it opens only where it has older keys."""
    owner = clients.person()
    vault = owner.vault("v", create=True)
    note = vault.collection("notes").create("first")
    vault.collection("notes").replace(note, "second")
    gone = vault.collection("notes").create("gone")
    vault.collection("notes").delete(gone)
    vault.collection("notes").trash.empty()
    vault.rotate()
    vault = owner.vault("v")
    whole = clients.with_token(vault.token("whole", older_keys=older_keys)).vault()
    part = clients.with_token(vault.collection("notes").token("part", older_keys=older_keys)).collection()
    assert [one.value for one in whole.collection("notes")] == ["second"]
    assert [one.value for one in part] == ["second"]
    assert [one.value for one in whole] == ["second"]
    for place in (part, whole.collection("notes")):
        assert sorted(one.deleted for one in place.since(0)) == ([False, True] if older_keys else [False])
        if older_keys:
            assert place.get_version(note.uid, 1).value == "first"
        else:
            with pytest.raises(Locked):
                place.get_version(note.uid, 1)
    whole.collection("notes").create("by the machine")
    assert sorted(one.value for one in vault.collection("notes")) == ["by the machine", "second"]
