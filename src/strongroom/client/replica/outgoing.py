"""Pushing the outbox, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from strongroom import model
from strongroom.client.errors import Tampered
from strongroom.client.format import seal
from strongroom.client.format.encoding import NO_PARENT, short
from strongroom.client.format.seal import Sealed
from strongroom.client.net import requests
from strongroom.client.operations import documents
from strongroom.client.replica import incoming
from strongroom.client.replica.store.records import DELETE, DELETE_ONLY, PUT, Entry, RefusalRecord
from strongroom.errors import (
    BatchConflict,
    DocumentNotFound,
    ImportUnfinished,
    InsufficientScope,
    Invalid,
    KeyringConflict,
    PayloadTooLarge,
    QuotaExceeded,
    Refusal,
    RequestTimeout,
    StorageFull,
    UidTaken,
)

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.records import Head

MOST_OPERATIONS: Final = 500
MOST_BYTES: Final = 2 << 20
REPEATS: Final = 50  # documents that are sent again in one batch
_EVERYTHING: Final = (ImportUnfinished, StorageFull)  # refusals of every change, whatever it is
REFUSED: Final = (PayloadTooLarge, InsufficientScope, QuotaExceeded, Invalid, *_EVERYTHING)  # others end the sync
_FEWER: Final = "The server did not answer every operation of a batch."


Needs: TypeAlias = tuple[str, str, tuple[str, ...]]  # what a token must allow: a vault, a collection, operations


class EntryOperations(Struct, frozen=True):
    """An outbox entry and its batch operations. `last` is the final content.

    `unsent`: nothing of the document was on its way before. `repeated`: no entry, but a document that a restored server
    has forgotten.
    """

    entry: Entry
    operations: list[dict[str, Any]]
    versions: list[int]
    last: Sealed
    size: int
    unsent: bool = False
    repeated: bool = False

    @property
    def needs(self) -> Needs:
        """What a token must allow for this."""
        operations = tuple(operation["op"] for operation in self.operations)
        return self.entry.vault, self.entry.collection, operations

    @property
    def added(self) -> tuple[int, int]:
        """How many documents and bytes the account has more afterwards; a deletion adds nothing."""
        before, size = self.entry.before, len(self.last.data) + len(self.last.hmac)
        if self.entry.kind != PUT:
            return 0, 0
        if before is None or before.deleted_at is not None:
            return 1, size
        return 0, size - len(before.data) - len(before.hmac or "")


class PushResult(Struct):
    """The result of a push. `stale`: uids that the server refused as out of date or missing.

    `in_doubt`: uids of what may have been stored by a request without a response.
    """

    done: int = 0
    stale: set[str] = msgspec.field(default_factory=set)
    missing: set[str] = msgspec.field(default_factory=set)
    taken: set[str] = msgspec.field(default_factory=set)
    in_doubt: set[str] = msgspec.field(default_factory=set)
    not_allowed: set[Needs] = msgspec.field(default_factory=set)
    over_quota: set[tuple[int, int]] = msgspec.field(default_factory=set)

    def refuse(self, local: Local, prepared: EntryOperations, refused: Refusal) -> None:
        """Record that the server refuses a change, unless it was changed here meanwhile."""
        entry, file = prepared.entry, local.file
        if isinstance(refused, InsufficientScope):
            self.not_allowed.add(prepared.needs)
        if isinstance(refused, QuotaExceeded):
            self.over_quota.add(prepared.added)
        record = RefusalRecord(vault=entry.vault, uid=entry.uid, kind=refused.code)
        if isinstance(refused, PayloadTooLarge):
            size = requests.batches.size(prepared.operations)
            local.limit.learn((refused.details or {}).get("limit"))
            limit = local.limit.max_bytes
            limit = limit if limit is not None and limit < size else None
            record = msgspec.structs.replace(record, size=size, max_bytes=limit)
        with file.transaction():
            now = file.outbox.get(entry.vault, entry.uid)
            if not prepared.repeated and (now is None or now.hmac != entry.hmac):
                return
            file.refusals.put(record)
            if prepared.unsent and entry.uid not in self.in_doubt:  # never stored, so that a deletion of it is nothing
                file.outbox.forget_sent(entry.vault, entry.uid)

    def like_before(self, prepared: EntryOperations) -> Refusal | None:
        """The refusal that this entry is certain to get, by those before it."""
        if prepared.needs in self.not_allowed:
            return InsufficientScope()
        documents_, size = prepared.added
        if any(documents_ >= least and size >= bytes_ for least, bytes_ in self.over_quota):
            return QuotaExceeded()
        return None


def next_batch(local: Local, scope: KeyScope, after: int) -> list[EntryOperations]:
    """The next batch of entries, sealed for their new versions and recorded as sent."""
    made: list[EntryOperations] = []
    operations = size = 0
    most = min(MOST_BYTES, local.limit.max_bytes or MOST_BYTES)
    with local.file.transaction():
        ready = local.file.outbox.ready(scope.vault, after, MOST_OPERATIONS)
        heads = local.file.documents.heads(scope.vault, [entry.uid for entry in ready])
        sent = local.file.outbox.sent_uids(scope.vault)
        marks = local.file.marks.of(scope.vault)
        for queued in ready:
            mark = marks.get(queued.uid)  # what is sent lies above all that was seen
            floor = queued.floor if mark is None else max(queued.floor, mark.version)
            entry = msgspec.structs.replace(queued, floor=floor)
            prepared = _entry_operations(scope, entry, _parent(heads.get(entry.uid)))
            operations += len(prepared.operations)
            size += prepared.size
            if made and (operations > MOST_OPERATIONS or size > most):
                break
            made.append(prepared if entry.uid in sent else msgspec.structs.replace(prepared, unsent=True))
            local.file.outbox.put(prepared.entry, resealed=True)
            proofs = (operation["hmac"] for operation in prepared.operations if "hmac" in operation)
            local.file.outbox.record_sent((entry.vault, entry.uid, proof) for proof in proofs)
    return made


def _parent(head: Head | None) -> bytes:
    return NO_PARENT if head is None else short(head[1] or "")


def _entry_operations(scope: KeyScope, entry: Entry, parent: bytes) -> EntryOperations:
    if entry.kind == DELETE_ONLY:
        operation = requests.batches.delete_operation(entry.uid, entry.base)
        return EntryOperations(entry, [operation], [entry.base + 1], Sealed(entry.data, entry.hmac), 100)
    version = max(entry.base, entry.floor) + 1  # above all that this device has seen, also where a restore took some
    sealed = _sealed(scope, entry, version, parent)
    if entry.base == 0:
        operations = [requests.batches.create_operation(entry.uid, entry.collection, sealed, version)]
    else:
        operations = [requests.batches.put_operation(entry.uid, sealed, entry.base, version)]
    versions = [version]
    if entry.kind == DELETE:
        operations.append(requests.batches.delete_operation(entry.uid, version))
        versions.append(version + 1)
    entry = msgspec.structs.replace(entry, data=sealed.data, hmac=sealed.hmac, version=version)
    return EntryOperations(entry, operations, versions, sealed, len(operations) * (len(sealed.data) + 300))


def _sealed(scope: KeyScope, entry: Entry, version: int, parent: bytes) -> Sealed:
    """The content of an entry, sealed for this version and parent, under the newest key."""
    keys = scope.key(entry.collection)
    proof = seal.read_proof(entry.hmac)
    if (entry.version, proof.parent, proof.generation) == (version, parent, keys.newest.generation):
        return Sealed(entry.data, entry.hmac)
    row = model.Document(entry.uid, entry.vault, entry.collection, entry.data, entry.hmac, entry.version, 0, 0, None)
    content = seal.open_past_document(keys, row).content
    kind = seal.DELETION if entry.kind == DELETE else seal.DOCUMENT
    return seal.seal_content(keys, kind, entry.uid, version, content, parent=parent, wire=entry.collection)


def repeat(core: Core, local: Local, scope: KeyScope) -> Effects[set[str]]:
    """Send again, identical, what a restored server has forgotten; the uids that it has something else for by now."""
    pushed = PushResult()
    while repeats := [
        (uid, base)
        for uid, base in local.file.documents.repeats(scope.vault).items()
        if uid not in pushed.stale and uid not in local.file.refusals.held_back(scope.vault)
    ]:
        batch = [_repeated(local, scope, uid, base) for uid, base in repeats[:REPEATS]]
        yield from push(core, local, scope, batch, pushed)
    return pushed.stale


def _repeated(local: Local, scope: KeyScope, uid: str, base: int) -> EntryOperations:
    row = local.file.documents.get(scope.vault, uid)
    if row is None:
        raise DocumentNotFound
    gone = row.deleted_at is not None
    version = row.version - gone
    sealed = Sealed(row.data, row.hmac or "")
    if not row.data:  # the content was thrown away; the proof of a deletion stands without it
        sealed = seal.reseal_notice(scope.key(row.collection), row)
    if base == 0:
        operations = [requests.batches.create_operation(uid, row.collection, sealed, version)]
    else:
        operations = [requests.batches.put_operation(uid, sealed, base, version)]
    versions = [version]
    kind = PUT
    if gone:
        kind = DELETE
        operations.append(requests.batches.delete_operation(uid, version))
        versions.append(version + 1)
    entry = Entry(
        vault=scope.vault,
        uid=uid,
        collection=row.collection,
        kind=kind,
        data=sealed.data,
        hmac=sealed.hmac,
        version=version,
        base=base,
    )
    return EntryOperations(entry, operations, versions, sealed, len(sealed.data), repeated=True)


def push(core: Core, local: Local, scope: KeyScope, batch: list[EntryOperations], pushed: PushResult) -> Effects[None]:
    """Send one batch. Where the server refuses it, in parts: what it refuses in the end holds up nothing else."""
    batch = _without_refused(local, batch, pushed)
    if not batch:
        return
    operations = [operation for prepared in batch for operation in prepared.operations]
    call = requests.batches.run(scope.vault, operations, scope.keyring)
    found, in_doubt = yield from core.session.send_in_doubt(call)
    if in_doubt:
        pushed.in_doubt.update(prepared.entry.uid for prepared in batch)
    if isinstance(found, KeyringConflict) and not in_doubt:
        for prepared in batch:
            if prepared.unsent:  # nothing of it is on its way: it can be rebased on a row that a rotation sealed anew
                local.file.outbox.forget_sent(prepared.entry.vault, prepared.entry.uid)
    if isinstance(found, BatchConflict):
        _record_conflicts(batch, found, pushed)
    elif isinstance(found, Refusal):
        yield from _push_parts(core, local, scope, batch, pushed, found)
    elif len(found.results) != len(operations):
        raise Tampered(_FEWER)
    else:
        _confirm_all(local, scope, batch, found.results, pushed)


def _push_parts(
    core: Core, local: Local, scope: KeyScope, batch: list[EntryOperations], pushed: PushResult, refused: Refusal
) -> Effects[None]:
    """Send a refused batch in parts, or record that it is refused."""
    if not isinstance(refused, (*REFUSED, RequestTimeout)):
        raise refused
    if len(batch) > 1 and not isinstance(refused, _EVERYTHING):
        for part in _parts(batch, refused):
            yield from push(core, local, scope, part, pushed)
        return
    if isinstance(refused, RequestTimeout):
        raise refused
    if isinstance(refused, PayloadTooLarge):
        smaller = _without_content(local, scope, batch[0])
        if smaller is not None:
            yield from push(core, local, scope, [smaller], pushed)
            return
    for prepared in batch:
        pushed.refuse(local, prepared, refused)


def _parts(batch: list[EntryOperations], refused: Refusal) -> list[list[EntryOperations]]:
    """Smaller batches, so that one change that is refused does not hold up the others."""
    if isinstance(refused, InsufficientScope):
        groups: dict[Needs, list[EntryOperations]] = {}
        for prepared in batch:
            groups.setdefault(prepared.needs, []).append(prepared)
        return list(groups.values()) if len(groups) > 1 else [batch[:1], batch[1:]]
    if isinstance(refused, QuotaExceeded):  # what frees room first
        adding = [prepared for prepared in batch if max(prepared.added) > 0]
        if len(adding) < len(batch):
            return [[prepared for prepared in batch if max(prepared.added) <= 0], adding]
    half = len(batch) // 2
    return [batch[:half], batch[half:]]


def _without_refused(local: Local, batch: list[EntryOperations], pushed: PushResult) -> list[EntryOperations]:
    """The entries that are not certain to be refused like another one before them."""
    left = []
    for prepared in batch:
        refused = pushed.like_before(prepared)
        if refused is None:
            left.append(prepared)
        else:
            pushed.refuse(local, prepared, refused)
    return left


def _without_content(local: Local, scope: KeyScope, prepared: EntryOperations) -> EntryOperations | None:
    """A deletion without the content that was deleted; None where that makes it no smaller."""
    entry = prepared.entry
    if entry.kind != DELETE or prepared.repeated:
        return None
    proof = seal.read_proof(entry.hmac)
    keys = scope.key(entry.collection)
    sealed = seal.seal_deletion(keys, entry.uid, entry.version, parent=proof.parent, wire=entry.collection)
    if len(sealed.data) >= len(entry.data):
        return None
    smaller = msgspec.structs.replace(entry, data=sealed.data, hmac=sealed.hmac)
    with local.file.transaction():
        if local.file.outbox.get(entry.vault, entry.uid) != entry:
            return None
        local.file.outbox.put(smaller, resealed=True)
        local.file.outbox.record_sent([(entry.vault, entry.uid, sealed.hmac)])
    operations = [
        {**operation, "data": sealed.data, "hmac": sealed.hmac} if "data" in operation else operation
        for operation in prepared.operations
    ]
    return msgspec.structs.replace(prepared, entry=smaller, operations=operations, last=sealed)


def _record_conflicts(batch: list[EntryOperations], refused: BatchConflict, pushed: PushResult) -> None:
    """Record which entries made the server refuse the batch. The others are sent in the next round."""
    uids = {prepared.entry.uid for prepared in batch}
    named = (refused.details or {}).get("operations")
    for operation in named if isinstance(named, list) else []:
        uid = operation.get("uid") if isinstance(operation, dict) else None
        if uid in uids:
            pushed.stale.add(uid)
            if operation.get("code") == DocumentNotFound.code:
                pushed.missing.add(uid)
            if operation.get("code") == UidTaken.code:
                pushed.taken.add(uid)
    if not pushed.stale & uids:
        raise Tampered("The server refused a batch and does not say why.")


def _confirm_all(
    local: Local, scope: KeyScope, batch: list[EntryOperations], results: list[model.Document], pushed: PushResult
) -> None:
    start = 0
    with local.file.transaction():
        for prepared in batch:
            end = start + len(prepared.operations)
            if prepared.repeated:
                _confirm_repeat(local, prepared, results[start:end])
            else:
                _confirm(local, scope, prepared, results[start:end])
            pushed.done += 1
            start = end


def _confirm_repeat(local: Local, prepared: EntryOperations, results: list[model.Document]) -> None:
    """The server has a document again that it had forgotten."""
    row = _checked(prepared, results)
    mine = local.file.documents.is_mine(row.vault_uid, row.uid)
    local.file.documents.put([(row, prepared.entry.kind == DELETE)], mine=mine)
    local.file.vaults.advance_clock(row.vault_uid, row.updated_at)
    local.file.documents.drop_repeat(row.vault_uid, row.uid)


def _checked(prepared: EntryOperations, results: list[model.Document]) -> model.Document:
    """The row that an entry became, if the server says exactly what was sent."""
    entry, row = prepared.entry, results[-1]
    for found, operation, version in zip(results, prepared.operations, prepared.versions, strict=True):
        is_delete = operation["op"] == "delete"
        row = documents.with_ciphertext(found, prepared.last) if is_delete else found
        documents.check_stored(row, prepared.last, entry.vault, entry.collection, entry.uid, version, deleted=is_delete)
    return row


def _confirm(local: Local, scope: KeyScope, prepared: EntryOperations, results: list[model.Document]) -> None:
    """The server has stored an entry: it leaves the outbox, unless it was changed again meanwhile."""
    entry = prepared.entry
    row = _checked(prepared, results)
    seal.verify_document(scope.key(row.collection), row)
    incoming.is_new(local.file.documents.heads(entry.vault, [row.uid]).get(row.uid), row)
    local.file.documents.put([(row, entry.kind in {DELETE, DELETE_ONLY})], mine=True)
    local.file.vaults.advance_clock(entry.vault, row.updated_at)
    now = local.file.outbox.get(entry.vault, entry.uid)
    if now is None or now.hmac == entry.hmac:
        local.file.outbox.drop(entry.vault, entry.uid)
    else:
        local.file.outbox.put(msgspec.structs.replace(now, base=row.version, before=row, floor=0))
