"""Pushing the outbox, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
from strongroom.client.replica.file import DELETE, DELETE_ONLY, PUT, Entry
from strongroom.errors import BatchConflict, DocumentNotFound, PayloadTooLarge, Refusal

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local

MOST_OPERATIONS: Final = 500
MOST_BYTES: Final = 2 << 20
REPEATS: Final = 50  # documents that are sent again in one batch
_FEWER: Final = "The server did not answer every operation of a batch."


class EntryOperations(Struct, frozen=True):
    """An outbox entry and its batch operations. `last` is the final content."""

    entry: Entry
    operations: list[dict[str, Any]]
    versions: list[int]
    last: Sealed
    size: int


class PushResult(Struct):
    """The result of a push. `stale`: uids that the server refused as out of date or missing."""

    done: int = 0
    stale: set[str] = msgspec.field(default_factory=set)
    missing: set[str] = msgspec.field(default_factory=set)
    refused: list[tuple[Entry, Refusal]] = msgspec.field(default_factory=list)


def next_batch(local: Local, scope: KeyScope, after: int) -> list[EntryOperations]:
    """The next batch of entries, sealed for their new versions and recorded as sent."""
    made: list[EntryOperations] = []
    operations = size = 0
    with local.file.transaction():
        ready = local.file.ready(scope.vault, after, MOST_OPERATIONS)
        heads = local.file.heads(scope.vault, [entry.uid for entry in ready])
        for entry in ready:
            prepared = _entry_operations(scope, entry, _parent(heads.get(entry.uid)))
            operations += len(prepared.operations)
            size += prepared.size
            if made and (operations > MOST_OPERATIONS or size > MOST_BYTES):
                break
            made.append(prepared)
            local.file.put_entry(prepared.entry)
            proofs = (operation["hmac"] for operation in prepared.operations if "hmac" in operation)
            local.file.record_sent((entry.vault, entry.uid, proof) for proof in proofs)
    return made


def _parent(head: tuple[int, str | None, int, int] | None) -> bytes:
    return NO_PARENT if head is None else short(head[1] or "")


def _entry_operations(scope: KeyScope, entry: Entry, parent: bytes) -> EntryOperations:
    if entry.kind == DELETE_ONLY:
        operation = requests.delete_operation(entry.uid, entry.base)
        return EntryOperations(entry, [operation], [entry.base + 1], Sealed(entry.data, entry.hmac), 100)
    version = max(entry.base, entry.floor) + 1  # above all that this device has seen, also where a restore took some
    sealed = _sealed(scope, entry, version, parent)
    if entry.base == 0:
        operations = [requests.create_operation(entry.uid, entry.collection, sealed, version)]
    else:
        operations = [requests.put_operation(entry.uid, sealed, entry.base, version)]
    versions = [version]
    if entry.kind == DELETE:
        operations.append(requests.delete_operation(entry.uid, version))
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
    content = seal.open_document(keys, row).content
    kind = seal.DELETION if entry.kind == DELETE else seal.DOCUMENT
    return seal.seal_content(keys, kind, entry.uid, version, content, parent=parent, wire=entry.collection)


def repeat(core: Core, local: Local, scope: KeyScope) -> Effects[set[str]]:
    """Send again, identical, what a restored server has forgotten; the uids that it has something else for by now."""
    refused: set[str] = set()
    while repeats := [(uid, base) for uid, base in local.file.repeats(scope.vault).items() if uid not in refused]:
        batch = [_repeated(local, scope, uid, base) for uid, base in repeats[:REPEATS]]
        operations = [operation for prepared in batch for operation in prepared.operations]
        try:
            found = yield from core.session.send(requests.batch(scope.vault, operations))
        except BatchConflict as conflict:
            pushed = PushResult()
            _record_conflicts(batch, conflict, pushed)
            refused |= pushed.stale
            continue
        if len(found.results) != len(operations):
            raise Tampered(_FEWER)
        start = 0
        with local.file.transaction():
            for prepared in batch:
                end = start + len(prepared.operations)
                row = _checked(prepared, found.results[start:end])
                local.file.put_rows(
                    [(row, prepared.entry.kind == DELETE)], mine=local.file.is_mine(scope.vault, row.uid)
                )
                local.file.advance_clock(scope.vault, row.updated_at)
                local.file.drop_repeat(scope.vault, row.uid)
                start = end
    return refused


def _repeated(local: Local, scope: KeyScope, uid: str, base: int) -> EntryOperations:
    row = local.file.row(scope.vault, uid)
    if row is None:
        raise DocumentNotFound
    gone = row.deleted_at is not None
    version = row.version - gone
    sealed = Sealed(row.data, row.hmac or "")
    if not row.data:  # the content was thrown away; the proof of a deletion stands without it
        sealed = seal.reseal_notice(scope.key(row.collection), row)
    if base == 0:
        operations = [requests.create_operation(uid, row.collection, sealed, version)]
    else:
        operations = [requests.put_operation(uid, sealed, base, version)]
    versions = [version]
    kind = PUT
    if gone:
        kind = DELETE
        operations.append(requests.delete_operation(uid, version))
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
    return EntryOperations(entry, operations, versions, sealed, len(sealed.data))


def push(core: Core, local: Local, scope: KeyScope, batch: list[EntryOperations], pushed: PushResult) -> Effects[None]:
    """Send one batch; if it is too large, in halves."""
    operations = [operation for prepared in batch for operation in prepared.operations]
    try:
        found = yield from core.session.send(requests.batch(scope.vault, operations))
    except BatchConflict as refused:
        _record_conflicts(batch, refused, pushed)
        return
    except PayloadTooLarge as refused:
        if len(batch) == 1:
            pushed.refused.append((batch[0].entry, refused))
            return
        half = len(batch) // 2
        yield from push(core, local, scope, batch[:half], pushed)
        yield from push(core, local, scope, batch[half:], pushed)
        return
    if len(found.results) != len(operations):
        raise Tampered(_FEWER)
    _confirm_all(local, scope, batch, found.results, pushed)


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
    if not pushed.stale & uids:
        raise Tampered("The server refused a batch and does not say why.")


def _confirm_all(
    local: Local, scope: KeyScope, batch: list[EntryOperations], results: list[model.Document], pushed: PushResult
) -> None:
    start = 0
    with local.file.transaction():
        for prepared in batch:
            end = start + len(prepared.operations)
            _confirm(local, scope, prepared, results[start:end])
            pushed.done += 1
            start = end


def _checked(prepared: EntryOperations, results: list[model.Document]) -> model.Document:
    """The row that an entry became, if the server says exactly what was sent."""
    entry, row = prepared.entry, results[-1]
    for found, operation, version in zip(results, prepared.operations, prepared.versions, strict=True):
        is_delete = operation["op"] == "delete"
        row = documents.with_ciphertext(found, prepared.last) if is_delete else found
        if row.vault_uid != entry.vault or row.collection != entry.collection:
            raise Tampered
        documents.check_stored(row, prepared.last, entry.uid, version, deleted=is_delete)
    return row


def _confirm(local: Local, scope: KeyScope, prepared: EntryOperations, results: list[model.Document]) -> None:
    """The server has stored an entry: it leaves the outbox, unless it was changed again meanwhile."""
    entry = prepared.entry
    row = _checked(prepared, results)
    seal.verify_document(scope.key(row.collection), row)
    incoming.is_new(local.file.heads(entry.vault, [row.uid]).get(row.uid), row)
    local.file.put_rows([(row, entry.kind in {DELETE, DELETE_ONLY})], mine=True)
    local.file.advance_clock(entry.vault, row.updated_at)
    now = local.file.entry(entry.vault, entry.uid)
    if now is None or now.hmac == entry.hmac:
        local.file.drop_entry(entry.vault, entry.uid)
    else:
        local.file.put_entry(msgspec.structs.replace(now, base=row.version, before=row, floor=0))
