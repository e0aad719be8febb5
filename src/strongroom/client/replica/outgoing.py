"""Pushing the outbox, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from strongroom import model
from strongroom.client.errors import Tampered
from strongroom.client.format import primitives, seal
from strongroom.client.format.seal import Sealed
from strongroom.client.net import requests
from strongroom.client.operations import documents
from strongroom.client.replica import incoming
from strongroom.client.replica.file import DELETE, DELETE_ONLY, Entry
from strongroom.errors import BatchConflict, DocumentNotFound, PayloadTooLarge, Refusal

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local

MOST_OPERATIONS: Final = 500
MOST_BYTES: Final = 2 << 20
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
        for entry in local.file.ready(scope.vault, after, MOST_OPERATIONS):
            prepared = _entry_operations(scope, entry)
            operations += len(prepared.operations)
            size += prepared.size
            if made and (operations > MOST_OPERATIONS or size > MOST_BYTES):
                break
            made.append(prepared)
            local.file.put_entry(prepared.entry)
            proofs = (operation["hmac"] for operation in prepared.operations if "hmac" in operation)
            local.file.record_sent((entry.vault, entry.uid, proof) for proof in proofs)
    return made


def _entry_operations(scope: KeyScope, entry: Entry) -> EntryOperations:
    if entry.kind == DELETE_ONLY:
        operation = requests.delete_operation(entry.uid, entry.base)
        return EntryOperations(entry, [operation], [entry.base + 1], Sealed(entry.data, entry.hmac), 100)
    target = max(entry.base, entry.floor) + 1
    operations = []
    versions = []
    last = Sealed(entry.data, entry.hmac)
    for version in range(entry.base + 1, target + 1):
        last = _sealed(scope, entry, version)
        if version == 1:
            operations.append(requests.create_operation(entry.uid, entry.collection, last))
        else:
            operations.append(requests.put_operation(entry.uid, last, version - 1))
        versions.append(version)
    if entry.kind == DELETE:
        operations.append(requests.delete_operation(entry.uid, target))
        versions.append(target + 1)
    entry = msgspec.structs.replace(entry, data=last.data, hmac=last.hmac, version=target)
    return EntryOperations(entry, operations, versions, last, len(operations) * (len(last.data) + 300))


def _sealed(scope: KeyScope, entry: Entry, version: int) -> Sealed:
    """The content of an entry, sealed for this version."""
    if version == entry.version:
        return Sealed(entry.data, entry.hmac)
    keys, _ = scope.key(entry.collection)
    row = model.Document(entry.uid, entry.vault, entry.collection, entry.data, entry.hmac, entry.version, 0, 0, None)
    content = seal.open_document(keys, row).content
    kind = seal.DELETION if entry.kind == DELETE else seal.DOCUMENT
    return seal.seal_content(keys, kind, entry.uid, version, content, primitives.random)


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


def _confirm(local: Local, scope: KeyScope, prepared: EntryOperations, results: list[model.Document]) -> None:
    """Store the results of an entry and remove it from the outbox, unless it was changed meanwhile."""
    entry = prepared.entry
    buried = entry.kind in {DELETE, DELETE_ONLY}
    row = results[-1]
    for found, operation, version in zip(results, prepared.operations, prepared.versions, strict=True):
        is_delete = operation["op"] == "delete"
        sealed = prepared.last if is_delete else Sealed(operation["data"], operation["hmac"])
        row = documents.with_ciphertext(found, sealed) if is_delete else found
        if row.vault_uid != entry.vault or row.collection != entry.collection:
            raise Tampered
        documents.check_stored(row, sealed, entry.uid, version, deleted=is_delete)
    seal.open_document(scope.key(row.collection)[0], row)
    incoming.is_new(local.file.heads(entry.vault, [row.uid]).get(row.uid), row)
    local.file.put_rows([(row, buried)])
    local.file.advance_clock(entry.vault, row.updated_at)
    now = local.file.entry(entry.vault, entry.uid)
    if now is None or now.hmac == entry.hmac:
        local.file.drop_entry(entry.vault, entry.uid)
    else:
        local.file.put_entry(msgspec.structs.replace(now, base=row.version, before=row, floor=0))
