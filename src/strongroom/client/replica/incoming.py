"""Storing pulled rows: each is verified, checked for rollback, and matched with the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.format.parents import Descent, Link, follows, trace
from strongroom.client.net import requests
from strongroom.client.operations import documents, rollback
from strongroom.client.replica.conflicts import copy_row
from strongroom.client.replica.store.records import DELETE, DELETE_ONLY, DIVERGED, PUT, Entry, RefusalRecord
from strongroom.errors import NotFound, UidTaken

if TYPE_CHECKING:
    from strongroom.client.net.call import Call
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.file import File
    from strongroom.client.replica.store.records import Head, VaultRecord
    from strongroom.model import Document
    from strongroom.wire import responses

_WRONG_TIME: Final = "The server changed the time of something that it showed before."
_TWO_CONTENTS: Final = "The server shows two contents for one version; one of them was withheld from this device."


class StoredPage(NamedTuple):
    """What came of a page: rows that were new, those among them whose past is not known, and those that forked."""

    new: int
    gaps: int


def descents(
    core: Core,
    file: File,
    scope: KeyScope,
    rows: list[Document],
    heads: dict[str, Head],
    since: int,
    history: History,
) -> Effects[dict[str, Descent]]:
    """How newer rows stand to those that are here, by uid: only where they do not follow on them directly.

    `heads` are those that are here.
    """
    found: dict[str, Descent] = {}
    for row in rows if heads else ():
        head = heads.get(row.uid)
        if head is None or row.version <= head[0]:
            continue
        if _is_late_deletion(scope, row, head):
            found[row.uid] = Descent.FORKED
            continue
        if follows(row.hmac or "", head[1] or "", seal.lineage):
            continue
        if not history.read:
            for uid, link in (yield from documents.read_history(core, scope.vault, since)):
                history.links.setdefault(uid, []).append(link)
            history.read = True
        here = file.documents.get(scope.vault, row.uid)
        if here is not None:
            links = history.links.get(row.uid, [])
            found[row.uid] = trace(seal.link(row), seal.link(here), links, seal.lineage)
    return found


def _is_late_deletion(scope: KeyScope, row: Document, head: Head) -> bool:
    """Whether a deletion that is new here is below the floor: a rotation would have encrypted it again."""
    return row.deleted_at is not None and row.hmac != head[1] and seal.read_proof(row.hmac).generation < scope.floor


class History:
    """What the server's history of a vault says; read once in a sync, when it is first needed."""

    def __init__(self) -> None:
        self.read = False
        self.links: dict[str, list[Link]] = {}


def store_page(
    local: Local,
    scope: KeyScope,
    record: VaultRecord,
    rows: list[Document],
    heads: dict[str, Head],
    stored: dict[str, Document],
    traced: dict[str, Descent],
) -> StoredPage:
    """Keep a page of rows, and the place in the list that it leads to.

    `heads` are the documents that are here. `stored` is what was sent from here and stored before some of these rows.
    """
    file = local.file
    keys = {wire: scope.key(wire) for wire in {row.collection for row in rows}}
    verified = [(row, seal.verify_document(keys[row.collection], row).deleted) for row in rows]
    gaps = 0
    with file.transaction():
        fresh = [one for one in verified if is_new(heads.get(one[0].uid), one[0])] if heads else verified
        queued_documents = file.outbox.documents()
        marks = file.marks.of(scope.vault) if heads else {}
        for row, _ in fresh if traced or marks else ():
            descent, mark = traced.get(row.uid), marks.get(row.uid)
            is_fork = descent is Descent.FORKED or (mark is not None and mark.is_above(row))
            if is_fork or (descent is Descent.GAP and file.documents.is_mine(scope.vault, row.uid)):
                queue_local_conflict(local, scope, row)
            elif descent is Descent.GAP:
                gaps += 1
        file.documents.put([one for one in fresh if one[0].uid in heads])
        file.documents.add([one for one in fresh if one[0].uid not in heads])
        for row, deleted in fresh if queued_documents else ():
            if (scope.vault, row.uid) in queued_documents and not _rebase_same(
                local, scope, row, heads.get(row.uid), traced.get(row.uid)
            ):
                match_outbox(file, row, stored.get(row.uid), deleted=deleted)
        file.vaults.put(record)
    return StoredPage(len(fresh), gaps)


def _rebase_same(local: Local, scope: KeyScope, row: Document, head: Head | None, descent: Descent | None) -> bool:
    """Rebase a change on a row that says the same as the one that it was made from: a rotation has sealed that anew."""
    entry = local.file.outbox.get(scope.vault, row.uid)
    if entry is None or entry.before is None or head is None or entry.base != head[0]:
        return False
    if descent not in {None, Descent.FOLLOWS} or local.file.outbox.was_sent(scope.vault, row.uid):
        return False
    before = seal.open_past_document(scope.key(entry.before.collection), entry.before)
    now = seal.open_document(scope.key(row.collection), row)
    if now.deleted or before.deleted or now.content != before.content:
        return False
    local.file.outbox.put(msgspec.structs.replace(entry, base=row.version, before=row))
    return True


def queue_local_conflict(local: Local, scope: KeyScope, row: Document) -> None:
    """Queue what is here as a change of its own that conflicts with a row that did not know of it.

    What waits already, a change or a conflict, stays as it is, and stands against the row. A row that says that it knew
    of what is here, under an older key, is refused.
    """
    here, entry = local.file.documents.get(scope.vault, row.uid), local.file.outbox.get(scope.vault, row.uid)
    if here is None:
        return
    seal.require_generation(here.hmac or "", row.hmac or "")
    mark = local.file.marks.get(scope.vault, row.uid)
    floor = here.version if mark is None else mark.version
    mine = seal.open_past_document(scope.key(here.collection), here)
    theirs = seal.open_document(scope.key(row.collection), row)
    is_same = mine.deleted == theirs.deleted and (mine.deleted or mine.content == theirs.content)
    if entry is not None and entry.kind != DELETE_ONLY:
        if entry.base != here.version and mark is None and not (is_same or mine.deleted):
            copy_row(local, scope, here)  # it waited to be decided against this, which may be nowhere else any more
        # By its version alone, the row or a later one could be taken for what the change was made from.
        local.file.outbox.put(msgspec.structs.replace(entry, base=DIVERGED, floor=max(entry.floor, floor)))
        return
    if is_same:
        return
    data = seal.reseal_notice(scope.key(here.collection), here).data if mine.purged else here.data
    local.file.outbox.put(
        Entry(
            vault=here.vault_uid,
            uid=here.uid,
            collection=here.collection,
            kind=DELETE if mine.deleted else PUT,
            data=data,
            hmac=here.hmac or "",
            version=here.version - (here.deleted_at is not None),
            base=DIVERGED,
            floor=floor,
            made_at=here.updated_at,
        )
    )


def list_call(scope: KeyScope, since: int, limit: int, *, deleted: bool) -> Call[responses.Documents]:
    """The request for a page of this replica's part of a vault."""
    return requests.documents.list_page(scope.vault, collection=scope.filter, since=since, limit=limit, deleted=deleted)


def stored_before(core: Core, file: File, scope: KeyScope, rows: list[Document]) -> Effects[dict[str, Document]]:
    """Lost responses: versions sent from here that the server's history shows before these rows; by uid.

    Without this, a later change or deletion would seem to be a conflict with it.
    """
    found = {}
    queued_documents = file.outbox.documents()
    for row in rows if queued_documents else ():
        entry = file.outbox.get(scope.vault, row.uid) if (scope.vault, row.uid) in queued_documents else None
        if entry is None or not entry.base < entry.version < row.version:
            continue
        if not file.outbox.was_sent(scope.vault, row.uid):
            continue
        try:
            then = yield from core.session.send(requests.documents.get_version(scope.vault, row.uid, entry.version))
        except NotFound:
            continue  # the history does not go back so far, or there is none
        if (then.uid, then.version) == (row.uid, entry.version) and file.outbox.was_sent(
            scope.vault, row.uid, then.hmac or ""
        ):
            seal.verify_past_document(scope.key(then.collection), then)
            kept = yield from documents.read_history(core, scope.vault, 0, uid=row.uid)
            if trace(seal.link(row), seal.link(then), (link for _, link in kept), seal.lineage) is Descent.FOLLOWS:
                found[row.uid] = then  # and its author knew of it: the history is the server's word, a parent is not
    return found


def is_new(seen: Head | None, row: Document) -> bool:
    """Whether a row is newer than the stored one; raises if it is older or contradicts it."""
    if seen is None:
        return True
    version, hmac, created_at, updated_at, collection = seen
    rollback.require_collection(collection, row)
    if row.version < version:
        raise RolledBack
    if row.version == version and row.hmac != hmac:
        raise Tampered(_TWO_CONTENTS)
    if not updated_at:  # a restored server did not have it; somebody has sent it again
        return True
    if row.created_at != created_at or (row.updated_at != updated_at) != (row.version != version):
        raise Tampered(_WRONG_TIME)
    if row.updated_at < updated_at:
        raise Tampered(_WRONG_TIME)
    return row.version != version


def match_outbox(file: File, row: Document, stored: Document | None, *, deleted: bool) -> None:
    """Match a pulled row with the outbox entry of its document: the row is that change, or a conflicting one.

    `stored` is a version before it that was sent from here: the author of the row has seen that.
    """
    entry = file.outbox.get(row.vault_uid, row.uid)
    if entry is None:
        return
    if entry.collection != row.collection and not file.outbox.was_sent(row.vault_uid, row.uid):
        file.refusals.put(RefusalRecord(vault=row.vault_uid, uid=row.uid, kind=UidTaken.code))
        return
    rollback.require_collection(entry.collection, row)
    if entry.base == DIVERGED and entry.hmac == row.hmac and row.version >= entry.floor:
        file.outbox.drop(row.vault_uid, row.uid)  # the server shows it again: there is nothing to decide
    elif row.hmac is not None and file.outbox.was_sent(row.vault_uid, row.uid, row.hmac):
        _confirm_sent(file, entry, row)
    elif stored is not None and stored.hmac == entry.hmac:
        file.outbox.drop(row.vault_uid, row.uid)
    elif (deleted and entry.kind != PUT) or entry.kind == DELETE_ONLY:
        file.outbox.drop(row.vault_uid, row.uid)  # both deleted it, or a later change follows our notice
    elif stored is not None:
        _confirm_sent(file, entry, stored)  # and was changed here since: a conflict, with what was stored as its base
    # otherwise it is a conflict: the row is no longer the one that the change was made from


def _confirm_sent(file: File, entry: Entry, row: Document) -> None:
    """Update or remove an entry whose content was stored without a response."""
    if row.hmac != entry.hmac:  # changed again since it was sent, or one of several on the way above the floor
        floor = entry.floor if row.version <= entry.floor else 0
        file.outbox.put(msgspec.structs.replace(entry, base=row.version, before=row, floor=floor))
    elif entry.kind == DELETE and row.deleted_at is None:
        file.outbox.put(
            msgspec.structs.replace(entry, kind=DELETE_ONLY, base=row.version, version=row.version, floor=0)
        )
    else:
        file.outbox.drop(row.vault_uid, row.uid)
