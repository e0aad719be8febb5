"""Pulling a vault: pages of what has changed, each verified and stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.client.errors import Locked, RolledBack, Tampered, UndecidedConflicts, Unsupported
from strongroom.client.format import seal
from strongroom.client.net import effects, requests
from strongroom.client.operations import documents, listing
from strongroom.client.replica import blobs, incoming
from strongroom.client.replica.after_restore import RestoreReconciliation
from strongroom.client.replica.store.records import VaultRecord

if TYPE_CHECKING:
    from strongroom.client.format.parents import Descent
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.report import RunningReport
    from strongroom.client.replica.store.records import Head
    from strongroom.model import Document
    from strongroom.wire import responses

_OLDER: Final = (
    "The server shows a vault as it was before this device saw it last. If the server's clock was far ahead for a "
    "while, and its database was not restored since, begin a new replica; what was not sent yet is in this one alone."
)
_HELD_BACK: Final = (
    "The server holds back documents that were encrypted again under newer keys, or shows them as they were before."
)
_MISSING: Final = "The server counts other documents in a vault than it shows."


class Pull:
    """The pull of one sync, vault by vault."""

    def __init__(self, local: Local, running: RunningReport) -> None:
        self._local = local
        self._core = local.core
        self._file = local.file
        self._running = running

    def is_new(self, row: responses.Vault) -> bool:
        """Whether a vault has changes to pull; raises RolledBack if it has gone back."""
        record = self._file.vaults.get(row.uid)
        if record is None or row.epoch != record.epoch:
            return True
        if row.updated_at < record.clock or row.version < record.version:
            raise RolledBack(_OLDER)
        return record.start is not None or row.updated_at > record.cursor

    def run(self, scope: KeyScope, row: responses.Vault) -> Effects[None]:
        """Pull what has changed in a vault."""
        was = self._file.vaults.get(scope.vault)
        if was is not None and was.epoch != row.epoch and self._file.outbox.waits_since_restore(scope.vault):
            raise UndecidedConflicts
        try:
            yield from self._pull_changes(scope, row, was)
        except (Tampered, RolledBack, Locked, Unsupported):
            self._reset_vault(scope.vault, was)
            raise

    def require_floor(self, scope: KeyScope) -> Effects[None]:
        """Refuse a server that holds back what a rotation has encrypted again: nothing here may be below the floor.

        Once that holds, it stays so: no row below the floor is taken.
        """
        fact = f"floor {scope.vault}"
        if scope.floor == 1 or self._file.fact(fact) == str(scope.floor):
            return
        if self._is_below_floor(scope):  # the floor may have risen after the server listed its vaults
            self._begin_again(scope.vault)
            row = yield from self._core.session.send(requests.vaults.get(scope.vault))
            if row.uid != scope.vault:
                raise Tampered
            yield from self.run(scope, row)
            if self._is_below_floor(scope):
                self._begin_again(scope.vault)
                raise RolledBack(_HELD_BACK)
        self._file.set_fact(fact, str(scope.floor))

    def _begin_again(self, uid: str) -> None:
        """Pull everything next time: what was held back may be from before the cursor."""
        record = self._file.vaults.get(uid)
        if record is not None:
            self._file.vaults.put(msgspec.structs.replace(record, cursor=0))

    def _is_below_floor(self, scope: KeyScope) -> bool:
        record = self._file.vaults.get(scope.vault)
        blob = None if record is None or scope.vault_keys is None else record.data
        if blob is not None and seal.blob_generation(blob) < scope.floor:
            return True
        proofs = self._file.documents.live_proofs(scope.vault)
        return any(seal.read_proof(proof).generation < scope.floor for proof in proofs)

    def _reset_vault(self, uid: str, was: VaultRecord | None) -> None:
        """Reset the cursor of a vault, so that the next sync pulls again what a hostile server left out."""
        if was is None:
            self._file.vaults.drop(uid)
        else:
            self._file.vaults.put(was)

    def _pull_changes(self, scope: KeyScope, row: responses.Vault, record: VaultRecord | None) -> Effects[None]:
        row, gaps = yield from blobs.reconcile(self._local, scope, record, row)
        self._running.report.gaps += gaps
        if record is not None and record.epoch != row.epoch:
            came = yield from RestoreReconciliation(self._local, scope, _vault_record(row, 0, None)).run()
            self._running.add("pull", came)
            return
        since = 0 if record is None else record.cursor
        record = _vault_record(row, since, row.updated_at if record is None else record.start)
        history = incoming.History()
        if record.start is not None:
            record = yield from self._pages(scope, record, history, since, deleted=False, expected={})
            record = msgspec.structs.replace(record, cursor=record.start, start=None)
            expected: dict[str, int] = {}
        else:
            expected = self._file.documents.changed_after(scope.vault, record.cursor)
        record = yield from self._pages(scope, record, history, since, deleted=True, expected=expected)
        self._file.vaults.put(msgspec.structs.replace(record, cursor=max(record.cursor, row.updated_at)))
        self._count(scope, row)

    def _pages(
        self,
        scope: KeyScope,
        record: VaultRecord,
        history: incoming.History,
        since: int,
        *,
        deleted: bool,
        expected: dict[str, int],
    ) -> Effects[VaultRecord]:
        """All pages from the cursor on; while one is under way, the one before is verified and kept.

        `expected` are documents that must be among them, in this version or a later one.
        """
        limit, start = listing.FIRST_LIMIT, record.cursor
        page = yield from self._core.session.send(incoming.list_call(scope, record.cursor, limit, deleted=deleted))
        while True:
            cursor = listing.check_page(page, scope, record.cursor, limit, deleted=deleted)
            for found in page.documents if expected else ():
                if scope.holds(found.collection):
                    expected.pop(found.uid, None)
            if expected and not page.has_more:
                raise RolledBack(documents.WITHHELD)
            record = msgspec.structs.replace(record, cursor=cursor)
            rows = yield from self._without_repeats(scope, page.documents)
            heads = self._file.documents.heads(scope.vault, [row.uid for row in rows])
            traced = yield from incoming.descents(self._core, self._file, scope, rows, heads, since, history)
            stored = yield from incoming.stored_before(self._core, self._file, scope, rows)
            # As long as something is still expected, the next sync begins where this one did.
            kept = msgspec.structs.replace(record, cursor=start) if expected else record
            store = _store(self._local, scope, kept, rows, heads, stored, traced)
            limit = listing.next_limit(page, limit)
            if not page.has_more:
                stored_page = yield from effects.compute(store)
                self._running.add("pull", stored_page.new, stored_page.gaps)
                return record
            call = incoming.list_call(scope, cursor, limit, deleted=deleted)
            page, stored_page = yield from self._core.session.send_and_compute(call, store)
            self._running.add("pull", stored_page.new, stored_page.gaps)

    def _without_repeats(self, scope: KeyScope, rows: list[Document]) -> Effects[list[Document]]:
        """The rows of this place; those that are to be sent again after a restore are met as after a restore."""
        if scope.collection_keys is not None:
            rows = [row for row in rows if scope.holds(row.collection)]
        repeats = self._file.documents.repeats(scope.vault)
        record = self._file.vaults.get(scope.vault)
        if not repeats or record is None:
            return rows
        yield from RestoreReconciliation(self._local, scope, record).compare_rows(
            [row for row in rows if row.uid in repeats]
        )
        return [row for row in rows if row.uid not in repeats]

    def _count(self, scope: KeyScope, row: responses.Vault) -> None:
        """Compare the number of local documents with the server's count, unless it was written since."""
        count, last = self._file.documents.count_live(scope.vault)
        if self._file.documents.repeats(scope.vault):
            return
        if (
            scope.collection_keys is None
            and row.documents is not None
            and last <= row.updated_at
            and count != row.documents
        ):
            raise Tampered(_MISSING)


def _store(
    local: Local,
    scope: KeyScope,
    record: VaultRecord,
    rows: list[Document],
    heads: dict[str, Head],
    stored: dict[str, Document],
    traced: dict[str, Descent],
) -> Callable[[], incoming.StoredPage]:
    return lambda: incoming.store_page(local, scope, record, rows, heads, stored, traced)


def _vault_record(row: responses.Vault, cursor: int, start: int | None) -> VaultRecord:
    return VaultRecord(
        uid=row.uid,
        wire=row.name,
        version=row.version,
        clock=row.updated_at,
        epoch=row.epoch,
        cursor=cursor,
        start=start,
        data=row.data,
        salt=row.salt,
    )
