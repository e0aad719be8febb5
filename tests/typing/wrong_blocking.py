"""Each line that is marked is a mistake that both type checkers report; they report no other line."""

from __future__ import annotations

import msgspec

import strongroom
from strongroom.client import Blob, Client, Collection, Conflict, Document, Replica, Report, Vault, keep_mine
from strongroom.client import Colection  # wrong


class Note(msgspec.Struct):
    """A type of values."""

    title: str


class Task(msgspec.Struct):
    """Another one."""

    title: str


def values(notes: Collection[Note], tasks: Collection[Task]) -> None:
    """Values and documents of other types."""
    notes.create({"title": "Hello"})  # wrong
    notes.create(Task("Hello"))  # wrong
    note = notes.create(Note("Hello"))
    notes.replace(note, "Hello")  # wrong
    notes.replace(note.uid, Note("again"))  # wrong
    tasks.replace(note, Task("again"))  # wrong
    tasks.delete(note)  # wrong
    print(note.value.titel)  # wrong
    print(note.vallue)  # wrong
    number: int = note.value  # wrong
    other: Document[Task] = note  # wrong
    note.value = Note("again")  # wrong
    note.version = 2  # wrong
    print([each.value.size for each in notes])  # wrong
    print(note.typed(Task).value.note, number, other)  # wrong


def collections(client: Client, vault: Vault) -> None:
    """Types that are none, and arguments that are misspelt."""
    vault.collection("notes", type=Note("Hello"))  # wrong
    vault.collection("notes", type="Note")  # wrong
    vault.collection("notes", typ=Note)  # wrong
    vault.collection("notes", Note)  # wrong
    vault.collection(Note)  # wrong
    mixed: Collection[Task] = vault.collection("notes", type=Note)  # wrong
    client.vault("personal", creat=True)  # wrong
    client.vaults().collection("notes")  # wrong
    print(mixed)


def accounts(client: Client) -> None:
    """Calls that lack something, or have too much."""
    client.register("ada@example.com")  # wrong
    client.login("ada@example.com", b"correct horse")  # wrong
    client.login("ada@example.com", "correct horse", code=123456)  # wrong
    client.login("ada@example.com", "correct horse", "123456")  # wrong
    client.change_password("correct horse", "another", code=lambda: "123456")  # wrong
    client.second_factor.confirm(123456)  # wrong
    client.rotate_keys("correct horse", progress=print, new_pasword="x")  # wrong
    client.logout(True)  # wrong
    print(client.sessions()[0].user_agnt)  # wrong
    client.revoke_api_key(client.api_keys()[0])  # wrong


def options(url: str) -> None:
    """Options that nobody has."""
    Client(url, timout=3.0)  # wrong
    Client(url, 3.0)  # wrong
    Client(url, retries="many")  # wrong
    Client.with_token(url, "srv_", timout=3.0)  # wrong
    Client.with_token(url)  # wrong
    strongroom.creat_server()  # wrong


def tokens(vault: Vault, notes: Collection[Note]) -> None:
    """Permissions are three words, in a list."""
    vault.token("agent", permissions=["reed"])  # wrong
    vault.token("agent", permissions="read")  # wrong
    notes.token("agent", permissions=["read", "admin"])  # wrong
    notes.token("agent", permission=["read"])  # wrong
    notes.token("agent", expires_at="tomorrow")  # wrong


def text(conflict: Conflict) -> str:
    """Not a resolver."""
    return conflict.uid


def replicas(client: Client, replica: Replica) -> None:
    """Offline."""
    notes = replica.vault("personal").collection("notes", type=Note)
    notes.create(Task("Hello"))  # wrong
    replica.vault("personal", creat=True)  # wrong
    replica.sync(text)  # wrong
    replica.sync(keep_mine, print)  # wrong
    replica.sync(keep_mine, progress=lambda: None)  # wrong
    report: Report = replica.sync()
    print(report.pushd)  # wrong
    replica.watch(evry=3.0)  # wrong
    client.open_replica()  # wrong
    blob: Blob = client.vault("personal").blob.get()  # wrong
    print(blob.typed(Note).value.titel)  # wrong


def passkeys(client: Client) -> None:
    """Authenticators that are none."""
    client.login_with_passkey("1234")  # wrong
    client.passkeys.add("key", "correct horse", lambda _: "")  # wrong
    client.passkeys.rename("uid", "key")  # wrong
