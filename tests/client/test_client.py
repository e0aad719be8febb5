"""The client against a live server, both kinds of it: what a program does all day."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom import errors
from strongroom.client import AsyncClient, Client, Locked, Tampered, async_iterators, async_vaults, iterators, vaults
from strongroom.client.format import box
from strongroom.client.format.seal import Sealed
from strongroom.client.operations import documents, listing
from strongroom.errors import Invalid
from strongroom.model import Document
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


@pytest.mark.both_languages
def test_the_day_of_a_document(clients: ClientFactory) -> None:
    """Created, read, listed, replaced, deleted: each step gives what the next one needs."""
    notes = clients.person().vault("personal", create=True).collection("notes")
    note = notes.create({"title": "Hello"})
    assert (note.version, note.value, note.deleted, note.collection) == (1, {"title": "Hello"}, False, "notes")
    assert notes.get(note.uid) == note
    note = notes.replace(note, {"title": "Hello again"})
    assert note.version == 2
    assert [found.value for found in notes] == [{"title": "Hello again"}]
    gone = notes.delete(note)
    assert gone.deleted
    assert list(notes) == []
    with pytest.raises(errors.DocumentNotFound):
        notes.get(note.uid)
    assert notes.get(note.uid, deleted=True).value == {"title": "Hello again"}


@pytest.mark.both_languages
@pytest.mark.parametrize(
    "value", [None, True, 0, -1.5, "", "text \U0001f510", [], {"a": [1, {"b": None}]}, b"", b"\x00\xff"]
)
def test_values_come_back_as_they_were(clients: ClientFactory, value: Any) -> None:
    """JSON is JSON, bytes are bytes, and empty is not nothing."""
    place = clients.person().vault("v", create=True).collection("c")
    found = place.get(place.create(value).uid).value
    assert found == value
    assert type(found) is type(value)


@pytest.mark.both_languages
def test_another_device_sees_the_same(clients: ClientFactory) -> None:
    """Whoever logs in elsewhere with the same password opens the same vault, by its name."""
    email = unique_email()
    first = clients.client()
    first.register(email, PASSWORD)
    made = first.vault("personal", create=True).collection("notes").create("from the first")
    second = clients.client()
    second.login(email.upper(), PASSWORD)
    notes = second.vault("personal").collection("notes")
    assert notes.get(made.uid).value == "from the first"
    assert [vault.name for vault in second.vaults()] == ["personal"]
    late = first.vault("late", create=True)
    assert second.vault("late").uid == late.uid


@pytest.mark.both_languages
def test_a_change_that_was_not_seen_is_a_conflict(clients: ClientFactory) -> None:
    """Who replaces or deletes what has changed meanwhile is told so, in the server's own word."""
    notes = clients.person().vault("v", create=True).collection("c")
    seen = notes.create(1)
    now = notes.replace(seen, 2)
    with pytest.raises(errors.DocumentConflict) as refused:
        notes.replace(seen, 3)
    assert refused.value.details is not None
    assert refused.value.details["version"] == now.version
    with pytest.raises(errors.DocumentConflict):
        notes.delete(seen)
    assert notes.get(seen.uid).value == 2


@pytest.mark.both_languages
def test_a_deleted_document_comes_back(clients: ClientFactory) -> None:
    """Replacing a tombstone revives the document."""
    notes = clients.person().vault("v", create=True).collection("c")
    gone = notes.delete(notes.create("old"))
    back = notes.replace(gone, "new")
    assert (back.deleted, back.version) == (False, gone.version + 1)
    assert [note.value for note in notes] == ["new"]


@pytest.mark.both_languages
def test_changes_since_a_moment(clients: ClientFactory) -> None:
    """A walk tells what changed, deletions included, and where to go on."""
    vault = clients.person().vault("v", create=True)
    notes, tasks = vault.collection("notes"), vault.collection("tasks")
    first = notes.create("first")
    changes = notes.since(0)
    assert [change.value for change in changes] == ["first"]
    tasks.create("task")
    notes.delete(first)
    later = notes.since(changes.cursor)
    assert [(change.uid, change.deleted) for change in later] == [(first.uid, True)]
    assert list(notes.since(later.cursor)) == []
    assert {(change.collection, change.deleted) for change in vault.since(0)} == {("notes", True), ("tasks", False)}


@pytest.mark.both_languages
def test_a_walk_goes_through_pages(clients: ClientFactory) -> None:
    """More documents than one page holds: each comes once, in the order of their last change."""
    notes = clients.person().vault("v", create=True).collection("c")
    made = [notes.create(number) for number in range(203)]
    notes.replace(made[0], "moved to the end")
    assert [note.value for note in notes] == [*range(1, 203), "moved to the end"]


@pytest.mark.both_languages
def test_collections_do_not_show_each_other(clients: ClientFactory) -> None:
    """A document is found in its own collection only."""
    vault = clients.person().vault("v", create=True)
    note = vault.collection("notes").create("n")
    with pytest.raises(errors.DocumentNotFound):
        vault.collection("tasks").get(note.uid)
    with pytest.raises(errors.DocumentNotFound):
        vault.collection("tasks").replace(note, "x")
    assert list(vault.collection("tasks")) == []
    assert [found.collection for found in vault] == ["notes"]


@pytest.mark.both_languages
def test_a_blob(clients: ClientFactory) -> None:
    """A vault carries one value besides its documents; who has not seen the last one is told so."""
    vault = clients.person().vault("v", create=True)
    assert vault.blob.get() is None
    first = vault.blob.put({"settings": 1})
    second = vault.blob.put(b"bytes", after=first)
    assert vault.blob.get() == second
    assert second.value == b"bytes"
    with pytest.raises(errors.VaultConflict):
        vault.blob.put("late", after=first)


@pytest.mark.both_languages
def test_names_are_sealed_unless_asked(clients: ClientFactory) -> None:
    """The server sees the name of a vault only where its owner says so."""
    client = clients.person()
    client.vault("hidden", create=True)
    client.vault("shown", create=True, sealed=False)
    assert sorted(vault.name for vault in client.vaults()) == ["hidden", "shown"]
    assert client.vault("shown").collection("c").create(1).wire == "c"
    assert client.vault("hidden").collection("c").create(1).wire.startswith("sr2.")


@pytest.mark.both_languages
def test_a_vault_that_is_not_there(clients: ClientFactory) -> None:
    """A vault is made only where that is asked for, and is gone when it is deleted."""
    client = clients.person()
    with pytest.raises(errors.VaultNotFound):
        client.vault("nothing")
    vault = client.vault("something", create=True)
    assert client.vault("something", create=True).uid == vault.uid
    vault.delete()
    with pytest.raises(errors.VaultNotFound):
        client.vault("something")
    assert client.vaults() == []
    assert client.vault("something", create=True).uid != vault.uid


@pytest.mark.both_languages
def test_a_wrong_password_and_an_unknown_email_look_alike(clients: ClientFactory) -> None:
    """Neither is told apart, and nobody is logged in."""
    email = unique_email()
    clients.client().register(email, PASSWORD)
    client = clients.client()
    for who, password in ((email, "wrong horse battery"), (unique_email(), PASSWORD)):
        with pytest.raises(errors.InvalidCredentials):
            client.login(who, password)
        with pytest.raises(Locked):
            client.vaults()
    with pytest.raises(errors.EmailAlreadyExists):
        client.register(email, PASSWORD)


@pytest.mark.both_languages
def test_another_password_opens_the_same_vaults(clients: ClientFactory) -> None:
    """After a change the old password is refused, and every document still opens."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    client.vault("v", create=True).collection("c").create("kept")
    with pytest.raises(errors.InvalidCredentials):
        client.change_password("not the password", "another horse battery")
    client.change_password(PASSWORD, "another horse battery")
    assert [found.value for found in client.vault("v").collection("c")] == ["kept"]
    other = clients.client()
    with pytest.raises(errors.InvalidCredentials):
        other.login(email, PASSWORD)
    other.login(email, "another horse battery")
    assert [found.value for found in other.vault("v").collection("c")] == ["kept"]


@pytest.mark.both_languages
def test_the_recovery_key_opens_an_account(clients: ClientFactory) -> None:
    """It works after a change of password too, sets another one, and a newer key replaces it."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    client.vault("v", create=True).collection("c").create("kept")
    old = client.make_recovery_key(PASSWORD)
    printed = client.make_recovery_key(PASSWORD)
    client.change_password(PASSWORD, "forgotten at once")
    lost = clients.client()
    with pytest.raises(errors.InvalidCredentials):
        lost.recover(email, old, "a new password")
    with pytest.raises(Invalid):
        lost.recover(email, printed[:-1] + ("0" if printed[-1] != "0" else "1"), "a new password")
    lost.recover(email, printed.lower(), "a new password")
    assert [found.value for found in lost.vault("v").collection("c")] == ["kept"]
    again = clients.client()
    again.login(email, "a new password")
    assert [vault.name for vault in again.vaults()] == ["v"]


@pytest.mark.both_languages
def test_sessions_are_listed_and_ended(clients: ClientFactory) -> None:
    """One device can end the session of another."""
    email = unique_email()
    here, there = clients.client(), clients.client()
    here.register(email, PASSWORD)
    there.login(email, PASSWORD)
    assert len(here.sessions()) == 2
    [other] = [session.id for session in here.sessions() if session.id not in _current(here)]
    here.end_session(other)
    with pytest.raises((errors.Unauthorized, errors.InvalidRefreshToken)):
        there.vaults()


def _current(client: Any) -> list[str]:
    return [session.id for session in client.sessions() if session.current]


@pytest.mark.both_languages
def test_after_a_logout_nothing_is_left(clients: ClientFactory) -> None:
    """Keys and tokens are forgotten, and the session is over at the server."""
    client = clients.person()
    vault = client.vault("v", create=True)
    client.logout()
    with pytest.raises(Locked):
        client.vaults()
    with pytest.raises(Locked):
        vault.collection("c").create(1)
    client.logout()


def test_a_list_of_several_pages(clients: ClientFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document once, in order, wherever the pages end."""
    monkeypatch.setattr(listing, "FIRST_LIMIT", 2)
    monkeypatch.setattr(listing, "_MAX_LIMIT", 2)
    notes = clients.person().vault("v", create=True).collection("c")
    for number in range(5):
        notes.create(number)
    assert [note.value for note in notes] == [0, 1, 2, 3, 4]


def test_what_is_answered_to_a_write_is_what_was_written() -> None:
    """Vault, collection, uid, version, deletion, ciphertext and proof, each by itself."""
    sealed = Sealed("data", "proof")
    uid = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
    row = Document(
        uid=uid,
        vault_uid=uid,
        collection="c",
        data="data",
        hmac="proof",
        version=2,
        created_at=1,
        updated_at=2,
        deleted_at=None,
    )
    documents.check_stored(row, sealed, uid, "c", uid, 2)
    others = ("vault_uid", "collection", "uid", "data", "hmac")
    changes: list[dict[str, Any]] = [{"version": 3}, {"deleted_at": 2}, *({name: "other"} for name in others)]
    for change in changes:
        with pytest.raises(Tampered):
            documents.check_stored(msgspec.structs.replace(row, **change), sealed, uid, "c", uid, 2)


def test_what_is_written_is_decrypted_once(clients: ClientFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is sealed, to see that it opens; the response repeats it, and is compared as a text."""
    notes = clients.person().vault("v", create=True).collection("notes")
    opened: list[bytes] = []
    real = box.open_

    def counted(key: bytes, sealed: bytes, associated: bytes) -> bytes:
        opened.append(sealed)
        return real(key, sealed, associated)

    monkeypatch.setattr(box, "open_", counted)

    def count(act: Callable[[], Any]) -> tuple[Any, int]:
        opened.clear()
        return act(), len(opened)

    made, once = count(lambda: notes.create({"title": "one"}))
    assert (made.value, once) == ({"title": "one"}, 1)
    changed, once = count(lambda: notes.replace(made, {"title": "two"}))
    assert (changed.value, changed.version, once) == ({"title": "two"}, 2, 1)
    gone, once = count(lambda: notes.delete(changed))
    assert (gone.value, gone.deleted, once) == ({"title": "two"}, True, 1)
    many, times = count(lambda: [result.document for result in notes.create_many(range(5))])
    assert ([one.value for one in many], times) == ([0, 1, 2, 3, 4], 5)
    assert notes.get(gone.uid, deleted=True) == gone
    assert [notes.get(one.uid) for one in many] == many


@pytest.mark.both_languages
def test_who_registers_leaves_the_account_before(clients: ClientFactory) -> None:
    """Also where the registration is refused: nothing is written to the wrong account."""
    client = clients.person()
    vault = client.vault("v", create=True)
    taken = unique_email()
    clients.client().register(taken, PASSWORD)
    with pytest.raises(errors.EmailAlreadyExists):
        client.register(taken, PASSWORD)
    with pytest.raises(Locked):
        vault.collection("c").create(1)


@pytest.mark.both_languages
def test_a_recovery_with_a_bad_new_password_does_not_begin(clients: ClientFactory) -> None:
    """It is refused before anything is sent: the client still has the account that it had."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    printed = client.make_recovery_key(PASSWORD)
    with pytest.raises(Invalid):
        client.recover(email, printed, "short")
    assert client.vault("v", create=True).collection("c").create(1).version == 1
    assert len(client.sessions()) == 1


@pytest.mark.both_languages
def test_blobs_on_a_blob_server(clients: ClientFactory, own_server: Server) -> None:
    """A vault that must carry a blob from the start is made all the same."""
    own_server.settings["VAULT_VARIANT"] = "blob"
    own_server.start()
    client = clients.client(f"http://127.0.0.1:{own_server.port}")
    client.register(unique_email(), PASSWORD)
    vault = client.vault("settings", create=True)
    first = vault.blob.get()
    assert first is not None
    assert first.value is None
    vault.blob.put({"theme": "dark"})
    blob = vault.blob.put({"theme": "light"})
    assert client.vault("settings").blob.get() == blob
    assert blob.value == {"theme": "light"}


@pytest.mark.both_languages
def test_an_account_ends(clients: ClientFactory) -> None:
    """With the right password only; then the email is free."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    with pytest.raises(errors.InvalidCredentials):
        client.delete_account("not the password")
    client.delete_account(PASSWORD)
    client.register(email, "quite another password")


def test_the_two_clients_are_one() -> None:
    """Every name and every argument of one client is in the other; only the waiting differs."""
    pairs: list[tuple[Any, Any]] = [
        (Client, AsyncClient),
        *(
            (getattr(vaults, name), getattr(async_vaults, f"Async{name}"))
            for name in ("Vault", "VaultBlob", "Collection")
        ),
        *((getattr(iterators, name), getattr(async_iterators, f"Async{name}")) for name in ("Changes", "Log")),
    ]
    for ours, theirs in pairs:
        swap = {"__enter__": "__aenter__", "__exit__": "__aexit__", "__iter__": "__aiter__"}
        assert {swap.get(name, name) for name in vars(ours)} == set(vars(theirs))
        for name, method in inspect.getmembers(ours, inspect.isfunction):
            other = getattr(theirs, swap.get(name, name))
            assert list(inspect.signature(method).parameters) == list(inspect.signature(other).parameters), name
            assert method.__doc__ == other.__doc__


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    "url",
    ["", "vault.example.com", "ftp://vault.example.com", "http://vault.example.com", "https://a:b@c", "https://a?b"],
)
def test_an_address_that_cannot_be_trusted(kind: Any, url: str) -> None:
    """Plain HTTP is for this machine only, and an address is an address."""
    with pytest.raises(Invalid):
        kind(url)
