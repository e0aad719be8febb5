"""Documents: create, look, list, replace, delete. A write first draws the vault's next time, which locks the vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from strongroom import identifiers, rules, store
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken, VaultNotFound
from strongroom.store import Undo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strongroom.model import Actor, Document, Expected
    from strongroom.store import Tx
    from strongroom.wire import CreateDocument, PutDocument


class Changes(Struct, frozen=True):
    """Which documents a list holds. `tombstones` None: only where there is a `since` to learn of deletions from."""

    since: int | None = None
    limit: int | None = None
    collection: str | None = None
    tombstones: bool | None = None
    wait: int = 0  # seconds, for something new


async def create(tx: Tx, actor: Actor, vault_uid: str, wanted: CreateDocument) -> tuple[Document, bool]:
    """Add a document; the same one again, while it is unchanged, is answered as it is and not as new."""
    rules.require_collection(actor, wanted.collection)
    moment = await _advance(tx, actor, vault_uid)
    uid = identifiers.new_uid(tx.now) if wanted.uid is None else wanted.uid.lower()
    document = await store.documents.insert(
        tx, actor.user_id, vault_uid, moment, uid, wanted.collection, wanted.data, wanted.hmac
    )
    if document is not None:
        return document, True
    stored = await store.documents.holder(tx, actor.user_id, uid)
    if (
        stored is not None
        and stored.version == 1
        and _content(stored)
        == (
            vault_uid,
            wanted.collection,
            wanted.data,
            wanted.hmac,
        )
    ):
        raise Undo((stored, False))
    raise UidTaken


async def get(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> Document:
    """One document, deleted or not."""
    rules.require_vault(actor, vault_uid)
    document = await store.documents.get(tx, actor.user_id, vault_uid, uid)
    if document is not None and rules.in_scope(actor, document.collection):
        return document
    if await store.vaults.clock(tx, actor.user_id, vault_uid) is None:
        raise VaultNotFound
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
        tombstones=wanted.tombstones is not False,
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
        tombstones=wanted.since is not None if wanted.tombstones is None else wanted.tombstones,
        limit=rules.LARGEST if wanted.limit is None else min(wanted.limit + 1, rules.LARGEST),
    )


async def put(tx: Tx, actor: Actor, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected) -> Document:
    """Replace a document's ciphertext if the client saw its latest version; a deleted one comes back to life."""
    moment = await _advance(tx, actor, vault_uid)
    stored = await _stored(tx, actor, vault_uid, uid)
    if expected.allows(stored.version) and not (expected.versions is None and stored.deleted_at is not None):
        document = await store.documents.replace(tx, actor.user_id, stored, moment, wanted.data, wanted.hmac)
        if document is not None:
            return document
    if (
        expected.precedes(stored.version)
        and stored.deleted_at is None
        and (stored.data, stored.hmac) == (wanted.data, wanted.hmac)
    ):
        raise Undo(stored)
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected.by_header)


async def delete(tx: Tx, actor: Actor, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    """Make a document a tombstone."""
    moment = await _advance(tx, actor, vault_uid)
    stored = await _stored(tx, actor, vault_uid, uid)
    if stored.deleted_at is not None:
        raise DocumentNotFound("This document is deleted already.")
    if expected is None or expected.allows(stored.version):
        document = await store.documents.bury(tx, actor.user_id, vault_uid, moment, uid, stored.version)
        if document is not None:
            return document if rules.may_read(actor) else msgspec.structs.replace(document, data="", hmac=None)
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected is not None and expected.by_header)


async def _clock(tx: Tx, actor: Actor, vault_uid: str) -> int:
    """The vault's time, which proves that the actor may look into it."""
    rules.require_vault(actor, vault_uid)
    clock = await store.vaults.clock(tx, actor.user_id, vault_uid)
    if clock is None:
        raise VaultNotFound
    return clock


async def _advance(tx: Tx, actor: Actor, vault_uid: str) -> int:
    """Prove the owner, lock the vault until commit, draw its next time."""
    rules.require_vault(actor, vault_uid)
    moment = await store.vaults.advance(tx, actor.user_id, vault_uid)
    if moment is None:
        raise VaultNotFound
    return moment


async def _stored(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> Document:
    """The document under the vault's lock: nobody changes it between this look and our write."""
    stored = await store.documents.get(tx, actor.user_id, vault_uid, uid)
    if stored is None or not rules.in_scope(actor, stored.collection):
        raise DocumentNotFound
    return stored


def _content(document: Document) -> tuple[str, str, str, str | None]:
    return document.vault_uid, document.collection, document.data, document.hmac
