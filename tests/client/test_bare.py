"""A server of the bare specification: documents and blobs work there too, if the developer asks for it by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strongroom import errors
from strongroom.client import Locked, Tampered
from tests.client.bare_server import BareServer
from tests.client.faces import PASSWORD, Faces, unique_email
from tests.contract.harness import Server

Bare = Callable[..., BareServer]


@pytest.fixture
def bare() -> Iterator[Bare]:
    """Starts servers that know nothing of us."""
    made: list[BareServer] = []

    def start(variant: str = "A", *, hides: bool = False) -> BareServer:
        made.append(BareServer(variant, hides=hides))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.mark.parametrize("hides", [False, True])
def test_documents_on_a_bare_server(faces: Faces, bare: Bare, *, hides: bool) -> None:
    """Created, replaced, listed, deleted and seen by another device; the server reads none of it."""
    server = bare(hides=hides)
    email = unique_email()
    client = faces.client(server.url, bare=True)
    client.register(email, PASSWORD)
    vault = client.vault("personal", create=True)
    notes = vault.collection("notes")
    first, second = notes.create({"title": "KANARIENVOGEL"}), notes.create(b"bytes")
    first = notes.replace(first, "changed")
    with pytest.raises(errors.DocumentConflict):
        notes.replace(second._thing if hasattr(second, "_thing") else _older(second), "stale")
    notes.delete(second)
    assert [note.value for note in notes] == ["changed"]
    other = faces.client(server.url, bare=True)
    other.login(email, PASSWORD)
    seen = other.vault("personal").collection("notes")
    assert [note.value for note in seen] == ["changed"]
    assert [found.name for found in other.vaults()] == ["personal"]
    with pytest.raises(errors.DocumentNotFound):
        seen.get(second.uid)
    assert "KANARIENVOGEL" not in repr((server.documents, server.vaults, server.users))
    assert PASSWORD not in repr(server.users)
    with pytest.raises(Locked):
        other.change_password(PASSWORD, "another password")
    vault.delete()
    assert other.vaults() == []


def _older(document: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(document, version=document.version - 1)


def test_a_reservation_is_no_document(faces: Faces, bare: Bare) -> None:
    """A create that was cut off between its two steps leaves nothing that anybody sees."""
    server = bare()
    client = faces.client(server.url, bare=True)
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("notes")
    whole = notes.create("whole")
    [row] = [row for row in server.documents.values() if row["uid"] == whole.uid]
    stub = client.vault("v").collection("notes").create("cut off")
    first = dict(server.documents[stub.uid])
    del server.documents[stub.uid]
    assert first["version"] == row["version"] == 2
    fresh = faces.client(server.url, bare=True)
    fresh.login(next(iter(server.users)), PASSWORD)
    assert [note.value for note in fresh.vault("v").collection("notes")] == ["whole"]


@pytest.mark.parametrize("kind", ["bare", "ours"])
def test_blobs_on_a_blob_server(faces: Faces, bare: Bare, lone: Server, kind: str) -> None:
    """A vault that must carry a blob from the start is made all the same."""
    if kind == "bare":
        client = faces.client(bare("B").url, bare=True)
    else:
        lone.settings["VAULT_VARIANT"] = "blob"
        lone.start()
        client = faces.client(f"http://127.0.0.1:{lone.port}")
    client.register(unique_email(), PASSWORD)
    vault = client.vault("settings", create=True)
    first = vault.blob.get()
    assert first is None or first.value is None
    vault.blob.put({"theme": "dark"})
    blob = vault.blob.put({"theme": "light"})
    assert client.vault("settings").blob.get() == blob
    assert blob.value == {"theme": "light"}


def test_ours_serves_a_bare_client(faces: Faces) -> None:
    """Our own server is one of the specification too; and it takes the uids that it is given."""
    client = faces.client(bare=True)
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("notes")
    assert [notes.create(number).version for number in range(3)] == [2, 1, 1]
    assert sorted(note.value for note in notes) == [0, 1, 2]
    notes.delete(notes.get(next(iter(notes)).uid))
    assert len(list(notes)) == 2


def test_a_row_twice_in_a_list_of_a_bare_server(faces: Faces, bare: Bare) -> None:
    """There is no order to hold it to, but each document is there once."""
    server = bare()
    client = faces.client(server.url, bare=True)
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("notes")
    notes.create("first")
    assert [note.value for note in notes] == ["first"]
    truth = server.answer

    def twice(method: str, path: tuple[str, ...], *rest: Any) -> tuple[int, Any]:
        status, told = truth(method, path, *rest)
        return status, {**told, "documents": told["documents"] * 2} if "documents" in told else told

    server.answer = twice  # type: ignore[method-assign, assignment]
    with pytest.raises(Tampered):
        list(notes)


def test_a_create_that_is_cut_off_between_its_steps(faces: Faces, bare: Bare) -> None:
    """The reservation that it leaves at the server is no document, and spoils no list."""
    server = bare()
    client = faces.client(server.url, bare=True)
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("notes")
    notes.create("whole")
    truth = server.answer

    def cut(method: str, path: tuple[str, ...], *rest: Any) -> tuple[int, Any]:
        return (500, {"message": "no"}) if method == "PUT" else truth(method, path, *rest)

    server.answer = cut  # type: ignore[method-assign, assignment]
    with pytest.raises(errors.Refusal):
        notes.create("cut off")
    server.answer = truth  # type: ignore[method-assign]
    assert len(server.documents) == 2
    assert [note.value for note in notes] == ["whole"]


def test_what_a_bare_server_hides_is_not_there(faces: Faces, bare: Bare) -> None:
    """It may hide what is deleted: that is no lie of its, as it would be of ours."""
    server = bare(hides=True)
    client = faces.client(server.url, bare=True)
    email = unique_email()
    client.register(email, PASSWORD)
    note = client.vault("v", create=True).collection("notes").create("seen")
    other = faces.client(server.url, bare=True)
    other.login(email, PASSWORD)
    theirs = other.vault("v").collection("notes")
    theirs.delete(theirs.get(note.uid))
    with pytest.raises(errors.DocumentNotFound):
        client.vault("v").collection("notes").get(note.uid)


def test_nobody_is_talked_into_it(faces: Faces, bare: Bare) -> None:
    """A server that says it keeps no keys is refused, unless the developer has said so."""
    server = bare()
    client = faces.client(server.url)
    with pytest.raises(Tampered):
        client.login(unique_email(), PASSWORD)
    assert server.users == {}
