"""Each line that is marked is a mistake that both type checkers report; they report no other line."""

from __future__ import annotations

import msgspec

from strongroom.client import AsyncClient, AsyncCollection, AsyncVault, Document


class Note(msgspec.Struct):
    """A type of values."""

    title: str


async def values(vault: AsyncVault, notes: AsyncCollection[Note]) -> None:
    """Forgotten words."""
    note: Document[Note] = notes.create(Note("Hello"))  # wrong
    await notes.create("Hello")  # wrong
    for _ in notes:  # wrong
        continue
    await vault.collection("notes", type=Note)  # wrong
    print((await notes.get("uid")).value.titel, note)  # wrong
    await vault.token("agent", permissions=["reed"])  # wrong


async def main(url: str) -> None:
    """The wrong kind of `with`."""
    with AsyncClient(url):  # wrong
        pass
    AsyncClient(url).vault("personal").collection("notes")  # wrong
    AsyncClient(url, timout=3.0)  # wrong
    AsyncClient.with_token(url, "srv_", timout=3.0)  # wrong


async def second_factors(client: AsyncClient) -> None:
    """Codes of the wrong kind."""
    await client.login("ada@example.com", "correct horse", code=123456)  # wrong
    await client.change_password("correct horse", "another", code=lambda: "123456")  # wrong
    client.second_factor.confirm("123456")[0]  # wrong


async def passkeys(client: AsyncClient) -> None:
    """Authenticators that are none."""
    await client.login_with_passkey("1234")  # wrong
    await client.passkeys.add("key", "correct horse", lambda _: "")  # wrong
    await client.passkeys.rename("uid", "key")  # wrong
