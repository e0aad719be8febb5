"""Documents: create, look, list, replace, delete. A write first draws the account's next time, which locks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from strongroom import rules, store
from strongroom.actions import operations
from strongroom.actions.writing import begin
from strongroom.errors import DocumentNotFound, UidTaken, VaultNotFound
from strongroom.store.documents import Show

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strongroom.model import Actor, Document, Expected, Head, Terms
    from strongroom.store import Tx
    from strongroom.wire import CreateDocument, PutDocument


class Changes(Struct, frozen=True):
    """Which documents a list holds. `tombstones` None: only where there is a `since` to learn of deletions from."""

    since: int | None = None
    limit: int | None = None
    collection: str | None = None
    tombstones: bool | None = None
    wait: int = 0  # seconds, for something new
    trash: bool = False  # nothing but tombstones that can be revived

    @property
    def show(self) -> Show:
        """The same in the store's words."""
        if self.trash:
            return Show.TRASH
        tombstones = self.since is not None if self.tombstones is None else self.tombstones
        return Show.ALL if tombstones else Show.LIVE


async def create(tx: Tx, actor: Actor, terms: Terms, vault_uid: str, wanted: CreateDocument) -> tuple[Document, bool]:
    """Add a document; the same one again, while it is unchanged, is answered as it is and not as new."""
    rules.require_collection(actor, wanted.collection)
    rules.require_vault(actor, vault_uid)
    writing = await begin(tx, actor, terms, documents=1, size=rules.octets(wanted.data, wanted.hmac))
    [document] = await operations.create(writing, vault_uid, [wanted])
    if isinstance(document, UidTaken):
        raise document
    return await writing.end((document, writing.changed), vault_uid)


async def get(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> Document:
    """One document, deleted or not."""
    rules.require_vault(actor, vault_uid)
    document = await store.documents.get(tx, actor.user_id, vault_uid, uid)
    if document is not None and rules.in_scope(actor, document.collection):
        return document
    await _clock(tx, actor, vault_uid)
    raise DocumentNotFound


async def head(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> Head:
    """One document without its ciphertext, deleted or not."""
    rules.require_vault(actor, vault_uid)
    found = await store.documents.head(tx, actor.user_id, vault_uid, uid)
    if found is not None and rules.in_scope(actor, found.collection):
        return found
    await _clock(tx, actor, vault_uid)
    raise DocumentNotFound


async def nothing_new(tx: Tx, actor: Actor, vault_uid: str, wanted: Changes) -> bool:
    """Whether the vault's clock alone says that a list would be empty: no document is newer than it."""
    rules.collections_of(actor, wanted.collection)
    return wanted.since is not None and await _clock(tx, actor, vault_uid) <= wanted.since


async def anything_new(tx: Tx, actor: Actor, vault_uid: str, wanted: Changes) -> bool:
    """Whether a list would show anything."""
    if await nothing_new(tx, actor, vault_uid, wanted):
        return False
    return await store.documents.any_after(
        tx,
        actor.user_id,
        vault_uid,
        min(wanted.since or 0, rules.LARGEST),
        rules.collections_of(actor, wanted.collection),
        wanted.show,
    )


async def list_(tx: Tx, actor: Actor, vault_uid: str, wanted: Changes) -> AsyncIterator[list[Document]]:
    """The documents that changed after `since`, in pages; one more than `limit`, to tell if there are more."""
    collections = rules.collections_of(actor, wanted.collection)
    await _clock(tx, actor, vault_uid)
    return store.documents.after(
        tx,
        actor.user_id,
        vault_uid,
        min(wanted.since or 0, rules.LARGEST),
        collections,
        show=wanted.show,
        limit=rules.LARGEST if wanted.limit is None else min(wanted.limit + 1, rules.LARGEST),
    )


async def put(
    tx: Tx, actor: Actor, terms: Terms, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected
) -> Document:
    """Replace a document's ciphertext if the client saw its latest version; a deleted one comes back to life."""
    rules.require_vault(actor, vault_uid)
    writing = await begin(tx, actor, terms)
    return await writing.end(await operations.put(writing, vault_uid, uid, wanted, expected), vault_uid)


async def delete(tx: Tx, actor: Actor, terms: Terms, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    """Make a document a tombstone."""
    rules.require_vault(actor, vault_uid)
    writing = await begin(tx, actor, terms)
    tombstone = await operations.delete(writing, vault_uid, uid, expected)
    shown = await store.documents.get(tx, actor.user_id, vault_uid, uid) if rules.may_read(actor) else None
    return await writing.end(shown or tombstone, vault_uid)


async def _clock(tx: Tx, actor: Actor, vault_uid: str) -> int:
    """The vault's time, which proves that the actor may look into it."""
    rules.require_vault(actor, vault_uid)
    clock = await store.vaults.clock(tx, actor.user_id, vault_uid)
    if clock is None:
        raise VaultNotFound
    return clock
