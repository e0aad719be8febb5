"""One operation on a document, within a write that has begun: alone, or with others in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, rules, store
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken, VaultNotFound
from strongroom.model import RETAINED_ROW_BYTES, Document, ExpiredRow
from strongroom.store import MissingParent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.actions.account_write import AccountWrite
    from strongroom.model import Expected, Head
    from strongroom.wire.requests import CreateDocument, PutDocument


async def create(write: AccountWrite, vault_uid: str, wanted: Sequence[CreateDocument]) -> list[Document | UidTaken]:
    """Add documents; the same one again, while it is unchanged, is answered as it is and changes nothing."""
    new = [_new(write, vault_uid, one) for one in wanted]
    own_uids = all(one.uid is None for one in wanted)
    try:
        added = await store.documents.insert(write.tx, write.actor.user_id, new, own_uids=own_uids)
    except MissingParent:
        raise VaultNotFound from None
    outcomes: list[Document | UidTaken] = []
    for document, is_new in zip(new, added, strict=True):
        if is_new:
            write.originals.setdefault(document.uid, None)
            write.record(document.updated_at, 1, rules.octets(document.data, document.hmac))
            outcomes.append(document)
        else:
            outcomes.append(await _created_before(write, document))
    return outcomes


def _new(write: AccountWrite, vault_uid: str, wanted: CreateDocument) -> Document:
    uid = identifiers.new_uid(write.tx.now) if wanted.uid is None else wanted.uid.lower()
    timestamp = write.next_timestamp()
    return Document(uid, vault_uid, wanted.collection, wanted.data, wanted.hmac, 1, timestamp, timestamp, None)


async def _created_before(write: AccountWrite, new: Document) -> Document | UidTaken:
    """What is stored under the uid, if that is the same document still unchanged; otherwise the uid is taken."""
    stored = await store.documents.by_uid(write.tx, write.actor.user_id, new.uid)
    if stored is not None and stored.version == 1 and _content(stored) == _content(new):
        return stored
    await _require(write, new.vault_uid)
    in_reach = stored is not None and rules.reaches(write.actor, stored.vault_uid, stored.collection)
    before = write.originals.get(new.uid, stored if in_reach else None)
    return UidTaken() if before is None else UidTaken(before.version, before.updated_at)


async def put(write: AccountWrite, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected) -> Document:
    """Replace a document's ciphertext; what is stored already, one version on, is answered and changes nothing."""
    tx, owner = write.tx, write.actor.user_id
    stored = await _stored(write, vault_uid, uid)
    if stored.purged_at is not None:
        raise DocumentNotFound("This document was deleted and its content thrown away; create it under a new uid.")
    if expected.allows(stored.version) and not (expected.versions is None and stored.deleted_at is not None):
        timestamp, kept = await _keep(write, stored)
        document = await store.documents.replace(tx, owner, vault_uid, stored, timestamp, wanted.data, wanted.hmac)
        if document is not None:
            size = rules.octets(wanted.data, wanted.hmac)
            if stored.deleted_at is None:
                write.record(timestamp, 0, size - stored.bytes, kept)
            else:
                write.record(timestamp, 1, size, kept - stored.bytes - RETAINED_ROW_BYTES)
            await _make_room(write, stored)
            return document
    if expected.precedes(stored.version) and stored.deleted_at is None:
        again = await store.documents.get(tx, owner, vault_uid, uid)
        if again is not None and (again.data, again.hmac) == (wanted.data, wanted.hmac):
            return again
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected.by_header)


async def delete(write: AccountWrite, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    """Make a document a tombstone; it is answered without its ciphertext."""
    stored = await _stored(write, vault_uid, uid)
    if stored.deleted_at is not None:
        raise DocumentNotFound("This document is deleted already.")
    if expected is None or expected.allows(stored.version):
        timestamp, kept = await _keep(write, stored)
        tombstone = await store.documents.mark_deleted(write.tx, write.actor.user_id, vault_uid, stored, timestamp)
        if tombstone is not None:
            content = stored.bytes + RETAINED_ROW_BYTES
            write.record(timestamp, -1, -stored.bytes, kept + content)
            if not await _make_room(write, stored):
                due = ExpiredRow(write.actor.user_id, uid, tombstone.version, content, 1)
                await store.documents.purge(write.tx, [due])
                write.subtract_retained(content)
            return tombstone
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected is not None and expected.by_header)


async def _stored(write: AccountWrite, vault_uid: str, uid: str) -> Head:
    """The document under the account's lock: nobody changes it between this look and our write."""
    stored = await store.documents.head(write.tx, write.actor.user_id, vault_uid, uid)
    if stored is None or not rules.in_scope(write.actor, stored.collection):
        await _require(write, vault_uid)
        raise DocumentNotFound
    write.originals.setdefault(uid, stored)
    return stored


async def _keep(write: AccountWrite, stored: Head) -> tuple[int, int]:
    """Keep what is about to be replaced, and tell at which timestamp it is, and how much is kept more than before."""
    timestamp, most = write.next_timestamp(), write.limits.versions
    if not most:
        return timestamp, 0
    owner = write.actor.user_id
    dropped = await store.versions.retain(write.tx, owner, stored.uid, stored.version, timestamp, most)
    return timestamp, stored.bytes + RETAINED_ROW_BYTES - dropped


async def _make_room(write: AccountWrite, stored: Head) -> bool:
    """Drop the oldest versions of a document where trash and history take more than they may; whether they fit then."""
    over = await write.retained_excess()
    if not over:
        return True
    freed = await store.versions.drop_oldest(write.tx, write.actor.user_id, stored.uid, over)
    write.subtract_retained(freed)
    return freed >= over


async def _require(write: AccountWrite, vault_uid: str) -> None:
    """A vault that is not there comes before anything that is not in it."""
    if await store.vaults.clock(write.tx, write.actor.user_id, vault_uid) is None:
        raise VaultNotFound


def _content(document: Document) -> tuple[str, str, str, str | None]:
    return document.vault_uid, document.collection, document.data, document.hmac
