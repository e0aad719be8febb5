"""A machine that runs with a token again and again, and a server that shows one secret as it was before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Locked, RolledBack, Tampered
from strongroom.client.format import tokens
from strongroom.errors import Invalid
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.kit.clients.factory import ClientFactory


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a state file that is not there yet. Its folder outlives the clients, which write it at the end."""
    return tmp_path_factory.mktemp("machine") / "state"


def rows_of(talk: Talk, vault: str) -> list[dict[str, Any]] | None:
    """The rows of a list of documents."""
    told = talk.told if talk.path == f"/vaults/{vault}/documents" and talk.method == "GET" else {}
    return told.get("documents")


def show_again(liar: Liar, vault: str, row: dict[str, Any]) -> None:
    """Show a row as it was, at its time of now, in every list."""

    def lie(talk: Talk) -> None:
        if rows := rows_of(talk, vault):
            old = [row | {"updatedAt": one["updatedAt"]} if one["uid"] == row["uid"] else one for one in rows]
            talk.say(talk.told | {"documents": old})

    liar.lie = lie


def wire_row(liar: Liar, owner: Any, vault: Any, uid: str) -> dict[str, Any]:
    """The row of a document as a list shows it now."""
    seen: list[dict[str, Any]] = []

    def watch(talk: Talk) -> None:
        seen.extend(rows_of(talk, vault.uid) or [])

    liar.lie = watch
    assert [one.uid for one in owner.vault("v").collection("notes") if one.uid == uid]
    liar.lie = lambda _: None
    return next(row for row in seen if row["uid"] == uid)


def values(client: Any, *, part: bool) -> list[Any]:
    """What a machine reads."""
    place = client.collection() if part else client.vault().collection("notes")
    return sorted(one.value for one in place)


@pytest.mark.both_languages
@pytest.mark.parametrize("part", [False, True])
def test_a_secret_that_is_rolled_back_is_refused(
    clients: ClientFactory, liar: Liar, state: Path, *, part: bool
) -> None:
    """With a state file, in the next run; without one, the machine is shown what the server likes."""
    owner = clients.client(liar.url)
    owner.register(f"machine-{os.urandom(6).hex()}@example.com", "correct horse battery staple")
    vault = owner.vault("v", create=True)
    notes = vault.collection("notes")
    setting, other = notes.create("signatures: no"), notes.create("key 1")
    old = wire_row(liar, owner, vault, setting.uid)
    notes.replace(setting, "signatures: yes")
    notes.replace(other, "key 2")
    token = notes.token("machine") if part else vault.token("machine")
    with_state = clients.with_token(token, liar.url, state=state)
    assert values(with_state, part=part) == ["key 2", "signatures: yes"]
    with_state.lock()
    assert state.stat().st_mode & 0o777 == 0o600
    show_again(liar, vault.uid, old)
    assert values(clients.with_token(token, liar.url), part=part) == ["key 2", "signatures: no"]
    again = clients.with_token(token, liar.url, state=state)
    with pytest.raises(RolledBack):
        values(again, part=part)
    again.lock()
    liar.lie = lambda _: None
    assert values(clients.with_token(token, liar.url, state=state), part=part) == ["key 2", "signatures: yes"]


@pytest.mark.both_languages
def test_a_secret_that_is_left_out_is_refused(clients: ClientFactory, liar: Liar, state: Path) -> None:
    """A list without a document that an earlier run has seen, and nobody has deleted."""
    vault = clients.person().vault("v", create=True)
    notes = vault.collection("notes")
    notes.create("kept")
    hidden = notes.create("hidden")
    token = notes.token("machine")
    first = clients.with_token(token, liar.url, state=state)
    assert values(first, part=True) == ["hidden", "kept"]
    first.save_state()

    def lie(talk: Talk) -> None:
        if rows := rows_of(talk, vault.uid):
            kept = [row for row in rows if row["uid"] != hidden.uid]
            talk.say(talk.told | {"documents": kept, "next": kept[-1]["updatedAt"]})
        elif talk.path.endswith(hidden.uid):
            talk.refuse(404, "document_not_found")

    liar.lie = lie
    with pytest.raises((RolledBack, Tampered)):
        values(clients.with_token(token, liar.url, state=state), part=True)


@pytest.mark.both_languages
def test_a_floor_that_was_seen_binds_an_older_token(clients: ClientFactory, state: Path) -> None:
    """One that has no key from that floor on is refused; the file has the newest keyring's version."""
    owner = clients.person()
    notes = owner.vault("v", create=True).collection("notes")
    notes.create("n")
    old = notes.token("old")
    owner.vault("v").rotate()
    new = owner.vault("v").collection("notes").token("new")
    client = clients.with_token(new, state=state)
    assert values(client, part=True) == ["n"]
    client.lock()
    [place] = json.loads(state.read_text())["places"].values()
    assert (place["floor"], place["keyring"]) == (2, tokens.read(new).keyring)
    with pytest.raises(Locked, match="ask for a new one"):
        clients.with_token(old, state=state)


@pytest.mark.both_languages
@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("{", 0o600, "is not a state file"),
        ("[]", 0o600, "is not a state file"),
        ('{"format": "strongroom state 1", "places": {"a/b": {}}}', 0o600, "is not a state file"),
        ('{"format": "strongroom state 2", "places": {}}', 0o600, "another release"),
        ('{"format": "strongroom state 1", "places": {}}', 0o640, "can be read by others"),
    ],
)
def test_a_file_that_is_none_is_refused(clients: ClientFactory, state: Path, text: str, mode: int, said: str) -> None:
    """And is not changed."""
    token = clients.person().vault("v", create=True).token("machine")
    state.write_text(text)
    state.chmod(mode)
    with pytest.raises(Invalid, match=said):
        clients.with_token(token, state=state)
    assert state.read_text() == text
