"""The trash: its owner purges deleted documents before their time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import store
from strongroom.actions import retention
from strongroom.errors import DocumentConflict, DocumentNotFound, ImportUnfinished, VaultNotFound

if TYPE_CHECKING:
    from strongroom.model import Actor, Document, Expected
    from strongroom.store import Tx


async def empty_some(
    tx: Tx, actor: Actor, vault_uid: str, collection: str | None, reached: int
) -> tuple[int, int | None]:
    """Purge some documents in the trash of a vault, from a time of deletion on.

    Returns how many, and from where to continue; None if there are no more.
    """
    await _lock(tx, actor, vault_uid)
    found = await store.documents.trash_of_vault(tx, actor.user_id, vault_uid, collection, reached, retention.ROWS)
    return await retention.purge_trash(tx, found), found[0].since if found else None


async def purge_some(
    tx: Tx, actor: Actor, vault_uid: str, uid: str, expected: Expected | None
) -> tuple[Document, bool]:
    """Purge a deleted document that the client saw at this version, or a part of its history; the tombstone.

    True where something of it is left. One that was purged before is returned as it is.
    """
    await _lock(tx, actor, vault_uid)
    stored = await store.documents.head(tx, actor.user_id, vault_uid, uid)
    if stored is None:
        raise DocumentNotFound
    if stored.deleted_at is None or (expected is not None and not expected.allows(stored.version)):
        by_header = expected is not None and expected.by_header
        raise DocumentConflict(stored.version, stored.updated_at, precondition=by_header)
    found = await store.documents.trash_of_document(tx, actor.user_id, vault_uid, uid)
    await retention.purge_trash(tx, found)
    tombstone = await store.documents.get(tx, actor.user_id, vault_uid, uid)
    if tombstone is None:
        raise DocumentNotFound
    return tombstone, bool(tombstone.data)


async def _lock(tx: Tx, actor: Actor, vault_uid: str) -> None:
    """Lock the account without taking a timestamp: a purge changes neither versions nor times."""
    if await store.ledgers.advance(tx, actor.user_id, 0, 0, 0) is None:
        raise ImportUnfinished
    if await store.vaults.clock(tx, actor.user_id, vault_uid) is None:
        raise VaultNotFound
