"""Operations on documents: encrypted before they are sent, verified when they are received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from strongroom import identifiers, model
from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.format import names, seal
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import checked_uid
from strongroom.client.format.keys import CollectionKey, VaultKey
from strongroom.client.net import requests
from strongroom.errors import BatchConflict, DocumentConflict, DocumentNotFound, Invalid

if TYPE_CHECKING:
    from strongroom.client.format.seal import Opened, Sealed
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core

WRONG_DOCUMENT: Final = "The server answered with another document than the one that was asked for."
WITHHELD: Final = "The server left out a document that this device has seen, and that nobody deleted."
_NOT_STORED: Final = "The server did not keep the document that it was given."


class Document(Struct, frozen=True, kw_only=True):
    """A decrypted document. `deleted` is proven by a key holder; of a deletion, `value` is the last value, if stored.

    `collection` is its plaintext name, `wire` its name on the server. `proof` identifies the content.
    """

    uid: str
    vault: str
    collection: str
    wire: str
    value: Any
    version: int
    created_at: int
    updated_at: int
    deleted: bool = False
    proof: str = ""

    def __repr__(self) -> str:
        return f"Document(uid={self.uid!r}, version={self.version}, deleted={self.deleted})"


class KeyScope(Struct, frozen=True, kw_only=True):
    """The keys of a vault, or of one of its collections, that documents are read and written with.

    `vault_key` opens every collection; without it only that of `collection_key` can be opened.
    """

    vault: str
    vault_key: VaultKey | None
    collection_key: CollectionKey | None
    name: str = ""
    cache: dict[str, tuple[CollectionKey, str]] = {}

    def key(self, wire: str) -> tuple[CollectionKey, str]:
        """The key of a collection, by its name on the wire, and its plaintext name."""
        if self.collection_key is not None and wire == self.collection_key.collection:
            return self.collection_key, self.name
        found = self.cache.get(wire)
        if found is None:
            if self.vault_key is None:
                raise Tampered(WRONG_DOCUMENT)
            name = names.open_collection_name(self.vault_key, wire) if names.is_sealed(wire) else wire
            try:
                found = self.cache[wire] = self.vault_key.collection(wire), name
            except Invalid:
                raise Tampered(WRONG_DOCUMENT) from None
        return found

    def write_key(self) -> CollectionKey:
        """The key of the collection to write in."""
        if self.collection_key is None:
            raise Locked("Say which collection to write in.")
        return self.collection_key

    def __repr__(self) -> str:
        return f"Place(vault={self.vault!r})"


def key_scope(vault: str, keys: VaultKey | CollectionKey, wire: str | None = None, name: str = "") -> KeyScope:
    """The scope of a vault key or a collection key."""
    if isinstance(keys, CollectionKey):
        return KeyScope(vault=vault, vault_key=None, collection_key=keys, name=name, cache={})
    collection_key = None if wire is None else keys.collection(wire)
    return KeyScope(vault=vault, vault_key=keys, collection_key=collection_key, name=name, cache={})


def create(core: Core, scope: KeyScope, value: Any, uid: str | None) -> Effects[Document]:
    """Create a document. The client generates the uid, so that a retry is idempotent."""
    keys = scope.write_key()
    uid = identifiers.new_uid(core.clock()) if uid is None else checked_uid(uid)
    sealed = seal.seal_document(keys, uid, 1, value)
    mark = core.device.mark()
    row = yield from core.session.send_or_done(requests.create_document(scope.vault, uid, keys.collection, sealed))
    if row is None:  # it was made by a sending whose answer was lost, and changed since
        return (yield from get(core, scope, uid, deleted=True))
    check_stored(row, sealed, uid, 1)
    return open_written(core, scope, row, mark)


def get(core: Core, scope: KeyScope, uid: str, *, deleted: bool = False) -> Effects[Document]:
    """Get a document; a deleted one only if `deleted` is True."""
    uid = checked_uid(uid)
    for _ in range(10):
        mark = core.device.mark()
        try:
            row = yield from core.session.send(requests.get_document(scope.vault, uid))
        except DocumentNotFound:
            if core.device.known(scope.vault, uid) is None:
                raise
            raise RolledBack(WITHHELD) from None
        if row.uid != uid:
            raise Tampered(WRONG_DOCUMENT)
        found = open_row(core, scope, row, mark)
        if found is None:
            continue  # something newer was seen while this answer was under way
        if (found.deleted and not deleted) or (
            scope.collection_key is not None and row.collection != scope.collection_key.collection
        ):
            raise DocumentNotFound
        return found
    raise Tampered


def replace(core: Core, scope: KeyScope, document: Document, value: Any) -> Effects[Document]:
    """Replace the value of a document, if it is still at the version seen."""
    keys, _ = scope.key(wire_collection(scope, document))
    sealed = seal.seal_document(keys, document.uid, document.version + 1, value)
    return (yield from put(core, scope, document, sealed))


def delete(core: Core, scope: KeyScope, document: Document) -> Effects[Document]:
    """Delete a document: a batch of a sealed notice of deletion and the server's own deletion, which keeps it."""
    keys, _ = scope.key(wire_collection(scope, document))
    sealed = seal.seal_deletion(keys, document.uid, document.version + 1, to_content(document.value))
    operations = [
        requests.put_operation(document.uid, sealed, document.version),
        requests.delete_operation(document.uid, document.version + 1),
    ]
    mark = core.device.mark()
    try:
        found = yield from core.session.send(requests.batch(scope.vault, operations))
    except BatchConflict as refused:
        return (yield from _explain_conflict(core, scope, document, sealed, refused))
    if len(found.results) != 2:
        raise Tampered(_NOT_STORED)
    check_stored(found.results[0], sealed, document.uid, document.version + 1)
    row = with_ciphertext(found.results[1], sealed)
    check_stored(row, sealed, document.uid, document.version + 2, deleted=True)
    return open_written(core, scope, row, mark)


def _explain_conflict(
    core: Core, scope: KeyScope, document: Document, sealed: Sealed, refused: BatchConflict
) -> Effects[Document]:
    """The deletion, if an attempt without a response has done it; otherwise raises the conflict."""
    now = yield from get(core, scope, document.uid, deleted=True)
    known = core.device.known(scope.vault, document.uid)
    if now.deleted and now.version == document.version + 2 and known is not None and known.row.proof == sealed.hmac:
        return now
    if now.version == document.version:
        raise refused
    raise DocumentConflict(now.version, now.updated_at) from None


def put(core: Core, scope: KeyScope, document: Document, sealed: Sealed) -> Effects[Document]:
    """Replace a document with ciphertext sealed for its next version."""
    mark = core.device.mark()
    row = yield from core.session.send(requests.put_document(scope.vault, document.uid, sealed, document.version))
    check_stored(row, sealed, document.uid, document.version + 1)
    return open_written(core, scope, row, mark)


def wire_collection(scope: KeyScope, document: Document) -> str:
    """The wire name of a document's collection, if the document is in this scope."""
    if document.vault != scope.vault or (
        scope.collection_key is not None and document.wire != scope.collection_key.collection
    ):
        raise DocumentNotFound
    return document.wire


def with_ciphertext(row: model.Document, sealed: Sealed) -> model.Document:
    """A tombstone with its notice of deletion, which responses leave out."""
    if row.data or row.hmac is not None:
        return row
    return model.Document(
        row.uid,
        row.vault_uid,
        row.collection,
        sealed.data,
        sealed.hmac,
        row.version,
        row.created_at,
        row.updated_at,
        row.deleted_at,
    )


def check_stored(row: model.Document, sealed: Sealed, uid: str, version: int, *, deleted: bool = False) -> None:
    """Refuse the response to a write unless it shows exactly what was written."""
    if row.uid != uid or row.version != version or (row.deleted_at is not None) != deleted:
        raise Tampered(_NOT_STORED)
    if row.data != sealed.data or row.hmac != sealed.hmac:
        raise Tampered(_NOT_STORED)


def open_row(core: Core, scope: KeyScope, row: model.Document, mark: int) -> Document | None:
    """Verify and decrypt a row; None if this device has seen a newer one since the request."""
    if row.vault_uid != scope.vault:
        raise Tampered(WRONG_DOCUMENT)
    keys, name = scope.key(row.collection)
    made = seal.open_document(keys, row)
    if not core.device.record(row, mark, deleted=made.deleted):
        return None
    return to_document(row, made, name)


def open_written(core: Core, scope: KeyScope, row: model.Document, mark: int) -> Document:
    """Decrypt the row of a write, and record it."""
    keys, name = scope.key(row.collection)
    made = seal.open_document(keys, row)
    core.device.record(row, mark, deleted=made.deleted)
    return to_document(row, made, name)


def to_document(row: model.Document, made: Opened, name: str) -> Document:
    """The document of a row that was verified."""
    return Document(
        uid=row.uid,
        vault=row.vault_uid,
        collection=name,
        wire=row.collection,
        value=made.value,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted=made.deleted,
        proof=row.hmac or "",
    )
