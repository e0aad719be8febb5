"""Reconciliation with a server that was restored from a backup.

Everything is asked for anew. What the server has forgotten is queued to be sent again, above every version that this
device has seen, so that no other device takes it for something older. Where both went on, that is a conflict.
Nothing that is here is dropped because it is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from strongroom.client.format import seal
from strongroom.client.format.content import EMPTY
from strongroom.client.net import effects, requests
from strongroom.client.operations import listing
from strongroom.client.replica import incoming
from strongroom.client.replica.conflicts import recreate_entry
from strongroom.client.replica.file import DELETE, PUT, Entry
from strongroom.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.file import VaultRecord
    from strongroom.client.replica.local import Local
    from strongroom.model import Document
    from strongroom.wire import responses

DIVERGED = -1  # the base of a change that follows on nothing that the server has


class RestoreReconciliation:
    """Reconciles one vault after a change of the server's epoch."""

    def __init__(self, local: Local, scope: KeyScope, record: VaultRecord) -> None:
        self._local = local
        self._core = local.core
        self._file = local.file
        self._scope = scope
        self._vault_record = record

    def run(self) -> Effects[int]:
        """Compare all documents; returns the number of rows received. The new epoch is recorded only at the end."""
        cursor = came = 0
        limit = listing.FIRST_LIMIT
        seen: set[str] = set()
        more = True
        while more:
            page = yield from self._core.session.send(incoming.list_call(self._scope, cursor, limit, deleted=True))
            cursor = listing.check_page(page, self._scope, cursor, limit, deleted=True)
            limit = listing.next_limit(page, limit)
            seen.update(row.uid for row in page.documents)
            newer = yield from self._newer_in_history(page)
            stored = yield from incoming.stored_before(self._core, self._file, self._scope, page.documents)
            came += yield from effects.compute(self._store(page, newer, stored))
            more = page.has_more
        with self._file.transaction():
            for uid in self._file.uids(self._scope.vault) - seen:
                self._queue_forgotten(uid)
            self._file.put_vault(
                msgspec.structs.replace(self._vault_record, cursor=max(cursor, self._vault_record.clock), start=None)
            )
        return came

    def _newer_in_history(self, page: responses.Documents) -> Effects[set[str]]:
        """The uids of rows whose history on the server contains the local version."""
        newer = set()
        heads = self._file.heads(self._scope.vault, [row.uid for row in page.documents])
        for row in page.documents:
            version, hmac = heads.get(row.uid, (0, None))[:2]
            if 0 < version < row.version:
                try:
                    then = yield from self._core.session.send(requests.get_version(self._scope.vault, row.uid, version))
                except NotFound:
                    continue
                if then.version == version and then.hmac == hmac:
                    newer.add(row.uid)
        return newer

    def _store(self, page: responses.Documents, newer: set[str], stored: dict[str, Document]) -> Callable[[], int]:
        def store() -> int:
            with self._file.transaction():
                return sum(self._compare(row, stored.get(row.uid), newer=row.uid in newer) for row in page.documents)

        return store

    def _compare(self, row: Document, stored: Document | None, *, newer: bool) -> bool:
        """Compare a row of the server with the local one."""
        made = seal.open_document(self._scope.key(row.collection)[0], row)
        local = self._file.row(self._scope.vault, row.uid)
        if local is not None and (local.version, local.hmac) == (row.version, row.hmac):
            return False
        older = self._file.had_version(row)
        self._file.put_rows([(row, made.deleted)])
        if local is None or newer:
            incoming.match_outbox(self._file, row, stored, deleted=made.deleted)
            return True
        here = seal.open_document(self._scope.key(local.collection)[0], local)
        alike = here.deleted == made.deleted and (here.deleted or here.content == made.content)
        if alike and row.version > local.version:
            incoming.match_outbox(self._file, row, stored, deleted=made.deleted)
            return True
        base = row.version if alike or older else DIVERGED
        self._queue(local, here, base, row)
        return True

    def _queue_forgotten(self, uid: str) -> None:
        """Queue a document that the server has lost. A tombstone stays local; anything else is sent again."""
        local = self._file.row(self._scope.vault, uid)
        if local is None:
            return
        here = seal.open_document(self._scope.key(local.collection)[0], local)
        if here.deleted:
            entry = self._file.entry(self._scope.vault, uid)
            if entry is None or entry.kind != PUT:
                return
        self._file.drop_row(self._scope.vault, uid)
        self._queue(local, here, 0, None)

    def _queue(self, local: Document, here: seal.Opened, base: int, before: Document | None) -> None:
        """Queue the local content; a queued change that is based on it is rebased instead.

        A change that was made from something else is an undecided conflict: this device may be the last one that holds
        the other side, so both are kept, and the change becomes a document of its own.
        """
        entry = self._file.entry(self._scope.vault, local.uid)
        if entry is not None and entry.base != local.version and not here.deleted:
            recreate_entry(self._local, self._scope, entry)
            entry = None
        if entry is not None:
            floor = max(entry.floor, local.version)
            self._file.put_entry(msgspec.structs.replace(entry, base=base, floor=floor))
            return
        keys, _ = self._scope.key(local.collection)
        data, hmac, version = local.data, local.hmac or "", local.version
        if local.deleted_at is not None:
            version -= 1  # the notice's
            if not data:
                data = seal.seal_deletion(keys, local.uid, version, EMPTY).data
        self._file.put_entry(
            Entry(
                vault=local.vault_uid,
                uid=local.uid,
                collection=local.collection,
                kind=DELETE if here.deleted else PUT,
                data=data,
                hmac=hmac,
                version=version,
                base=base,
                floor=local.version,
                before=before,
                made_at=local.updated_at,
            )
        )
