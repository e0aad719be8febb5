"""Documents: sealed before they leave, believed only where a key holder made them for this place and version."""

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
    """A document, opened. `deleted` is a key holder's word; of a deletion, `value` is the last value if it is kept.

    `collection` is what people call it, `wire` what the server calls it. `proof` tells one content from another.
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
    """Where documents lie: one collection of a vault (`one`), or all that the key opens.

    `whole` is the vault's key; without it only the one collection can be opened.
    """

    vault: str
    vault_key: VaultKey | None
    collection_key: CollectionKey | None
    name: str = ""
    cache: dict[str, tuple[CollectionKey, str]] = {}

    def key(self, wire: str) -> tuple[CollectionKey, str]:
        """The key of a collection, called as on the wire, and what people call it."""
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
        """The key to write with."""
        if self.collection_key is None:
            raise Locked("Say which collection to write in.")
        return self.collection_key

    def __repr__(self) -> str:
        return f"Place(vault={self.vault!r})"


def key_scope(vault: str, keys: VaultKey | CollectionKey, wire: str | None = None, name: str = "") -> KeyScope:
    """Where documents lie, by the keys that open them."""
    if isinstance(keys, CollectionKey):
        return KeyScope(vault=vault, vault_key=None, collection_key=keys, name=name, cache={})
    collection_key = None if wire is None else keys.collection(wire)
    return KeyScope(vault=vault, vault_key=keys, collection_key=collection_key, name=name, cache={})


def create(core: Core, scope: KeyScope, value: Any, uid: str | None) -> Effects[Document]:
    """A new document. Its uid is made here, so that sending it twice does not make two."""
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
    """One document; a deleted one only where it is asked for."""
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
    """Another value in the place of the one that was seen."""
    keys, _ = scope.key(wire_collection(scope, document))
    sealed = seal.seal_document(keys, document.uid, document.version + 1, value)
    return (yield from put(core, scope, document, sealed))


def delete(core: Core, scope: KeyScope, document: Document) -> Effects[Document]:
    """A notice that the document is deleted, and the server's own deletion, which keeps the notice: in one batch."""
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
    """The deletion, if it was done by a sending whose answer was lost; otherwise the conflict that it met."""
    now = yield from get(core, scope, document.uid, deleted=True)
    known = core.device.known(scope.vault, document.uid)
    if now.deleted and now.version == document.version + 2 and known is not None and known.row.proof == sealed.hmac:
        return now
    if now.version == document.version:
        raise refused
    raise DocumentConflict(now.version, now.updated_at) from None


def put(core: Core, scope: KeyScope, document: Document, sealed: Sealed) -> Effects[Document]:
    """What was sealed for the next version of a document, in its place."""
    mark = core.device.mark()
    row = yield from core.session.send(requests.put_document(scope.vault, document.uid, sealed, document.version))
    check_stored(row, sealed, document.uid, document.version + 1)
    return open_written(core, scope, row, mark)


def wire_collection(scope: KeyScope, document: Document) -> str:
    """The collection of a document on the wire, if it lies in this place."""
    if document.vault != scope.vault or (
        scope.collection_key is not None and document.wire != scope.collection_key.collection
    ):
        raise DocumentNotFound
    return document.wire


def with_ciphertext(row: model.Document, sealed: Sealed) -> model.Document:
    """A tombstone with the notice that it keeps, also where it was answered without it."""
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
    """Refuse an answer to a write that does not say exactly what was written."""
    if row.uid != uid or row.version != version or (row.deleted_at is not None) != deleted:
        raise Tampered(_NOT_STORED)
    if row.data != sealed.data or row.hmac != sealed.hmac:
        raise Tampered(_NOT_STORED)


def open_row(core: Core, scope: KeyScope, row: model.Document, mark: int) -> Document | None:
    """A row as a document, if it is believed; None if this device has meanwhile seen a newer one."""
    if row.vault_uid != scope.vault:
        raise Tampered(WRONG_DOCUMENT)
    keys, name = scope.key(row.collection)
    made = seal.open_document(keys, row)
    if not core.device.record(row, mark, deleted=made.deleted):
        return None
    return to_document(row, made, name)


def open_written(core: Core, scope: KeyScope, row: model.Document, mark: int) -> Document:
    """What was just written, as a document."""
    keys, name = scope.key(row.collection)
    made = seal.open_document(keys, row)
    core.device.record(row, mark, deleted=made.deleted)
    return to_document(row, made, name)


def to_document(row: model.Document, made: Opened, name: str) -> Document:
    """A row that was believed, as a document."""
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
