"""History and trash: versions are listed, read and restored; deleted documents are listed, revived and purged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.client.format.encoding import NO_PARENT, short, to_base64
from strongroom.client.format.parents import Link, trace, trace_all
from strongroom.errors import (
    DocumentConflict,
    DocumentNotFound,
    InsufficientScope,
    Invalid,
    VaultConflict,
    VersionNotFound,
)
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD


def notes_of(clients: ClientFactory) -> Any:
    return clients.person().vault("v", create=True).collection("notes")


@pytest.mark.both_languages
def test_versions_are_listed_and_read(clients: ClientFactory) -> None:
    """Newest first, a deletion as one, each with the value that it had; on a second device as well."""
    client = clients.person()
    notes = client.vault("v", create=True).collection("notes")
    first = notes.create({"n": 1})
    second = notes.replace(first, b"two")
    gone = notes.delete(second)
    last = notes.replace(gone, {"n": 5})
    listed = notes.history(first.uid)
    assert [(one.version, one.deleted, one.gap) for one in listed] == [
        (4, True, False),
        (3, True, False),
        (2, False, False),
        (1, False, False),
    ]
    assert listed[-1].updated_at == first.updated_at
    read = [notes.get_version(first.uid, number) for number in (1, 2, 3, 4, 5)]
    assert [one.value for one in read] == [{"n": 1}, b"two", b"two", b"two", {"n": 5}]
    assert [one.deleted for one in read] == [False, False, True, True, False]
    assert read[0] == first
    assert read[-1] == last
    for number in (0, -1, 6):
        with pytest.raises(VersionNotFound):
            notes.get_version(first.uid, number)
    with pytest.raises(DocumentNotFound):
        notes.history("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6")


@pytest.mark.both_languages
def test_a_version_is_restored(clients: ClientFactory) -> None:
    """As a new version, of a living document and of a deleted one; not over what has changed meanwhile."""
    notes = notes_of(clients)
    first = notes.create("one")
    second = notes.replace(first, "two")
    third = notes.restore(second, 1)
    assert (third.value, third.version) == ("one", 3)
    with pytest.raises(DocumentConflict):
        notes.restore(second, 1)
    gone = notes.delete(third)
    back = notes.restore(gone, 2)
    assert (back.value, back.version, back.deleted) == ("two", 6, False)
    assert notes.get(first.uid).value == "two"


@pytest.mark.both_languages
def test_history_outlives_a_rotation(clients: ClientFactory) -> None:
    """Versions under old keys are proven and read; what the server no longer keeps is not there."""
    client = clients.person()
    vault = client.vault("v", create=True)
    notes = vault.collection("notes")
    note = notes.create(1)
    vault.blob.put("first")
    vault.rotate()
    notes = vault.collection("notes")
    note = notes.get(note.uid)
    for value in range(3, 26):
        note = notes.replace(note, value)
    listed = notes.history(note.uid)
    assert [one.version for one in listed] == list(range(24, 4, -1))
    assert not any(one.gap or one.deleted for one in listed)
    assert notes.get_version(note.uid, 5).value == 5
    with pytest.raises(VersionNotFound):
        notes.get_version(note.uid, 1)
    [old] = vault.blob.history()
    assert vault.blob.get_version(old.version).value == "first"


@pytest.mark.both_languages
def test_a_token_reads_and_restores_too(clients: ClientFactory) -> None:
    """A collection's token proves the history of its documents; it does not purge them."""
    notes = notes_of(clients)
    note = notes.replace(notes.create("one"), "two")
    agent = clients.with_token(notes.token("agent")).collection()
    assert agent.get_version(note.uid, 1).value == "one"
    gone = agent.delete(agent.restore(agent.get(note.uid), 1))
    assert [one.value for one in agent.trash] == ["one"]
    for refused in (lambda: agent.purge(gone), agent.trash.empty):
        with pytest.raises(InsufficientScope):
            refused()
    assert agent.revive(gone).value == "one"


@pytest.mark.both_languages
def test_blobs_of_before_are_read_and_restored(clients: ClientFactory) -> None:
    """Also those of before the vault was renamed, which are sealed for its name of that time."""
    client = clients.person()
    vault = client.vault("v", create=True)
    with pytest.raises(VersionNotFound):
        vault.blob.get_version(1)
    first = vault.blob.put({"n": 1})
    vault.rename("w")
    second = vault.blob.put(b"two", after=vault.blob.get())
    listed = vault.blob.history()
    assert [one.version for one in listed] == [second.version - 1, first.version]
    other = clients.client()
    other.login(client._core.email if clients.kind == "blocking" else client._thing._core.email, PASSWORD)
    for place in (vault, other.vault("w")):
        assert place.blob.get_version(first.version).value == {"n": 1}
        assert place.blob.get_version(second.version).value == b"two"
    with pytest.raises(VaultConflict):
        vault.blob.restore(first.version, after=first)
    restored = vault.blob.restore(first.version, after=second)
    assert (restored.value, vault.blob.get().value) == ({"n": 1}, {"n": 1})
    for number in (0, restored.version + 1):
        with pytest.raises(VersionNotFound):
            vault.blob.get_version(number)


@pytest.mark.both_languages
def test_the_trash_is_listed_and_revived(clients: ClientFactory) -> None:
    """Of a collection and of the vault, with the last values; what is revived is not in it any more."""
    vault = clients.person().vault("v", create=True)
    notes, tasks = vault.collection("notes"), vault.collection("tasks")
    kept = notes.create("kept")
    gone = [notes.delete(notes.create(f"note {number}")) for number in range(3)]
    task = tasks.delete(tasks.create("task"))
    assert [one.value for one in notes.trash] == ["note 0", "note 1", "note 2"]
    assert [one.uid for one in vault.trash] == [*(one.uid for one in gone), task.uid]
    back = notes.revive(next(iter(notes.trash)))
    assert (back.value, back.deleted, back.version) == ("note 0", False, 4)
    assert [one.value for one in notes.trash] == ["note 1", "note 2"]
    with pytest.raises(DocumentConflict):
        notes.revive(gone[0])
    with pytest.raises(Invalid, match=r"^document is not deleted; give one that delete has returned"):
        notes.revive(kept)
    with pytest.raises(DocumentNotFound):
        notes.revive(task)


@pytest.mark.both_languages
def test_the_trash_outlives_a_rotation(clients: ClientFactory) -> None:
    """Tombstones keep their old names on the wire and their old keys."""
    vault = clients.person().vault("v", create=True)
    notes = vault.collection("notes")
    notes.delete(notes.create("old"))
    vault.rotate()
    notes = vault.collection("notes")
    notes.delete(notes.create("new"))
    assert [one.value for one in notes.trash] == ["old", "new"]
    assert notes.trash.empty() == 2
    assert list(vault.trash) == []


@pytest.mark.both_languages
def test_what_is_purged_is_gone(clients: ClientFactory) -> None:
    """One document or all of a collection; its history with it, and it is not revived as nothing."""
    client = clients.person()
    vault = client.vault("v", create=True)
    notes, tasks = vault.collection("notes"), vault.collection("tasks")
    gone = [notes.delete(notes.replace(notes.create("one"), "two")) for _ in range(3)]
    tasks.delete(tasks.create("task"))
    with pytest.raises(Invalid, match=r"^document is not deleted; give one that delete has returned"):
        notes.purge(notes.create("alive"))
    notes.purge(gone[0])
    notes.purge(gone[0])
    assert [one.uid for one in notes.trash] == [one.uid for one in gone[1:]]
    assert notes.history(gone[0].uid) == []
    purged = notes.get(gone[0].uid, deleted=True)
    assert (purged.deleted, purged.purged, purged.value) == (True, True, None)
    with pytest.raises(DocumentNotFound):
        notes.revive(purged)
    with pytest.raises(VersionNotFound):
        notes.restore(purged, purged.version)
    assert notes.trash.empty() == 2
    assert [one.value for one in vault.trash] == ["task"]
    assert vault.trash.empty() == 1
    assert client.usage().kept == 0


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_all_links_are_traced_as_each_alone(parents: list[int], data: st.DataObject) -> None:
    """One walk says of every version what a walk of its own says."""
    texts = [to_base64(bytes([number])) for number in range(len(parents))]
    named = {
        text: (data.draw(st.integers(1, 2)), NO_PARENT if parent >= number else short(texts[parent]))
        for number, (text, parent) in enumerate(zip(texts, parents, strict=True))
    }
    links = [Link(number + 1, text) for number, text in enumerate(texts)]
    kept = [link for link in links[:-1] if data.draw(st.booleans())]
    found = trace_all(links[-1], kept, named.__getitem__)
    assert found == [trace(links[-1], link, kept, named.__getitem__) for link in kept]
