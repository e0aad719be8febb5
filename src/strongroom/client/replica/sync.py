"""Sync: pull, resolve conflicts, push, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.format.keys import VaultKeys
from strongroom.client.format.parents import Link
from strongroom.client.net import requests
from strongroom.client.operations import documents, keyrings, vaults
from strongroom.client.operations.sessions_and_keys import token_vault
from strongroom.client.replica import incoming, outgoing, unlock, vault_keys
from strongroom.client.replica.after_restore import RestoreReconciliation, update_device
from strongroom.client.replica.conflicts import (
    Resolver,
    checked_resolver,
    recreate_entry,
    undecided_blobs,
    undecided_conflicts,
)
from strongroom.client.replica.outgoing import PushResult
from strongroom.client.replica.pull import Pull
from strongroom.client.replica.refused import TEMPORARY, refuse_deleted_vault, refused_changes
from strongroom.client.replica.report import Progress, Report, RunningReport
from strongroom.client.replica.store.records import RefusalRecord, RenamedVault
from strongroom.errors import (
    DocumentNotFound,
    KeyringConflict,
    MethodNotAllowed,
    NotFound,
    UidTaken,
    Unauthorized,
    VaultNotFound,
)

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.wire import responses

ROUNDS: Final = 20
_HIDDEN: Final = "Your directory has a vault that this device has seen, and the server says that there is none."
_UNSAID: Final = (
    "Your directory lacks a vault that this device has, and nobody who has the keys said that it was deleted."
)
_EPOCH: Final = "epoch"
_REVOKED: Final = "This token was revoked or has expired, or the account was deleted."
_VAULT_AWAY: Final = "The vault of this token was deleted, or the token does not reach it any more."
_WAITING: Final = "Changes that wait in this replica: {}. Another token for the same place sends them."
_STUCK: Final = "The server refuses a change as out of date, and shows nothing newer."


class Sync:
    """One run of a sync."""

    def __init__(self, local: Local, resolver: Resolver | None, progress: Callable[[Progress], None] | None) -> None:
        self.local = local
        self.core: Core = local.core
        self.file = local.file
        self._running = RunningReport(progress)
        self.report = self._running.report
        self._resolver = None if resolver is None else checked_resolver(resolver)
        self._pulling = Pull(local, self._running)
        self._scopes: dict[str, KeyScope] = {}
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
        self.local.forget_told()
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
        if self.core.token is None:
            self.report.renamed_vaults = vault_keys.renamed(self.file, self.core.keyring())
        self.report.conflicts = undecided_conflicts(self.local, self._scopes)
        self.report.blob_conflicts = undecided_blobs(self.local, self._scopes)
        self.report.refused = refused_changes(self.local, unlock.places(self.local))
        self.report.newly_refused = sum(
            (one.vault, one.uid, one.reason.kind) not in refused_before for one in self.report.refused
        )
        self.local.reported = True
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
        changed = [row for row in rows.values() if self._pulling.is_new(row)]
        counts = [row.documents for row in changed]
        self._running.begin(None if None in counts else sum(count or 0 for count in counts))
        for row in changed:
            yield from self._pulling.run(self._scopes[row.uid], row)
        for scope in self._scopes.values():
            yield from self._pulling.require_floor(scope)
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
            keyrings.require_one(self.core)
            opened = yield from vaults.list_with_rows(self.core)
        except (RolledBack, Tampered):
            if not (yield from self._is_restored()):
                raise
            yield from keyrings.restore(self.core)
            opened = yield from vaults.list_with_rows(self.core)
        if (yield from self._make_vaults()):
            opened = yield from vaults.list_with_rows(self.core)
        unlock.store_keys(self.core, self.file)
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
                renamed = RenamedVault(made.uid, entry.name, made.name)
                vault_keys.add_renamed(self.file, self.core.keyring(), renamed)
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
        except KeyringConflict:  # since the pull: the next one takes the newer keyring, and seals anew by that
            pushed.stale.add(scope.vault)
        except VaultNotFound:
            if self.core.token is not None or scope.vault in self._deleted:
                raise
            self._deleted.add(scope.vault)  # since the pull: the next one shows what a key holder says about that
            pushed.stale.add(scope.vault)

    def _push(self, scope: KeyScope, pushed: PushResult) -> Effects[None]:
        self._running.begin(self.file.outbox.length())
        after = 0
        while batch := outgoing.next_batch(self.local, scope, after):
            after = batch[-1].entry.seq
            before = pushed.done
            yield from outgoing.push(self.core, self.local, scope, batch, pushed)
            self._running.add("push", pushed.done - before)
        for uid in pushed.missing:
            yield from self._recreate_missing(scope, uid)
        for uid in pushed.taken:
            yield from self._refuse_taken(scope, uid)

    def _refuse_taken(self, scope: KeyScope, uid: str) -> Effects[None]:
        """Record that a new document has the uid of one in another vault or collection, or out of reach."""
        entry = self.file.outbox.get(scope.vault, uid)
        if entry is None:
            return
        try:
            row = yield from self.core.session.send(requests.documents.get(scope.vault, uid))
            if row.collection == entry.collection:
                return  # the next pull brings it
        except DocumentNotFound:
            pass
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
