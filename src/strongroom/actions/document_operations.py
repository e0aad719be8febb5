"""One operation on a document, within a write that has begun: alone, or with others in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, rules, store
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken, VaultNotFound
from strongroom.model import KEPT_ROW, Document, Due
from strongroom.store import Orphan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.actions.account_write import Writing
    from strongroom.model import Expected, Head
    from strongroom.wire import CreateDocument, PutDocument


async def create(writing: Writing, vault_uid: str, wanted: Sequence[CreateDocument]) -> list[Document | UidTaken]:
    """Add documents; the same one again, while it is unchanged, is answered as it is and changes nothing."""
    new = [_new(writing, vault_uid, one) for one in wanted]
    own_uids = all(one.uid is None for one in wanted)
    try:
        added = await store.documents.insert(writing.tx, writing.actor.user_id, new, own_uids=own_uids)
    except Orphan:
        raise VaultNotFound from None
    outcomes: list[Document | UidTaken] = []
    for document, is_new in zip(new, added, strict=True):
        if is_new:
            writing.seen.setdefault(document.uid, None)
            writing.note(document.updated_at, 1, rules.octets(document.data, document.hmac))
            outcomes.append(document)
        else:
            outcomes.append(await _created_before(writing, document))
    return outcomes


def _new(writing: Writing, vault_uid: str, wanted: CreateDocument) -> Document:
    uid = identifiers.new_uid(writing.tx.now) if wanted.uid is None else wanted.uid.lower()
    moment = writing.moment()
    return Document(uid, vault_uid, wanted.collection, wanted.data, wanted.hmac, 1, moment, moment, None)


async def _created_before(writing: Writing, new: Document) -> Document | UidTaken:
    """What is stored under the uid, if that is the same document still unchanged; otherwise the uid is taken."""
    stored = await store.documents.holder(writing.tx, writing.actor.user_id, new.uid)
    if stored is not None and stored.version == 1 and _content(stored) == _content(new):
        return stored
    await _require(writing, new.vault_uid)
    in_reach = stored is not None and rules.reaches(writing.actor, stored.vault_uid, stored.collection)
    before = writing.seen.get(new.uid, stored if in_reach else None)
    return UidTaken() if before is None else UidTaken(before.version, before.updated_at)


async def put(writing: Writing, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected) -> Document:
    """Replace a document's ciphertext; what is stored already, one version on, is answered and changes nothing."""
    tx, owner = writing.tx, writing.actor.user_id
    stored = await _stored(writing, vault_uid, uid)
    if stored.purged_at is not None:
        raise DocumentNotFound("This document was deleted and its content thrown away; create it under a new uid.")
    if expected.allows(stored.version) and not (expected.versions is None and stored.deleted_at is not None):
        moment, kept = await _keep(writing, stored)
        document = await store.documents.replace(tx, owner, vault_uid, stored, moment, wanted.data, wanted.hmac)
        if document is not None:
            size = rules.octets(wanted.data, wanted.hmac)
            if stored.deleted_at is None:
                writing.note(moment, 0, size - stored.bytes, kept)
            else:
                writing.note(moment, 1, size, kept - stored.bytes - KEPT_ROW)
            await _make_room(writing, stored)
            return document
    if expected.precedes(stored.version) and stored.deleted_at is None:
        again = await store.documents.get(tx, owner, vault_uid, uid)
        if again is not None and (again.data, again.hmac) == (wanted.data, wanted.hmac):
            return again
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected.by_header)


async def delete(writing: Writing, vault_uid: str, uid: str, expected: Expected | None) -> Document:
    """Make a document a tombstone; it is answered without its ciphertext."""
    stored = await _stored(writing, vault_uid, uid)
    if stored.deleted_at is not None:
        raise DocumentNotFound("This document is deleted already.")
    if expected is None or expected.allows(stored.version):
        moment, kept = await _keep(writing, stored)
        tombstone = await store.documents.bury(writing.tx, writing.actor.user_id, vault_uid, stored, moment)
        if tombstone is not None:
            content = stored.bytes + KEPT_ROW
            writing.note(moment, -1, -stored.bytes, kept + content)
            if not await _make_room(writing, stored):
                due = Due(writing.actor.user_id, uid, tombstone.version, content, 1)
                await store.documents.purge(writing.tx, [due])
                writing.free(content)
            return tombstone
    raise DocumentConflict(stored.version, stored.updated_at, precondition=expected is not None and expected.by_header)


async def _stored(writing: Writing, vault_uid: str, uid: str) -> Head:
    """The document under the account's lock: nobody changes it between this look and our write."""
    stored = await store.documents.head(writing.tx, writing.actor.user_id, vault_uid, uid)
    if stored is None or not rules.in_scope(writing.actor, stored.collection):
        await _require(writing, vault_uid)
        raise DocumentNotFound
    writing.seen.setdefault(uid, stored)
    return stored


async def _keep(writing: Writing, stored: Head) -> tuple[int, int]:
    """Keep what is about to be replaced, and tell at which moment it is, and how much is kept more than before."""
    moment, most = writing.moment(), writing.terms.versions
    if not most:
        return moment, 0
    owner = writing.actor.user_id
    dropped = await store.versions.keep(writing.tx, owner, stored.uid, stored.version, moment, most)
    return moment, stored.bytes + KEPT_ROW - dropped


async def _make_room(writing: Writing, stored: Head) -> bool:
    """Drop the oldest versions of a document where trash and history take more than they may; whether they fit then."""
    over = await writing.over()
    if not over:
        return True
    freed = await store.versions.drop_oldest(writing.tx, writing.actor.user_id, stored.uid, over)
    writing.free(freed)
    return freed >= over


async def _require(writing: Writing, vault_uid: str) -> None:
    """A vault that is not there comes before anything that is not in it."""
    if await store.vaults.clock(writing.tx, writing.actor.user_id, vault_uid) is None:
        raise VaultNotFound


def _content(document: Document) -> tuple[str, str, str, str | None]:
    return document.vault_uid, document.collection, document.data, document.hmac
