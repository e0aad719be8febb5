"""Taking rows over: each is opened, compared with what this device has seen, and laid beside what waits to be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.net import requests
from strongroom.client.replica.file import BURY, DELETE, PUT, Entry
from strongroom.errors import NotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Place
    from strongroom.client.replica.file import File, KeptVault
    from strongroom.model import Document
    from strongroom.wire import responses

_TIMES: Final = "The server changed the time of something that it showed before."
_OTHER: Final = "The server shows two contents for one version; one of them was withheld from this device."


def take(file: File, at: Place, kept: KeptVault, rows: list[Document], stored: dict[str, Document]) -> int:
    """Keep a page of rows, and the place in the list that it leads to; give how many were new.

    `stored` is what was sent from here and stored before some of these rows.
    """
    opened = [(row, seal.open_document(at.key(row.collection)[0], row)) for row in rows]
    with file.change():
        known = {} if file.is_empty(at.vault) else file.heads(at.vault, [row.uid for row in rows])
        fresh = []
        for row, made in opened:
            if is_new(known.get(row.uid), row):
                fresh.append((row, made.deleted))
        file.put_rows(fresh)
        waiting = file.waiting()
        if waiting:
            for row, deleted in fresh:
                if (at.vault, row.uid) in waiting:
                    meet(file, row, stored.get(row.uid), deleted=deleted)
        file.put_vault(kept)
    return len(fresh)


def list_call(at: Place, since: int, limit: int, *, deleted: bool) -> requests.Call[responses.Documents]:
    """The request for a page of this replica's part of a vault."""
    wire = None if at.one is None else at.one.collection
    return requests.list_documents(at.vault, collection=wire, since=since, limit=limit, deleted=deleted)


def stored_before(core: Core, file: File, at: Place, rows: list[Document]) -> Effects[dict[str, Document]]:
    """What was sent from here, never answered, and stored before these rows, as the server's history shows; by uid.

    Without this, whoever deleted or changed it later would seem not to have known of it.
    """
    found = {}
    waiting = file.waiting()
    for row in rows:
        entry = file.entry(at.vault, row.uid) if (at.vault, row.uid) in waiting else None
        if entry is None or not entry.base < entry.version < row.version:
            continue
        if not file.was_sent(at.vault, row.uid):
            continue
        try:
            then = yield from core.session.send(requests.get_version(at.vault, row.uid, entry.version))
        except NotFound:
            continue  # the history does not go back so far, or there is none
        if (then.uid, then.version) == (row.uid, entry.version) and file.was_sent(at.vault, row.uid, then.hmac or ""):
            seal.open_document(at.key(then.collection)[0], then)
            found[row.uid] = then
    return found


def is_new(seen: tuple[int, str | None, int, int] | None, row: Document) -> bool:
    """Whether a row says more than what is known; what says less is refused."""
    if seen is None:
        return True
    version, hmac, created_at, updated_at = seen
    if row.version < version:
        raise RolledBack
    if row.version == version and row.hmac != hmac:
        raise Tampered(_OTHER)
    if row.created_at != created_at or (row.updated_at != updated_at) != (row.version != version):
        raise Tampered(_TIMES)
    if row.updated_at < updated_at:
        raise Tampered(_TIMES)
    return row.version != version


def meet(file: File, row: Document, stored: Document | None, *, deleted: bool) -> None:
    """Lay a row that came in beside a change of it that waits: it is that change itself, or somebody else's.

    `stored` is a version before it that was sent from here: whoever made the row has seen that.
    """
    entry = file.entry(row.vault_uid, row.uid)
    if entry is None:
        return
    if row.hmac is not None and file.was_sent(row.vault_uid, row.uid, row.hmac):
        _came_through(file, entry, row)
    elif stored is not None and stored.hmac == entry.hmac:
        file.drop_entry(row.vault_uid, row.uid)
    elif (deleted and entry.kind != PUT) or entry.kind == BURY:
        file.drop_entry(row.vault_uid, row.uid)  # both deleted it, or somebody went on from our notice
    elif stored is not None:
        _came_through(file, entry, stored)  # and was changed here since: a conflict, with what was stored as its base
    # otherwise it is a conflict: the row is no longer the one that the change was made from


def _came_through(file: File, entry: Entry, row: Document) -> None:
    """What was sent is stored, although its answer was lost."""
    if row.hmac != entry.hmac:  # changed again since it was sent, or one of several on the way above the floor
        floor = entry.floor if row.version <= entry.floor else 0
        file.put_entry(msgspec.structs.replace(entry, base=row.version, before=row, floor=floor))
    elif entry.kind == DELETE and row.deleted_at is None:
        file.put_entry(msgspec.structs.replace(entry, kind=BURY, base=row.version, version=row.version, floor=0))
    else:
        file.drop_entry(row.vault_uid, row.uid)
