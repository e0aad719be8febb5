"""Sync: pull, resolve conflicts, push, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.format.encoding import short
from strongroom.client.format.keys import VaultKeys
from strongroom.client.format.parents import Descent, Link
from strongroom.client.net import effects, requests
from strongroom.client.operations import documents, keyrings, listing, rollback, vaults
from strongroom.client.operations.sessions_and_keys import token_vault
from strongroom.client.replica import incoming, outgoing, unlock, vault_keys
from strongroom.client.replica.after_restore import RestoreReconciliation, update_device
from strongroom.client.replica.conflicts import (
    BlobConflict,
    Conflict,
    Resolver,
    recreate_entry,
    undecided_blobs,
    undecided_conflicts,
)
from strongroom.client.replica.outgoing import PushResult
from strongroom.client.replica.refused import TEMPORARY, RefusedChange, refuse_deleted_vault, refused_changes
from strongroom.client.replica.store.records import RefusalRecord, VaultRecord
from strongroom.errors import DocumentNotFound, MethodNotAllowed, NotFound, UidTaken, Unauthorized, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.records import Head
    from strongroom.model import Document
    from strongroom.wire import responses

ROUNDS: Final = 20
_HIDDEN: Final = "Your directory has a vault that this device has seen, and the server says that there is none."
_UNSAID: Final = (
    "Your directory lacks a vault that this device has, and nobody who has the keys said that it was deleted."
)
_EPOCH: Final = "epoch"
_OLDER: Final = (
    "The server shows a vault as it was before this device saw it last. If the server's clock was far ahead for a "
    "while, and its database was not restored since, begin a new replica; what was not sent yet is in this one alone."
)
_MISSING: Final = "The server counts other documents in a vault than it shows."
_REVOKED: Final = "This token was revoked or has expired, or the account was deleted."
_VAULT_AWAY: Final = "The vault of this token was deleted, or the token does not reach it any more."
_WAITING: Final = "Changes that wait in this replica: {}. Another token for the same place sends them."
_STUCK: Final = "The server refuses a change as out of date, and shows nothing newer."


class Progress(Struct, frozen=True):
    """The progress of a sync. `total` is the server's count, if it gives one."""

    phase: str
    done: int
    total: int | None


class RenamedVault(Struct, frozen=True):
    """A vault that was made on this device under a name that another device has taken meanwhile, and its new name."""

    uid: str
    wanted: str
    name: str


class Report(Struct, kw_only=True):
    """What a sync did. `conflicts` wait to be decided; `refused` are all changes that the server does not accept.

    `newly_refused` counts those that were not refused before this sync, or for another reason. `gaps` are
    documents that were taken over although the server's history no longer shows what lies between, `keyring_gaps`
    keyrings of which the same is true; of these, all since the sync before are counted.
    """

    pulled: int = 0
    pushed: int = 0
    gaps: int = 0
    keyring_gaps: int = 0
    conflicts: list[Conflict] = msgspec.field(default_factory=list)
    blob_conflicts: list[BlobConflict] = msgspec.field(default_factory=list)
    refused: list[RefusedChange] = msgspec.field(default_factory=list)
    newly_refused: int = 0
    renamed_vaults: list[RenamedVault] = msgspec.field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the sync changed anything."""
        told = self.conflicts or self.blob_conflicts or self.newly_refused or self.renamed_vaults
        return bool(self.pulled or self.pushed or told)


class Sync:
    """One run of a sync."""

    def __init__(self, local: Local, resolver: Resolver | None, progress: Callable[[Progress], None] | None) -> None:
        self.local = local
        self.core: Core = local.core
        self.file = local.file
        self.report = Report()
        self._resolver = resolver
        self._progress = progress
        self._scopes: dict[str, KeyScope] = {}
        self._done = 0
        self._total: int | None = None
        self._deleted: set[str] = set()
        self._epoch = ""

    def run(self) -> Effects[Report]:
        """Run until no entry is left that can be sent."""
        self.file.require_writer()
        try:
            return (yield from self._run())
        except (Unauthorized, VaultNotFound) as refused:
            if self.core.token is None:
                raise
            waiting = self.file.outbox.length()
            sentence = _REVOKED if isinstance(refused, Unauthorized) else _VAULT_AWAY
            raise type(refused)(f"{sentence} {_WAITING.format(waiting)}" if waiting else sentence) from None

    def _run(self) -> Effects[Report]:
        refused_before = {(one.vault, one.uid, one.kind) for one in self.file.refusals.all()}
        self.file.refusals.offer_again(TEMPORARY)
        if not self.local.limit.asked:
            yield from self._ask_limits()
        stuck: set[str] = set()
        for _ in range(ROUNDS):
            yield from self._pull()
            self._resolve_conflicts()
            pushed = PushResult()
            for scope in self._scopes.values():
                yield from self._push_vault(scope, pushed)
            self.report.pushed += pushed.done
            if not pushed.stale:
                break
            if stuck == pushed.stale and not pushed.done:
                raise Tampered(_STUCK)
            stuck = pushed.stale
        update_device(self.local)
        self.report.keyring_gaps = self.core.keyring_gaps - self.local.keyring_gaps
        self.local.keyring_gaps = self.core.keyring_gaps
        self._remember_epoch()
        self.report.conflicts = undecided_conflicts(self.local, self._scopes)
        self.report.blob_conflicts = undecided_blobs(self.local, self._scopes)
        self.report.refused = refused_changes(self.local, unlock.places(self.local))
        self.report.newly_refused = sum(
            (one.vault, one.uid, one.reason.kind) not in refused_before for one in self.report.refused
        )
        return self.report

    def _ask_limits(self) -> Effects[None]:
        """Ask once for each opened replica which requests the server accepts."""
        try:
            health = yield from self.core.session.send(requests.server.health())
        except (NotFound, MethodNotAllowed):
            return
        self._epoch = self._epoch or health.epoch
        self.local.limit.learn(health.max_body_bytes)
        self.local.limit.asked = True
        self.file.refusals.offer_again((), self.local.limit.max_bytes)

    # Pulling

    def _pull(self) -> Effects[None]:
        rows = yield from self._vaults()
        changed = [row for row in rows.values() if self._is_new(row)]
        counts = [row.documents for row in changed]
        self._total = None if None in counts else sum(count or 0 for count in counts)
        for row in changed:
            yield from self._pull_vault(self._scopes[row.uid], row)
        self.local.timestamp = max((row.updated_at for row in rows.values()), default=0)

    def _vaults(self) -> Effects[dict[str, responses.Vault]]:
        """Get the current rows of all vaults of this replica."""
        token = self.core.token
        if token is not None:
            scope = documents.key_scope(token.keys)
            row = yield from self.core.session.send(requests.vaults.get(token.vault))
            if row.uid != token.vault:
                raise Tampered
            if isinstance(token.keys, VaultKeys):
                token_vault(token, token.keys, row.name)
            self._scopes = {token.vault: scope}
            return {row.uid: row}
        try:
            opened = yield from vaults.list_with_rows(self.core)
        except RolledBack:
            if not (yield from self._is_restored()):
                raise
            yield from keyrings.restore(self.core)
            opened = yield from vaults.list_with_rows(self.core)
        if (yield from self._make_vaults()):
            opened = yield from vaults.list_with_rows(self.core)
        yield from unlock.update_keys(self.core, self.file)
        self._scopes = {vault.uid: documents.key_scope(vault.keys) for vault, _ in opened}
        found = {}
        for vault, row in opened:
            found[row.uid] = row
            record = self.file.vaults.get(row.uid)
            if row.name not in vault.wires and (record is None or record.epoch == row.epoch):
                seen = None if record is None else Link(record.version, record.data or "")
                found[row.uid] = yield from vaults.update_wire(self.core, vault, seen)  # an interrupted rename
        yield from self._check_missing(found)
        return found

    def _make_vaults(self) -> Effects[bool]:
        """Make the vaults on the server that were made on this device; whether there were any."""
        new = vault_keys.created(self.file, self.core.keyring())
        for entry in new:
            try:
                made = yield from vaults.add_vault(self.core, entry)
            except outgoing.REFUSED as refused:
                for queued in self.file.outbox.entries(entry.uid):
                    record = RefusalRecord(vault=entry.uid, uid=queued.uid, kind=refused.code)
                    self.file.refusals.put(record)
                continue
            for uid in self.file.refusals.held_back(entry.uid):
                self.file.refusals.drop(entry.uid, uid)
            if made is None:
                refuse_deleted_vault(self.local, entry.uid)
            elif made.name != entry.name:
                self.report.renamed_vaults.append(RenamedVault(made.uid, entry.name, made.name))
        return bool(new)

    def _check_missing(self, found: dict[str, responses.Vault]) -> Effects[None]:
        """Vaults that are not there: deleted by a key holder, lost in a restore, or hidden."""
        ring = self.core.keyring()
        record = {vault.uid for vault in self.file.vaults.all()}
        for uid in (record | self.file.outbox.vaults()) - found.keys():
            if ring.is_gone(uid):
                refuse_deleted_vault(self.local, uid)
            elif uid in record and ring.entry(uid) is None:
                raise RolledBack(_UNSAID)
        for entry in ring.vaults:
            if entry.uid in found or not (entry.made or entry.uid in record):
                continue
            if not (yield from self._is_restored()):
                raise RolledBack(_HIDDEN)
            vault, row = yield from vaults.recreate_vault(self.core, entry)
            self._scopes[entry.uid] = documents.key_scope(vault.keys)
            found[entry.uid] = row

    def _is_restored(self) -> Effects[bool]:
        """Whether the server reports a new epoch."""
        self._epoch = (yield from self.core.session.send(requests.server.health())).epoch
        known = {record.epoch for record in self.file.vaults.all()} or {self.file.fact(_EPOCH) or ""}
        return bool(self._epoch) and bool(known - {"", self._epoch})

    def _remember_epoch(self) -> None:
        """Remember the epoch: a replica without vaults has no other record of it."""
        epochs = {record.epoch for record in self.file.vaults.all()} or {self._epoch}
        if len(epochs) == 1 and epochs not in ({""}, {self.file.fact(_EPOCH)}):
            self.file.set_fact(_EPOCH, epochs.pop())

    def _is_new(self, row: responses.Vault) -> bool:
        """Whether a vault has changes to pull; raises RolledBack if it has gone back."""
        record = self.file.vaults.get(row.uid)
        if record is None or row.epoch != record.epoch:
            return True
        if row.updated_at < record.clock or row.version < record.version:
            raise RolledBack(_OLDER)
        return record.start is not None or row.updated_at > record.cursor

    def _pull_vault(self, scope: KeyScope, row: responses.Vault) -> Effects[None]:
        was = self.file.vaults.get(scope.vault)
        try:
            yield from self._pull_changes(scope, row, was)
        except (Tampered, RolledBack, Locked):
            self._reset_vault(scope.vault, was)
            raise

    def _reset_vault(self, uid: str, was: VaultRecord | None) -> None:
        """Reset the cursor of a vault, so that the next sync pulls again what a hostile server left out."""
        if was is None:
            self.file.vaults.drop(uid)
        else:
            self.file.vaults.put(was)

    def _pull_changes(self, scope: KeyScope, row: responses.Vault, record: VaultRecord | None) -> Effects[None]:
        row = yield from self._reconcile_blob(scope, record, row)
        if record is not None and record.epoch != row.epoch:
            came = yield from RestoreReconciliation(self.local, scope, _vault_record(row, 0, None)).run()
            self._report_progress("pull", came)
            return
        since = 0 if record is None else record.cursor
        record = _vault_record(row, since, row.updated_at if record is None else record.start)
        history = incoming.History()
        if record.start is not None:
            record = yield from self._pages(scope, record, history, since, deleted=False, expected={})
            record = msgspec.structs.replace(record, cursor=record.start, start=None)
            expected: dict[str, int] = {}
        else:
            expected = self.file.documents.changed_after(scope.vault, record.cursor)
        record = yield from self._pages(scope, record, history, since, deleted=True, expected=expected)
        self.file.vaults.put(msgspec.structs.replace(record, cursor=max(record.cursor, row.updated_at)))
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
        page = yield from self.core.session.send(incoming.list_call(scope, record.cursor, limit, deleted=deleted))
        while True:
            cursor = listing.check_page(page, scope, record.cursor, limit, deleted=deleted)
            for found in page.documents if expected else ():
                if scope.holds(found.collection):
                    expected.pop(found.uid, None)
            if expected and not page.has_more:
                raise RolledBack(documents.WITHHELD)
            record = msgspec.structs.replace(record, cursor=cursor)
            rows = yield from self._without_repeats(scope, page.documents)
            heads = self.file.documents.heads(scope.vault, [row.uid for row in rows])
            traced = yield from incoming.descents(self.core, self.file, scope, rows, heads, since, history)
            stored = yield from incoming.stored_before(self.core, self.file, scope, rows)
            # As long as something is still expected, the next sync begins where this one did.
            kept = msgspec.structs.replace(record, cursor=start) if expected else record
            store = _store(self.local, scope, kept, rows, heads, stored, traced)
            limit = listing.next_limit(page, limit)
            if not page.has_more:
                stored_page = yield from effects.compute(store)
                self._report_progress("pull", stored_page.new, stored_page.gaps)
                return record
            call = incoming.list_call(scope, cursor, limit, deleted=deleted)
            page, stored_page = yield from self.core.session.send_and_compute(call, store)
            self._report_progress("pull", stored_page.new, stored_page.gaps)

    def _without_repeats(self, scope: KeyScope, rows: list[Document]) -> Effects[list[Document]]:
        """The rows of this place; those that are to be sent again after a restore are met as after a restore."""
        if scope.collection_keys is not None:
            rows = [row for row in rows if scope.holds(row.collection)]
        repeats = self.file.documents.repeats(scope.vault)
        record = self.file.vaults.get(scope.vault)
        if not repeats or record is None:
            return rows
        yield from RestoreReconciliation(self.local, scope, record).compare_rows(
            [row for row in rows if row.uid in repeats]
        )
        return [row for row in rows if row.uid not in repeats]

    def _reconcile_blob(
        self, scope: KeyScope, record: VaultRecord | None, row: responses.Vault
    ) -> Effects[responses.Vault]:
        """Compare a vault's blob with the one that is here; what a restored server has forgotten is sent again."""
        if scope.vault_keys is None:
            return row
        if row.data is not None:
            seal.open_blob(scope.vault_keys, row)
        if record is not None and record.epoch == row.epoch:
            rollback.check_blob(record.version, record.data, row.version, row.data)
        if record is None or record.data is None or (record.version, record.data) == (row.version, row.data):
            return row
        if record.epoch == row.epoch:
            seen = Link(record.version, record.data)
            self.report.gaps += yield from vaults.require_blob_descent(self.core, row, seen)
            return row
        aside = self.file.vaults.blob_aside(row.uid)
        if aside is not None and aside.data == row.data:  # the server has it again
            self.file.vaults.drop_blob_aside(row.uid)
            return row
        if row.version > record.version and row.data is not None:
            descent = yield from vaults.blob_descent(self.core, row, Link(record.version, record.data))
            if descent is not Descent.FORKED:
                return row
        if row.version >= record.version or (row.data is not None and not self._is_past_blob(record, row.data)):
            self.file.vaults.put_blob_aside(record)
            return row
        sealed = seal.SealedBlob(record.data, record.salt or "")
        call = requests.vaults.put(row.uid, record.wire, sealed, row.version, record.version)
        try:
            again = yield from self.core.session.send(call)
        except outgoing.REFUSED:
            self.file.vaults.put_blob_aside(record)
            return row
        if (again.version, again.data, again.salt, again.name) != (
            record.version,
            record.data,
            record.salt,
            record.wire,
        ):
            raise Tampered("The server did not keep what it was given for a vault.")
        return again

    def _is_past_blob(self, record: VaultRecord, data: str) -> bool:
        """Whether the blob that is here was made knowing of this one."""
        return seal.blob_parent(record.data or "") == short(data) or self.file.vaults.had_blob(record.uid, data)

    def _count(self, scope: KeyScope, row: responses.Vault) -> None:
        """Compare the number of local documents with the server's count, unless it was written since."""
        count, last = self.file.documents.count_live(scope.vault)
        if self.file.documents.repeats(scope.vault):
            return
        if (
            scope.collection_keys is None
            and row.documents is not None
            and last <= row.updated_at
            and count != row.documents
        ):
            raise Tampered(_MISSING)

    def _report_progress(self, phase: str, new: int, gaps: int = 0) -> None:
        self._done += new
        self.report.gaps += gaps
        if phase == "pull":
            self.report.pulled += new
        if self._progress is not None:
            self._progress(Progress(phase, self._done, self._total))

    # Deciding and pushing

    def _resolve_conflicts(self) -> None:
        if self._resolver is not None:
            for conflict in undecided_conflicts(self.local, self._scopes):
                if not conflict.needs_manual_resolution:
                    conflict.resolve(self._resolver)

    def _repeat(self, scope: KeyScope) -> Effects[None]:
        """Send again what a restored server has forgotten; where somebody was quicker, look at what is there now."""
        for uid in (yield from outgoing.repeat(self.core, self.local, scope)):
            row = yield from self.core.session.send(requests.documents.get(scope.vault, uid))
            record = self.file.vaults.get(scope.vault)
            if row.uid != uid or record is None:
                raise Tampered(documents.WRONG_DOCUMENT)
            yield from RestoreReconciliation(self.local, scope, record).compare_rows([row])

    def _push_vault(self, scope: KeyScope, pushed: PushResult) -> Effects[None]:
        try:
            yield from self._repeat(scope)
            yield from self._push(scope, pushed)
        except VaultNotFound:
            if self.core.token is not None or scope.vault in self._deleted:
                raise
            self._deleted.add(scope.vault)  # since the pull: the next one shows what a key holder says about that
            pushed.stale.add(scope.vault)

    def _push(self, scope: KeyScope, pushed: PushResult) -> Effects[None]:
        self._done, self._total = 0, self.file.outbox.length()
        after = 0
        while batch := outgoing.next_batch(self.local, scope, after):
            after = batch[-1].entry.seq
            before = pushed.done
            yield from outgoing.push(self.core, self.local, scope, batch, pushed)
            self._report_progress("push", pushed.done - before)
        for uid in pushed.missing:
            yield from self._recreate_missing(scope, uid)
        for uid in pushed.taken:
            yield from self._refuse_taken(scope, uid)

    def _refuse_taken(self, scope: KeyScope, uid: str) -> Effects[None]:
        """Record that a new document has the uid of one in another vault, or out of reach: no pull brings that."""
        if self.file.outbox.get(scope.vault, uid) is None:
            return
        try:
            yield from self.core.session.send(requests.documents.get(scope.vault, uid))
        except DocumentNotFound:
            with self.file.transaction():
                self.file.refusals.put(RefusalRecord(vault=scope.vault, uid=uid, kind=UidTaken.code))
                self.file.outbox.forget_sent(scope.vault, uid)

    def _recreate_missing(self, scope: KeyScope, uid: str) -> Effects[None]:
        """Turn a change whose base was purged from the server's trash into a new document."""
        entry = self.file.outbox.get(scope.vault, uid)
        if entry is None:
            return
        try:
            row = yield from self.core.session.send(requests.documents.get(scope.vault, uid))
        except DocumentNotFound:
            raise RolledBack from None
        made = seal.verify_document(scope.key(row.collection), row)
        if row.uid != uid:
            raise Tampered(documents.WRONG_DOCUMENT)
        incoming.is_new(self.file.documents.heads(scope.vault, [uid]).get(uid), row)
        if not made.purged or row.version != entry.base:
            return  # a deletion that is not known here yet: it is pulled, and met as any other
        with self.file.transaction():
            self.file.documents.put([(row, True)])
            recreate_entry(self.local, scope, entry)


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
