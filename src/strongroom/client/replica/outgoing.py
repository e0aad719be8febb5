"""Sending what waits, in batches."""

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
from strongroom.client.replica.file import BURY, DELETE, Entry
from strongroom.errors import BatchConflict, DocumentNotFound, PayloadTooLarge, Refusal

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Place
    from strongroom.client.replica.local import Local

MOST_OPERATIONS: Final = 500
MOST_BYTES: Final = 2 << 20
_FEWER: Final = "The server did not answer every operation of a batch."


class Parcel(Struct, frozen=True):
    """An entry, and the operations that bring it to the server. `last` is its content as it will be stored."""

    entry: Entry
    operations: list[dict[str, Any]]
    versions: list[int]
    last: Sealed
    size: int


class Pushed(Struct):
    """What came of a push. `stale`: uids that the server refused, because it has something newer or nothing at all."""

    done: int = 0
    stale: set[str] = msgspec.field(default_factory=set)
    lacking: set[str] = msgspec.field(default_factory=set)
    refused: list[tuple[Entry, Refusal]] = msgspec.field(default_factory=list)


def bundle(local: Local, at: Place, after: int) -> list[Parcel]:
    """The next parcels that go in one batch, sealed for the versions that they will have; known as ours from now on."""
    made: list[Parcel] = []
    operations = size = 0
    with local.file.change():
        for entry in local.file.ready(at.vault, after, MOST_OPERATIONS):
            parcel = _parcel(at, entry)
            operations += len(parcel.operations)
            size += parcel.size
            if made and (operations > MOST_OPERATIONS or size > MOST_BYTES):
                break
            made.append(parcel)
            local.file.put_entry(parcel.entry)
            proofs = (operation["hmac"] for operation in parcel.operations if "hmac" in operation)
            local.file.note_sent((entry.vault, entry.uid, proof) for proof in proofs)
    return made


def _parcel(at: Place, entry: Entry) -> Parcel:
    if entry.kind == BURY:
        operation = requests.delete_operation(entry.uid, entry.base)
        return Parcel(entry, [operation], [entry.base + 1], Sealed(entry.data, entry.hmac), 100)
    target = max(entry.base, entry.floor) + 1
    operations = []
    versions = []
    last = Sealed(entry.data, entry.hmac)
    for version in range(entry.base + 1, target + 1):
        last = _sealed(at, entry, version)
        if version == 1:
            operations.append(requests.create_operation(entry.uid, entry.collection, last))
        else:
            operations.append(requests.put_operation(entry.uid, last, version - 1))
        versions.append(version)
    if entry.kind == DELETE:
        operations.append(requests.delete_operation(entry.uid, target))
        versions.append(target + 1)
    entry = msgspec.structs.replace(entry, data=last.data, hmac=last.hmac, version=target)
    return Parcel(entry, operations, versions, last, len(operations) * (len(last.data) + 300))


def _sealed(at: Place, entry: Entry, version: int) -> Sealed:
    """The content of an entry, sealed for this version."""
    if version == entry.version:
        return Sealed(entry.data, entry.hmac)
    keys, _ = at.key(entry.collection)
    row = model.Document(entry.uid, entry.vault, entry.collection, entry.data, entry.hmac, entry.version, 0, 0, None)
    content = seal.open_document(keys, row).content
    kind = seal.DELETION if entry.kind == DELETE else seal.DOCUMENT
    return seal.seal_content(keys, kind, entry.uid, version, content, primitives.random)


def push(core: Core, local: Local, at: Place, parcels: list[Parcel], pushed: Pushed) -> Effects[None]:
    """Send one bundle."""
    operations = [operation for parcel in parcels for operation in parcel.operations]
    try:
        found = yield from core.session.send(requests.batch(at.vault, operations))
    except BatchConflict as refused:
        _blame(parcels, refused, pushed)
        return
    except PayloadTooLarge as refused:
        if len(parcels) == 1:
            pushed.refused.append((parcels[0].entry, refused))
            return
        half = len(parcels) // 2
        yield from push(core, local, at, parcels[:half], pushed)
        yield from push(core, local, at, parcels[half:], pushed)
        return
    if len(found.results) != len(operations):
        raise Tampered(_FEWER)
    _arrived_all(local, at, parcels, found.results, pushed)


def _blame(parcels: list[Parcel], refused: BatchConflict, pushed: Pushed) -> None:
    """Note whose fault it was that nothing was written. The others go with the next round."""
    uids = {parcel.entry.uid for parcel in parcels}
    named = (refused.details or {}).get("operations")
    for operation in named if isinstance(named, list) else []:
        uid = operation.get("uid") if isinstance(operation, dict) else None
        if uid in uids:
            pushed.stale.add(uid)
            if operation.get("code") == DocumentNotFound.code:
                pushed.lacking.add(uid)
    if not pushed.stale & uids:
        raise Tampered("The server refused a batch and does not say why.")


def _arrived_all(local: Local, at: Place, parcels: list[Parcel], results: list[model.Document], pushed: Pushed) -> None:
    start = 0
    with local.file.change():
        for parcel in parcels:
            end = start + len(parcel.operations)
            _arrived(local, at, parcel, results[start:end])
            pushed.done += 1
            start = end


def _arrived(local: Local, at: Place, parcel: Parcel, results: list[model.Document]) -> None:
    """The server has stored an entry: it leaves the outbox, unless it was changed again meanwhile."""
    entry = parcel.entry
    buried = entry.kind in {DELETE, BURY}
    row = results[-1]
    for found, operation, version in zip(results, parcel.operations, parcel.versions, strict=True):
        is_delete = operation["op"] == "delete"
        sealed = parcel.last if is_delete else Sealed(operation["data"], operation["hmac"])
        row = documents.with_sealed(found, sealed) if is_delete else found
        if row.vault_uid != entry.vault or row.collection != entry.collection:
            raise Tampered
        documents.kept(row, sealed, entry.uid, version, deleted=is_delete)
    seal.open_document(at.key(row.collection)[0], row)
    incoming.is_new(local.file.heads(entry.vault, [row.uid]).get(row.uid), row)
    local.file.put_rows([(row, buried)])
    local.file.raise_clock(entry.vault, row.updated_at)
    now = local.file.entry(entry.vault, entry.uid)
    if now is None or now.hmac == entry.hmac:
        local.file.drop_entry(entry.vault, entry.uid)
    else:
        local.file.put_entry(msgspec.structs.replace(now, base=row.version, before=row, floor=0))
