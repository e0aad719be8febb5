"""The same on the asynchronous client."""

from __future__ import annotations

from typing import assert_type

import msgspec

from strongroom.client import (
    AsyncChanges,
    AsyncClient,
    AsyncCollection,
    AsyncReplica,
    AsyncVault,
    Document,
    Refusal,
    ReplicaCollection,
    keep_both,
)


class Note(msgspec.Struct):
    """A type of values."""

    title: str


async def titles(notes: AsyncCollection[Note]) -> list[str]:
    """What a function of a program takes and gives."""
    return [note.value.title async for note in notes]


async def offline(replica: AsyncReplica) -> None:
    """Reading and writing a replica are ordinary calls."""
    notes = replica.vault("personal").collection("notes", type=Note)
    assert_type(notes, ReplicaCollection[Note])
    assert_type(notes.create(Note("Hello")), Document[Note])
    await replica.sync(keep_both)
    async for report in replica.watch():
        print(report.pulled)


async def ask(refusal: Refusal) -> str:
    """What a login calls for a second factor."""
    return str(refusal)


async def main(url: str) -> None:
    """An account and a vault."""
    async with AsyncClient(url) as client:
        await client.login("ada@example.com", "correct horse battery staple", code=ask)
        assert_type(await client.second_factor.confirm("123456"), list[str])
        vault = await client.vault("personal", create=True)
        assert_type(vault, AsyncVault)
        notes = vault.collection("notes", type=Note)
        assert_type(notes, AsyncCollection[Note])
        note = await notes.create(Note("Hello"))
        assert_type(note, Document[Note])
        assert_type((await notes.replace(note, Note("again"))).value, Note)
        assert_type(notes.since(0), AsyncChanges[Note])
        async for each in notes.since(0):
            assert_type(each, Document[Note])
        async for document in vault:
            print(document.typed(Note).value.title)
        await vault.token("agent", permissions=["read"])
        print(await titles(notes))
        async with client.open_replica("notes.replica") as replica:
            await offline(replica)
