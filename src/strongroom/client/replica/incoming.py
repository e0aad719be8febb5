"""Storing pulled rows: each is verified, checked for rollback, and matched with the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.net import requests
from strongroom.client.replica.file import DELETE, DELETE_ONLY, PUT, Entry
from strongroom.errors import NotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.file import File, VaultRecord
    from strongroom.model import Document
    from strongroom.wire import responses

_WRONG_TIME: Final = "The server changed the time of something that it showed before."
_TWO_CONTENTS: Final = "The server shows two contents for one version; one of them was withheld from this device."


def store_page(
    file: File, scope: KeyScope, record: VaultRecord, rows: list[Document], stored: dict[str, Document]
) -> int:
    """Store a page of rows and the new cursor; returns how many rows were new.

    `stored` is what was sent from here and stored before some of these rows.
    """
    opened = [(row, seal.open_document(scope.key(row.collection)[0], row)) for row in rows]
    with file.transaction():
        known = {} if file.is_empty(scope.vault) else file.heads(scope.vault, [row.uid for row in rows])
        fresh = []
        for row, made in opened:
            if is_new(known.get(row.uid), row):
                fresh.append((row, made.deleted))
        file.put_rows(fresh)
        queued_documents = file.queued_documents()
        if queued_documents:
            for row, deleted in fresh:
                if (scope.vault, row.uid) in queued_documents:
                    match_outbox(file, row, stored.get(row.uid), deleted=deleted)
        file.put_vault(record)
    return len(fresh)


def list_call(scope: KeyScope, since: int, limit: int, *, deleted: bool) -> requests.Call[responses.Documents]:
    """The request for a page of documents of a scope."""
    wire = None if scope.collection_key is None else scope.collection_key.collection
    return requests.list_documents(scope.vault, collection=wire, since=since, limit=limit, deleted=deleted)


def stored_before(core: Core, file: File, scope: KeyScope, rows: list[Document]) -> Effects[dict[str, Document]]:
    """Lost responses: versions sent from here that the server's history shows before these rows; by uid.

    Without this, a later change or deletion would seem to be a conflict with it.
    """
    found = {}
    queued_documents = file.queued_documents()
    for row in rows:
        entry = file.entry(scope.vault, row.uid) if (scope.vault, row.uid) in queued_documents else None
        if entry is None or not entry.base < entry.version < row.version:
            continue
        if not file.was_sent(scope.vault, row.uid):
            continue
        try:
            then = yield from core.session.send(requests.get_version(scope.vault, row.uid, entry.version))
        except NotFound:
            continue  # the history does not go back so far, or there is none
        if (then.uid, then.version) == (row.uid, entry.version) and file.was_sent(
            scope.vault, row.uid, then.hmac or ""
        ):
            seal.open_document(scope.key(then.collection)[0], then)
            found[row.uid] = then
    return found


def is_new(seen: tuple[int, str | None, int, int] | None, row: Document) -> bool:
    """Whether a row is newer than the stored one; raises if it is older or contradicts it."""
    if seen is None:
        return True
    version, hmac, created_at, updated_at = seen
    if row.version < version:
        raise RolledBack
    if row.version == version and row.hmac != hmac:
        raise Tampered(_TWO_CONTENTS)
    if row.created_at != created_at or (row.updated_at != updated_at) != (row.version != version):
        raise Tampered(_WRONG_TIME)
    if row.updated_at < updated_at:
        raise Tampered(_WRONG_TIME)
    return row.version != version


def match_outbox(file: File, row: Document, stored: Document | None, *, deleted: bool) -> None:
    """Match a pulled row with the outbox entry of its document: the row is that change, or a conflicting one.

    `stored` is a version before it that was sent from here: the author of the row has seen that.
    """
    entry = file.entry(row.vault_uid, row.uid)
    if entry is None:
        return
    if row.hmac is not None and file.was_sent(row.vault_uid, row.uid, row.hmac):
        _confirm_sent(file, entry, row)
    elif stored is not None and stored.hmac == entry.hmac:
        file.drop_entry(row.vault_uid, row.uid)
    elif (deleted and entry.kind != PUT) or entry.kind == DELETE_ONLY:
        file.drop_entry(row.vault_uid, row.uid)  # both deleted it, or a later change follows our notice
    elif stored is not None:
        _confirm_sent(file, entry, stored)  # and was changed here since: a conflict, with what was stored as its base
    # otherwise it is a conflict: the row is no longer the one that the change was made from


def _confirm_sent(file: File, entry: Entry, row: Document) -> None:
    """Update or remove an entry whose content was stored without a response."""
    if row.hmac != entry.hmac:  # changed again since it was sent, or one of several on the way above the floor
        floor = entry.floor if row.version <= entry.floor else 0
        file.put_entry(msgspec.structs.replace(entry, base=row.version, before=row, floor=floor))
    elif entry.kind == DELETE and row.deleted_at is None:
        file.put_entry(msgspec.structs.replace(entry, kind=DELETE_ONLY, base=row.version, version=row.version, floor=0))
    else:
        file.drop_entry(row.vault_uid, row.uid)
