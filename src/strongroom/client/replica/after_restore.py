"""Reconciliation with a server whose database was restored from a backup: it has forgotten, this device has not.

Everything is read anew. What the server has forgotten is sent again as it is, at its own version; nothing is ever
sealed anew for that. Where both went on, that is a conflict for a person. Nothing that is here is dropped because it is
not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from strongroom.client.format import seal
from strongroom.client.format.encoding import short
from strongroom.client.format.parents import Descent
from strongroom.client.net import effects
from strongroom.client.operations import listing, rollback
from strongroom.client.operations.device import KnownDocument, KnownVault
from strongroom.client.operations.rollback import SeenRow
from strongroom.client.replica import incoming
from strongroom.client.replica.incoming import History
from strongroom.client.replica.store.records import PUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.records import VaultRecord
    from strongroom.model import Document


class RestoreReconciliation:
    """Reconciles one vault after a change of the server's epoch."""

    def __init__(self, local: Local, scope: KeyScope, record: VaultRecord) -> None:
        self._local = local
        self._core = local.core
        self._file = local.file
        self._scope = scope
        self._vault_record = record
        self._history = History()

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
            rows = [row for row in page.documents if self._scope.holds(row.collection)]
            seen.update(row.uid for row in rows)
            came += yield from self.compare_rows(rows)
            more = page.has_more
        with self._file.transaction():
            forgotten = self._file.documents.uids(self._scope.vault) - seen
            for uid in forgotten:
                self._queue_forgotten(uid)
            self._file.documents.forget_times(self._scope.vault, forgotten)
            self._file.vaults.put(
                msgspec.structs.replace(self._vault_record, cursor=max(cursor, self._vault_record.clock), start=None)
            )
        return came

    def compare_rows(self, rows: list[Document]) -> Effects[int]:
        """Lay rows of the server beside those that are here."""
        heads = self._file.documents.heads(self._scope.vault, [row.uid for row in rows])
        traced = yield from incoming.descents(self._core, self._file, self._scope, rows, heads, 0, self._history)
        stored = yield from incoming.stored_before(self._core, self._file, self._scope, rows)
        return (yield from effects.compute(self._store(rows, traced, stored)))

    def _store(
        self, rows: list[Document], traced: dict[str, Descent], stored: dict[str, Document]
    ) -> Callable[[], int]:
        def store() -> int:
            with self._file.transaction():
                return sum(self._compare(row, traced.get(row.uid), stored.get(row.uid)) for row in rows)

        return store

    def _compare(self, row: Document, descent: Descent | None, stored: Document | None) -> bool:
        """Lay a row of the server beside the one that is here."""
        made = seal.verify_past_document(self._scope.key(row.collection), row)
        here = self._file.documents.get(self._scope.vault, row.uid)
        if here is not None:
            rollback.require_collection(here.collection, row)
        self._file.documents.drop_repeat(self._scope.vault, row.uid)
        if here is not None and (here.version, here.hmac) == (row.version, row.hmac):
            if (here.created_at, here.updated_at) != (row.created_at, row.updated_at):
                mine = self._file.documents.is_mine(self._scope.vault, row.uid)
                self._file.documents.put([(row, made.deleted)], mine=mine)  # with the times of this database
            return False
        if here is not None and self._is_past(row, here):
            self._file.documents.put_repeat(self._scope.vault, row.uid, row.version)
            return False
        seal.verify_document(self._scope.key(row.collection), row)  # no restore lowers the floor
        mark = self._file.marks.get(self._scope.vault, row.uid)
        follows = here is None or (row.version > here.version and descent in {None, Descent.FOLLOWS})
        follows = follows and (mark is None or not mark.is_above(row))
        if not follows:
            incoming.queue_local_conflict(self._local, self._scope, row)
        self._file.documents.put([(row, made.deleted)])
        incoming.match_outbox(self._file, row, stored, deleted=made.deleted)
        return True

    def _is_past(self, row: Document, here: Document) -> bool:
        """Whether the row that is here was made knowing of the server's."""
        if row.version >= here.version:
            return False
        return self._file.documents.had_version(row) or seal.parent_of(here.hmac or "") == short(row.hmac or "")

    def _queue_forgotten(self, uid: str) -> None:
        """A document that is here and not there. That it was deleted stays known; anything else is sent again."""
        here = self._file.documents.get(self._scope.vault, uid)
        if here is None:
            return
        deleted = seal.verify_past_document(self._scope.key(here.collection), here).deleted
        entry = self._file.outbox.get(self._scope.vault, uid)
        if not deleted or (entry is not None and entry.kind == PUT):
            self._file.documents.put_repeat(self._scope.vault, uid, 0)


def update_device(local: Local) -> None:
    """Let the client outside the replica go on with a restored server too, once everything was compared and sent again.

    Another program with this replica may have done that, before this one has continued a saved session. The client
    forgets nothing of what the replica had not seen: a document of which it saw a later version stays refused.
    """
    file, device = local.file, local.core.device
    for vault in file.vaults.all():
        uid, seen = vault.uid, device.vault(vault.uid)
        before = {local.epochs.get(uid, ""), "" if seen is None else seen.epoch}
        local.epochs[uid] = vault.epoch
        if before <= {"", vault.epoch}:
            continue
        compared: dict[str, KnownDocument] = {}
        for key, known in device.rows(uid).items():
            row, entry = file.documents.get(uid, key), file.outbox.get(uid, key)
            if row is None or max(row.version, 0 if entry is None else entry.floor) < known.row.version:
                continue
            found = SeenRow(row.version, row.hmac or "", row.collection)
            deleted = file.documents.is_deleted(uid, key)
            compared[key] = KnownDocument(found, seal.link(row), row.created_at, row.updated_at, deleted, 0)
        device.replace_vault(uid, KnownVault(vault.version, vault.clock, vault.data, 0, vault.epoch), compared)
