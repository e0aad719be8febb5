"""What a replica holds below a floor, under the newest keys: an export needs it, because nobody takes it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from strongroom import model
from strongroom.client.format import seal
from strongroom.client.format.encoding import short

if TYPE_CHECKING:
    from strongroom.client.format.keys import VaultKeys
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.store.records import Entry, VaultRecord
    from strongroom.model import Document


def row_above(scope: KeyScope, row: Document) -> Document:
    """A row; a live one below the floor is replaced by itself, as in a rotation."""
    if row.deleted_at is not None or not _is_below(scope, row.hmac):
        return row
    sealed = _encrypted_again(scope, row, row.version + 1, short(row.hmac or ""))
    return msgspec.structs.replace(row, version=row.version + 1, data=sealed.data, hmac=sealed.hmac)


def entry_above(scope: KeyScope, entry: Entry) -> Entry:
    """A queued change; below the floor it is encrypted again for the same version, as before it is sent."""
    if not _is_below(scope, entry.hmac):
        return entry
    row = model.Document(entry.uid, entry.vault, entry.collection, entry.data, entry.hmac, entry.version, 0, 0, None)
    sealed = _encrypted_again(scope, row, entry.version, seal.parent_of(entry.hmac))
    return msgspec.structs.replace(entry, data=sealed.data, hmac=sealed.hmac)


def blob_above(keys: VaultKeys, record: VaultRecord) -> VaultRecord:
    """A vault; a blob below the floor is replaced by itself, as in a rotation."""
    if record.data is None or seal.blob_generation(record.data) >= keys.floor:
        return record
    row = model.Vault(record.uid, record.wire, record.version, record.clock, data=record.data, salt=record.salt)
    content, version = seal.open_known_blob(keys, row), record.version + 1
    sealed = seal.seal_blob_content(keys, record.wire, version, content, parent=short(record.data))
    return msgspec.structs.replace(record, version=version, data=sealed.data, salt=sealed.salt)


def _is_below(scope: KeyScope, hmac: str | None) -> bool:
    return seal.read_proof(hmac).generation < scope.floor


def _encrypted_again(scope: KeyScope, row: Document, version: int, parent: bytes) -> seal.Sealed:
    keys = scope.key(row.collection)
    made = seal.open_past_document(keys, row)
    kind = seal.DELETION if made.deleted else seal.DOCUMENT
    return seal.seal_content(keys, kind, row.uid, version, made.content, parent=parent, wire=row.collection)
