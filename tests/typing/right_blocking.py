"""A program that both type checkers accept: every kind of type, on the blocking client and its replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

import msgspec
import pydantic

from strongroom.client import (
    ApiKey,
    Blob,
    Changes,
    Client,
    Code,
    Collection,
    Conflict,
    Document,
    DocumentConflict,
    Event,
    ListedPasskey,
    ListedSession,
    Permission,
    Refusal,
    Replica,
    ReplicaCollection,
    ReplicaVault,
    Report,
    Resolution,
    Resolver,
    SecurityKey,
    TypeMismatch,
    User,
    Vault,
    keep_mine,
    merged,
)


class Note(msgspec.Struct):
    """With msgspec."""

    title: str


@dataclass
class Task:
    """A dataclass."""

    title: str


class Person(pydantic.BaseModel):
    """With pydantic."""

    title: str


def titles(notes: Collection[Note]) -> list[str]:
    """What a function of a program takes and gives."""
    return [note.value.title for note in notes]


def untyped(notes: Collection) -> Any:
    """Without a type, a value is anything."""
    note = notes.create({"title": "Hello"})
    assert_type(note, Document[Any])
    return notes.replace(note, b"bytes").value


def merge(conflict: Conflict) -> Resolution:
    """A resolver with types."""
    if conflict.base is None:
        return keep_mine(conflict)
    mine = conflict.mine.typed(Note)
    assert_type(mine.value, Note)
    return merged(Note(mine.value.title + conflict.theirs.typed(Note).value.title))


def online(client: Client, vault: Vault) -> None:
    """Vaults, collections and documents."""
    notes = vault.collection("notes", type=Note)
    assert_type(notes, Collection[Note])
    note = notes.create(Note("Hello"))
    assert_type(note, Document[Note])
    assert_type(note.value, Note)
    note = notes.replace(note, Note("again"))
    assert_type(notes.get(note.uid).value.title, str)
    assert_type(notes.since(0), Changes[Note])
    for each in notes:
        assert_type(each, Document[Note])
    for each in notes.since(0):
        assert_type(each, Document[Note])
    assert_type(notes.delete(note), Document[Note])
    assert_type(vault.collection("tasks", type=Task).create(Task("t")).value, Task)
    assert_type(vault.collection("people", type=Person).create(Person(title="t")).value, Person)
    assert_type(vault.collection("lists", type=list[Note]).create([Note("t")]).value, list[Note])
    assert_type(vault.collection("photos", type=bytes).create(b"").value, bytes)
    assert_type(client.collection(type=Note), Collection[Note])
    blob = vault.blob.get()
    assert_type(blob, Blob[Any] | None)
    if blob is not None:
        assert_type(vault.blob.put(Note("Hello"), after=blob).value, Note)
        assert_type(blob.typed(Task).value, Task)
    wider: Document[object] = note
    print(titles(notes), untyped(vault.collection("notes")), wider.raw)


def offline(replica: Replica) -> Report:
    """Replicas."""
    vault = replica.vault("personal")
    assert_type(vault, ReplicaVault)
    notes = vault.collection("notes", type=Note)
    assert_type(notes, ReplicaCollection[Note])
    note = notes.create(Note("Hello"))
    assert_type(notes.replace(note, Note("again")).value, Note)
    assert_type(replica.collection(type=Task), ReplicaCollection[Task])
    for each in notes:
        print(each.value.title)
    how: Resolver = merge
    return replica.sync(how, progress=lambda progress: print(progress.done, progress.total))


def ask(refusal: Refusal) -> str:
    """What a login calls for a second factor."""
    return input(str(refusal))


def second_factors(client: Client) -> None:
    """Codes, and functions that ask for them."""
    assert_type(client.second_factor.status().totp_since, int | None)
    assert_type(client.second_factor.enrol("correct horse").uri, str)
    assert_type(client.second_factor.confirm("123456"), list[str])
    code: Code = ask
    client.login("ada@example.com", "correct horse", code=code)
    client.change_password("correct horse", "another", code="123456")


class Browser:
    """A program's own authenticator."""

    def create(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Nothing."""
        return {origin: options}

    def get(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Nothing."""
        return {origin: options}


def passkeys(client: Client) -> None:
    """Security keys, and other authenticators."""
    key = SecurityKey(pin=lambda: "1234")
    added = client.passkeys.add("key", "correct horse", key, code=Browser())
    assert_type(added.recovery_codes, list[str] | None)
    client.passkeys.enable_unlock(added.passkey, "correct horse", key)
    for listed in client.passkeys.list():
        assert_type(listed, ListedPasskey)
    assert_type(client.login_with_passkey(Browser()), User)


def main(url: str) -> None:
    """An account, and what belongs to it."""
    with Client(url, timeout=3.0, retries=2) as client:
        user: User = client.register("ada@example.com", "correct horse battery staple")
        vault = client.vault("personal", create=True)
        token = vault.token("agent", permissions=["read", Permission.WRITE], expires_at=None)
        sessions: list[ListedSession] = client.sessions()
        keys: list[ApiKey] = client.api_keys()
        log: list[Event] = list(client.log())
        print(user.email, token, sessions[0].current, keys, log)
        with Client.with_token(url, token) as agent:
            online(agent, agent.vault())
        try:
            online(client, vault)
            with client.open_replica("notes.replica") as replica:
                offline(replica)
        except TypeMismatch as mismatch:
            print(mismatch.uid, mismatch.problem)
        except DocumentConflict as conflict:
            print(conflict.code)
        except Refusal as refusal:
            print(refusal.message)
