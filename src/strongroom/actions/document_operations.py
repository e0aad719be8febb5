"""Operations on documents within an AccountWrite: one of a single request, or many of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, rules, store
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken, VaultNotFound
from strongroom.model import RETAINED_ROW_BYTES, Document, ExpiredRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.actions.account_write import AccountWrite
    from strongroom.model import Expected, Head
    from strongroom.wire.requests import CreateDocument, PutDocument


async def create(write: AccountWrite, vault_uid: str, wanted: Sequence[CreateDocument]) -> list[Document | UidTaken]:
    """Add documents. A retried create is idempotent: an unchanged identical document is returned as stored."""
    new = [_new(write, vault_uid, one) for one in wanted]
    own_uids = all(one.uid is None for one in wanted)
    added = await store.documents.insert(write.tx, write.actor.user_id, new, own_uids=own_uids)
    outcomes: list[Document | UidTaken] = []
    for document, is_new in zip(new, added, strict=True):
        if is_new or await _takes_place_of_a_deleted_one(write, document):
            write.originals.setdefault(document.uid, None)
            size, row_bytes = rules.octets(document.data, document.hmac), rules.row_bytes(document.collection)
            write.record(document.updated_at, 1, size, row_bytes=row_bytes)
            outcomes.append(document)
        else:
            outcomes.append(await _created_before(write, document))
    return outcomes


def _new(write: AccountWrite, vault_uid: str, wanted: CreateDocument) -> Document:
    uid = identifiers.new_uid(write.tx.now) if wanted.uid is None else wanted.uid.lower()
    timestamp = write.next_timestamp()
    version = wanted.new_version or 1
    return Document(uid, vault_uid, wanted.collection, wanted.data, wanted.hmac, version, timestamp, timestamp, None)


async def _takes_place_of_a_deleted_one(write: AccountWrite, new: Document) -> bool:
    """Whether the uid was that of a document in a vault that is gone, and could be used again."""
    tx, owner = write.tx, write.actor.user_id
    return await store.deletions.evict(tx, owner, new.uid) and all(
        await store.documents.insert(tx, owner, [new], own_uids=False)
    )


async def _created_before(write: AccountWrite, new: Document) -> Document | UidTaken:
    """The document stored under the uid, if it is identical and unchanged; otherwise UidTaken."""
    stored = await store.documents.by_uid(write.tx, write.actor.user_id, new.uid)
    if stored is not None and _content(stored) == _content(new):
        return stored
    await _require_vault(write, new.vault_uid)
    in_reach = stored is not None and rules.reaches(write.actor, stored.vault_uid, stored.collection)
    before = write.originals.get(new.uid, stored if in_reach else None)
    return UidTaken() if before is None else UidTaken(before.version, before.updated_at)


async def put(write: AccountWrite, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected) -> Document:
    """Replace a document's ciphertext. A retried put is idempotent: what it stored before is returned."""
    tx, owner = write.tx, write.actor.user_id
    stored = await _stored(write, vault_uid, uid)
    if stored.purged_at is not None:
        raise DocumentNotFound("This document was deleted and its content purged; create it under a new uid.")
    version = wanted.new_version or stored.version + 1
    revives = expected.versions is None and stored.deleted_at is not None
    if expected.allows(stored.version) and version > stored.version and not revives:
        timestamp, retained = await _retain(write, stored)
        document = await store.documents.replace(
            tx, owner, vault_uid, stored, timestamp, wanted.data, wanted.hmac, version
        )
        if document is not None:
            size = rules.octets(wanted.data, wanted.hmac)
            if stored.deleted_at is None:
                write.record(timestamp, 0, size - stored.bytes, retained)
            else:
                write.record(timestamp, 1, size, retained - stored.bytes - RETAINED_ROW_BYTES)
            await _trim_history(write, stored)
            return document
    if expected.precedes(stored.version, wanted.new_version) and stored.deleted_at is None:
        again = await store.documents.get(tx, owner, vault_uid, uid)
        if again is not None and (again.data, again.hmac) == (wanted.data, wanted.hmac):
            return again
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected.by_header)


async def delete(write: AccountWrite, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    """Turn a document into a tombstone; it is returned without its ciphertext."""
    stored = await _stored(write, vault_uid, uid)
    if stored.deleted_at is not None:
        raise DocumentNotFound("This document is deleted already.")
    if expected is None or expected.allows(stored.version):
        timestamp, retained = await _retain(write, stored)
        tombstone = await store.documents.mark_deleted(write.tx, write.actor.user_id, vault_uid, stored, timestamp)
        if tombstone is not None:
            content = stored.bytes + RETAINED_ROW_BYTES
            write.record(timestamp, -1, -stored.bytes, retained + content)
            if not await _trim_history(write, stored):
                trash = ExpiredRow(write.actor.user_id, uid, timestamp, content, 1)
                await store.documents.purge(write.tx, [trash])
                write.subtract_retained(content)
            return tombstone
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected is not None and expected.by_header)


async def _stored(write: AccountWrite, vault_uid: str, uid: str) -> Head:
    """The document, read under the account's lock: it cannot change before the write."""
    stored = await store.documents.head(write.tx, write.actor.user_id, vault_uid, uid)
    if stored is None or not rules.in_scope(write.actor, stored.collection):
        await _require_vault(write, vault_uid)
        raise DocumentNotFound
    write.originals.setdefault(uid, stored)
    return stored


async def _retain(write: AccountWrite, stored: Head) -> tuple[int, int]:
    """Copy the current version into history; the timestamp of its replacement, and the bytes added to history."""
    timestamp, limit = write.next_timestamp(), write.limits.versions
    if not limit:
        return timestamp, 0
    owner = write.actor.user_id
    dropped = await store.versions.retain(write.tx, owner, stored.uid, stored.version, timestamp, limit)
    return timestamp, stored.bytes + RETAINED_ROW_BYTES - dropped


async def _trim_history(write: AccountWrite, stored: Head) -> bool:
    """Delete the oldest versions of a document if trash and history exceed their limit; whether they fit afterwards."""
    excess = await write.retained_excess()
    if not excess:
        return True
    freed = await store.versions.drop_oldest(write.tx, write.actor.user_id, stored.uid, excess)
    write.subtract_retained(freed)
    return freed >= excess


async def _require_vault(write: AccountWrite, vault_uid: str) -> None:
    """Refuse a vault that does not exist, before any refusal about its documents."""
    if await store.vaults.clock(write.tx, write.actor.user_id, vault_uid) is None:
        raise VaultNotFound


def _content(document: Document) -> tuple[object, ...]:
    """What a retried create repeats. A tombstone, which keeps data and hmac, is no repetition of any."""
    return (
        document.vault_uid,
        document.collection,
        document.data,
        document.hmac,
        document.version,
        document.deleted_at,
    )
