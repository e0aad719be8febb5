"""Rows for tests of an engine: an account, a vault, documents."""

from __future__ import annotations

from collections.abc import Callable

from strongroom import store, wire
from strongroom.actions import documents, vaults
from strongroom.model import AccountLimits, Actor, Document
from strongroom.store import Database, Tx
from strongroom.store.queries.documents import Show

OpenDb = Callable[[], Database]


async def owner(db: Database, user_id: str = "u", email: str = "e@x") -> None:
    await db.write(store.accounts.insert, user_id, email, "hash")


async def vault(db: Database, uid: str = "v", user_id: str = "u") -> None:
    await db.write(
        vaults.create, Actor(user_id), AccountLimits(), wire.requests.CreateVault(name=f"name {uid}", uid=uid)
    )


async def add(tx: Tx, uid: str, data: str = "AA", hmac: str | None = None, vault_uid: str = "v") -> Document:
    wanted = wire.requests.CreateDocument(collection="c", data=data, hmac=hmac, uid=uid)
    made, new = await documents.create(tx, Actor("u"), AccountLimits(), vault_uid, wanted)
    assert new
    return made


async def everything(db: Database) -> list[Document]:
    found: list[Document] = []
    async with db.snapshot() as tx:
        async for page in store.documents.after(tx, "u", "v", 0, None, show=Show.ALL, limit=10**6):
            found += page
    return found
