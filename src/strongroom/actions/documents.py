"""Documents: create, look, list, replace, delete. A write first draws the account's next time, which locks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from strongroom import identifiers, rules, store
from strongroom.actions.writing import Writing, begin
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken, VaultNotFound
from strongroom.store import Orphan

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


async def create(tx: Tx, actor: Actor, terms: Terms, vault_uid: str, wanted: CreateDocument) -> tuple[Document, bool]:
    """Add a document; the same one again, while it is unchanged, is answered as it is and not as new."""
    rules.require_collection(actor, wanted.collection)
    rules.require_vault(actor, vault_uid)
    writing = await begin(tx, actor, terms, documents=1, size=rules.octets(wanted.data, wanted.hmac))
    document = await _create(writing, vault_uid, wanted)
    return await writing.end((document, writing.changed), vault_uid)


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


async def put(
    tx: Tx, actor: Actor, terms: Terms, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected
) -> Document:
    """Replace a document's ciphertext if the client saw its latest version; a deleted one comes back to life."""
    rules.require_vault(actor, vault_uid)
    writing = await begin(tx, actor, terms)
    return await writing.end(await _put(writing, vault_uid, uid, wanted, expected), vault_uid)


async def delete(tx: Tx, actor: Actor, terms: Terms, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    """Make a document a tombstone."""
    rules.require_vault(actor, vault_uid)
    writing = await begin(tx, actor, terms)
    return await writing.end(await _delete(writing, vault_uid, uid, expected), vault_uid)


async def _create(writing: Writing, vault_uid: str, wanted: CreateDocument) -> Document:
    tx, owner = writing.tx, writing.actor.user_id
    uid = identifiers.new_uid(tx.now) if wanted.uid is None else wanted.uid.lower()
    content = wanted.collection, wanted.data, wanted.hmac
    try:
        document = await store.documents.insert(tx, owner, vault_uid, writing.moment, uid, *content)
    except Orphan:
        raise VaultNotFound from None
    if document is not None:
        writing.note(1, rules.octets(wanted.data, wanted.hmac))
        return document
    stored = await store.documents.holder(tx, owner, uid)
    if stored is not None and stored.version == 1 and _content(stored) == (vault_uid, *content):
        return stored
    await _clock(tx, writing.actor, vault_uid)
    raise UidTaken


async def _put(writing: Writing, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected) -> Document:
    tx, owner = writing.tx, writing.actor.user_id
    stored = await _stored(writing, vault_uid, uid)
    if expected.allows(stored.version) and not (expected.versions is None and stored.deleted_at is not None):
        document = await store.documents.replace(tx, owner, vault_uid, stored, writing.moment, wanted.data, wanted.hmac)
        if document is not None:
            size = rules.octets(wanted.data, wanted.hmac)
            if stored.deleted_at is None:
                writing.note(0, size - stored.bytes)
            else:
                writing.note(1, size)
            return document
    if expected.precedes(stored.version) and stored.deleted_at is None:
        again = await store.documents.get(tx, owner, vault_uid, uid)
        if again is not None and (again.data, again.hmac) == (wanted.data, wanted.hmac):
            return again
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected.by_header)


async def _delete(writing: Writing, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    tx, actor = writing.tx, writing.actor
    stored = await _stored(writing, vault_uid, uid)
    if stored.deleted_at is not None:
        raise DocumentNotFound("This document is deleted already.")
    if expected is None or expected.allows(stored.version):
        document = await store.documents.bury(tx, actor.user_id, vault_uid, writing.moment, uid, stored.version)
        if document is not None:
            writing.note(-1, -stored.bytes)
            return document if rules.may_read(actor) else msgspec.structs.replace(document, data="", hmac=None)
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected is not None and expected.by_header)


async def _clock(tx: Tx, actor: Actor, vault_uid: str) -> int:
    """The vault's time, which proves that the actor may look into it."""
    rules.require_vault(actor, vault_uid)
    clock = await store.vaults.clock(tx, actor.user_id, vault_uid)
    if clock is None:
        raise VaultNotFound
    return clock


async def _stored(writing: Writing, vault_uid: str, uid: str) -> Head:
    """The document under the account's lock: nobody changes it between this look and our write."""
    stored = await store.documents.head(writing.tx, writing.actor.user_id, vault_uid, uid)
    if stored is None or not rules.in_scope(writing.actor, stored.collection):
        await _clock(writing.tx, writing.actor, vault_uid)
        raise DocumentNotFound
    return stored


def _content(document: Document) -> tuple[str, str, str, str | None]:
    return document.vault_uid, document.collection, document.data, document.hmac
