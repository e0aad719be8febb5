"""Operations on documents: encrypted before they are sent, verified when they are received."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias

import msgspec
from msgspec import Struct

from strongroom import identifiers, model
from strongroom.client.errors import Locked, RolledBack, Tampered, TypeMismatch
from strongroom.client.format import names, seal
from strongroom.client.format.content import to_content, to_value
from strongroom.client.format.encoding import NO_PARENT, checked_uid, short
from strongroom.client.format.keys import CollectionKeys, VaultKeys
from strongroom.client.format.padding import NOTHING
from strongroom.client.format.parents import Descent, Link, follows, trace
from strongroom.client.net import requests
from strongroom.client.operations import keyrings, rollback
from strongroom.client.operations.value_types import Misfit, T, T_co, ValueType, value_type
from strongroom.errors import BatchConflict, DocumentConflict, DocumentNotFound, Invalid

if TYPE_CHECKING:
    from strongroom.client.format.padding import Content
    from strongroom.client.format.seal import Opened, Sealed
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.device import KnownDocument

SealedBy: TypeAlias = "dict[int, Sealed]"  # by the generation of the key
WRONG_DOCUMENT: Final = "The server answered with another document than the one that was asked for."
FORKED: Final = "The server shows a newer document whose writer did not know of what this device has seen."
WITHHELD: Final = "The server left out a document that this device has seen, and that nobody deleted."
MAX_HISTORY_PAGES: Final = 1_000  # of a thousand versions each
_NOT_STORED: Final = "The server did not keep the document that it was given."


class Document(Struct, Generic[T_co], frozen=True, kw_only=True):
    """A decrypted document. `deleted` is proven by a key holder; of a deletion, `value` is the last value, if stored.

    `raw` is the value as it is stored, JSON or bytes; `value` is the same as the type that was asked for.
    `collection` is its plaintext name, `wire` its name on the server. `proof` identifies the content. `gap`: this
    client had seen an earlier version, and the server's history no longer shows whether this one follows on it.
    `purged`: of a deletion, its content is gone from the server, and `value` is None.
    """

    uid: str
    vault: str
    collection: str
    wire: str
    raw: Any
    version: int
    created_at: int
    updated_at: int
    deleted: bool = False
    proof: str = ""
    gap: bool = False
    purged: bool = False
    _value: Any = msgspec.UNSET

    @property
    def value(self) -> T_co:
        """The value. If it does not fit the type that was asked for, that is a TypeMismatch; `raw` has it then."""
        if isinstance(self._value, Misfit):
            raise TypeMismatch(self.uid, self._value.type, self._value.problem)
        found: T_co = self.raw if self._value is msgspec.UNSET else self._value
        return found

    def typed(self, type: type[T]) -> Document[T]:  # noqa: A002 - as in `collection`
        """The same document with its value as this type."""
        kind: Any = type
        found: Any = msgspec.structs.replace(self, _value=value_type(kind).decode(self.raw))
        typed: Document[T] = found
        return typed

    def __repr__(self) -> str:
        return f"Document(uid={self.uid!r}, version={self.version}, deleted={self.deleted})"


class KeyScope(Struct, frozen=True, kw_only=True):
    """Where documents lie: one collection of a vault (`collection_keys`), or all that the keys open.

    `vault_keys` are the vault's keys; without them only the one collection can be opened. `type` is that of the values,
    if the program has said one.
    """

    vault: str
    vault_keys: VaultKeys | None
    collection_keys: CollectionKeys | None
    cache: dict[str, CollectionKeys] = {}
    type: ValueType | None = None

    @property
    def name(self) -> str:
        """What people call the collection."""
        return "" if self.collection_keys is None else self.collection_keys.name

    def key(self, wire: str) -> CollectionKeys:
        """The keys of a collection, by its name on the wire."""
        if self.collection_keys is not None and wire in self.collection_keys.wires:
            return self.collection_keys
        found = self.cache.get(wire)
        if found is None:
            if self.vault_keys is None:
                raise Tampered(WRONG_DOCUMENT)
            sealed = names.is_sealed(wire)
            name = names.open_collection_name(self.vault_keys, wire) if sealed else wire
            try:
                found = self.cache[wire] = names.collection_keys(self.vault_keys, name, sealed=sealed)
            except Invalid:
                raise Tampered(WRONG_DOCUMENT) from None
        return found

    @property
    def keyring(self) -> int | None:
        """The version of the keyring that the keys are from."""
        keys = self.vault_keys or self.collection_keys
        return None if keys is None else keys.keyring

    @property
    def generation(self) -> int | None:
        """The generation that writers use."""
        keys = self.vault_keys or self.collection_keys
        return None if keys is None else keys.newest.generation

    @property
    def floor(self) -> int:
        """The lowest generation of a live row."""
        keys = self.vault_keys or self.collection_keys
        return 1 if keys is None else keys.floor

    def require_floor(self, row: model.Document) -> None:
        """Refuse a live row below the floor."""
        seal.require_floor(self.key(row.collection), row)

    def is_beyond(self, row: model.Document) -> bool:
        """Whether a deletion is under a key of before those that a token carries."""
        keys = self.vault_keys or self.collection_keys
        oldest = 1 if keys is None else keys.keys[0].generation
        return oldest > 1 and row.deleted_at is not None and seal.read_proof(row.hmac).generation < oldest

    def holds(self, wire: str) -> bool:
        """Whether a collection on the wire is part of this place."""
        return self.collection_keys is None or wire in self.collection_keys.wires

    @property
    def filter(self) -> str | None:
        """The collection to ask the server for. One that has several names on the wire is sifted here."""
        return (
            self.collection_keys.wire
            if self.collection_keys is not None and len(self.collection_keys.wires) == 1
            else None
        )

    def write_keys(self) -> CollectionKeys:
        """The keys to write with."""
        if self.collection_keys is None:
            raise Locked("Say which collection to write in.")
        return self.collection_keys

    def encode(self, value: Any) -> Any:
        """What a program gives, as it is stored."""
        return value if self.type is None else self.type.encode(value)

    def __repr__(self) -> str:
        return f"KeyScope(vault={self.vault!r})"


def key_scope(
    keys: VaultKeys | CollectionKeys, name: str | None = None, *, sealed: bool = True, values: Any = None
) -> KeyScope:
    """Where documents lie, by the keys that open them. `sealed`: whether the vault's names are.

    `values` is the type of the values: any that `value_types` knows.
    """
    kind = None if values is None else value_type(values)
    if isinstance(keys, CollectionKeys):
        return KeyScope(vault=keys.vault, vault_keys=None, collection_keys=keys, cache={}, type=kind)
    one = None if name is None else names.collection_keys(keys, name, sealed=sealed)
    return KeyScope(vault=keys.vault, vault_keys=keys, collection_keys=one, cache={}, type=kind)


def renewed(core: Core, scope: KeyScope) -> KeyScope:
    """The same place with the keys that the keyring has by now: writers use those of the highest generation."""
    ring = core.ring
    entry = None if ring is None else ring.entry(scope.vault)
    if ring is None or entry is None or scope.vault_keys is None:
        return scope
    if scope.vault_keys.keyring == ring.version:
        return scope
    name = None if scope.collection_keys is None else scope.name
    renewed_scope = key_scope(ring.vault_keys(entry), name, sealed=entry.sealed)
    return msgspec.structs.replace(renewed_scope, type=scope.type)


def create(core: Core, scope: KeyScope, value: Any, uid: str | None) -> Effects[Document]:
    """Create a document. The client generates the uid, so that a retry is idempotent."""
    uid = identifiers.new_uid(core.clock()) if uid is None else checked_uid(uid)
    content = to_content(scope.encode(value))
    made: SealedBy = {}
    return (yield from keyrings.with_newest(core, lambda: _create(core, renewed(core, scope), content, uid, made)))


def _create(core: Core, scope: KeyScope, content: Content, uid: str, made: SealedBy) -> Effects[Document]:
    keys = scope.write_keys()
    sealed = _once(made, keys, lambda: seal.seal_content(keys, seal.DOCUMENT, uid, 1, content, parent=NO_PARENT))
    mark = core.device.mark()
    call = requests.documents.create(scope.vault, uid, keys.wire, sealed, keys.keyring)
    row = yield from core.session.send_or_done(call)
    if row is None:  # it was made by a sending whose answer was lost, and changed since
        return (yield from get(core, scope, uid, deleted=True))
    check_stored(row, sealed, scope.vault, keys.wire, uid, 1)
    return record_written(core, scope, row, content, mark)


def get(core: Core, scope: KeyScope, uid: str, *, deleted: bool = False) -> Effects[Document]:
    """Get a document; a deleted one only if `deleted` is True."""
    scope = renewed(core, scope)
    uid = checked_uid(uid)
    for _ in range(10):
        mark = core.device.mark()
        try:
            row = yield from core.session.send(requests.documents.get(scope.vault, uid))
        except DocumentNotFound:
            if core.device.known(scope.vault, uid) is None:
                raise
            raise RolledBack(WITHHELD) from None
        if row.uid != uid:
            raise Tampered(WRONG_DOCUMENT)
        found = yield from open_row(core, scope, row, mark)
        if found is None:
            continue  # something newer was seen while this answer was under way
        scope = renewed(core, scope)
        if (found.deleted and not deleted) or not scope.holds(row.collection):
            raise DocumentNotFound
        return found
    raise Tampered


def replace(core: Core, scope: KeyScope, document: Document, value: Any) -> Effects[Document]:
    """Another value in the place of the one that was seen."""
    return (yield from replace_raw(core, scope, document, scope.encode(value)))


def replace_raw(core: Core, scope: KeyScope, document: Document, raw: Any) -> Effects[Document]:
    """The same for a value as it is stored."""
    made: SealedBy = {}
    return (yield from keyrings.with_newest(core, lambda: _replace(core, renewed(core, scope), document, raw, made)))


def _once(made: SealedBy, keys: CollectionKeys, sealed: Callable[[], Sealed]) -> Sealed:
    """What is to be sent, sealed once for each generation: the same text is recognised where it is stored already."""
    generation = keys.newest.generation
    if generation not in made:
        made[generation] = sealed()
    return made[generation]


def _replace(core: Core, scope: KeyScope, document: Document, raw: Any, made: SealedBy) -> Effects[Document]:
    keys = scope.key(wire_collection(scope, document))
    content, parent, version = to_content(raw), short(document.proof), document.version + 1
    sealed = _once(
        made,
        keys,
        lambda: seal.seal_content(
            keys, seal.DOCUMENT, document.uid, version, content, parent=parent, wire=document.wire
        ),
    )
    mark = core.device.mark()
    call = requests.documents.put(scope.vault, document.uid, sealed, document.version, keys.keyring)
    row = yield from core.session.send(call)
    check_stored(row, sealed, scope.vault, document.wire, document.uid, version)
    return record_written(core, scope, row, content, mark)


def delete(core: Core, scope: KeyScope, document: Document) -> Effects[Document]:
    """A notice that the document is deleted, and the server's own deletion, which keeps the notice: in one batch."""
    made: SealedBy = {}
    return (yield from keyrings.with_newest(core, lambda: _delete(core, renewed(core, scope), document, made)))


def _delete(core: Core, scope: KeyScope, document: Document, made: SealedBy) -> Effects[Document]:
    keys = scope.key(wire_collection(scope, document))
    last, parent, version = to_content(document.raw), short(document.proof), document.version + 1
    sealed = _once(
        made, keys, lambda: seal.seal_deletion(keys, document.uid, version, last, parent=parent, wire=document.wire)
    )
    operations = [
        requests.batches.put_operation(document.uid, sealed, document.version),
        requests.batches.delete_operation(document.uid, version),
    ]
    mark = core.device.mark()
    try:
        found = yield from core.session.send(requests.batches.run(scope.vault, operations, keys.keyring))
    except BatchConflict as refused:
        return (yield from _explain_conflict(core, scope, document, sealed, refused))
    if len(found.results) != 2:
        raise Tampered(_NOT_STORED)
    row = with_ciphertext(found.results[1], sealed)
    check_stored(found.results[0], sealed, scope.vault, document.wire, document.uid, version)
    check_stored(row, sealed, scope.vault, document.wire, document.uid, version + 1, deleted=True)
    return record_written(core, scope, row, last, mark, deleted=True)


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


def checked_document(document: Document) -> Document:
    """A document; anything else is the caller's mistake."""
    if not isinstance(document, Document):
        raise Invalid({"document": f"must be a Document, as get and create return it, not {type(document).__name__}"})
    return document


def wire_collection(scope: KeyScope, document: Document) -> str:
    """The collection of a document on the wire, if it lies in this place."""
    checked_document(document)
    if document.vault != scope.vault or not scope.holds(document.wire):
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


def check_stored(
    row: model.Document, sealed: Sealed, vault: str, wire: str, uid: str, version: int, *, deleted: bool = False
) -> None:
    """Refuse the response to a write unless it shows exactly what was written, and where."""
    if (row.vault_uid, row.collection, row.uid, row.version) != (vault, wire, uid, version):
        raise Tampered(_NOT_STORED)
    if (row.deleted_at is not None) != deleted or row.data != sealed.data or row.hmac != sealed.hmac:
        raise Tampered(_NOT_STORED)


def open_row(
    core: Core, scope: KeyScope, row: model.Document, mark: int, *, keep: bool = True
) -> Effects[Document | None]:
    """A row as a document, if it is believed; None if this device has meanwhile seen a newer one.

    It is remembered, unless `keep` is False.
    """
    keys, made = yield from verify_row(core, scope, row, seal.open_document)
    known = core.device.known(scope.vault, row.uid)
    if known is not None:
        rollback.require_collection(known.collection, row)
    gap = False
    if known is not None and known.row.version < row.version:
        if made.deleted and not known.deleted and made.generation < keys.floor:
            raise Tampered(FORKED)
        gap = yield from _require_descent(core, row, known)
    if not core.device.record(row, mark, deleted=made.deleted, keep=keep):
        return None
    return to_document(scope, row, made.content, keys.name, deleted=made.deleted, gap=gap)


def verify_row(
    core: Core, scope: KeyScope, row: model.Document, open_: Callable[[CollectionKeys, model.Document], Opened]
) -> Effects[tuple[CollectionKeys, Opened]]:
    """A row that a key holder made for this place and version, opened, and the keys of its collection."""
    if row.vault_uid != scope.vault:
        raise Tampered(WRONG_DOCUMENT)
    try:
        keys = scope.key(row.collection)
        return keys, open_(keys, row)
    except Locked:
        if core.ring is None:
            raise
    # perhaps another device has rotated the vault's key
    yield from keyrings.reload(core)
    keys = renewed(core, scope).key(row.collection)
    return keys, open_(keys, row)


def _require_descent(core: Core, row: model.Document, known: KnownDocument) -> Effects[bool]:
    """Refuse a newer row that was made without knowing of the one that this device has seen; whether none can tell."""
    if follows(row.hmac or "", known.row.proof, seal.lineage):
        return False
    history = yield from read_history(core, row.vault_uid, 0, uid=row.uid)
    descent = trace(seal.link(row), known.link, (link for _, link in history), seal.lineage)
    if descent is Descent.FORKED:
        raise Tampered(FORKED)
    return descent is Descent.GAP


def read_history(core: Core, vault: str, since: int, uid: str | None = None) -> Effects[list[tuple[str, Link]]]:
    """Uid, version and proof of what was replaced after a time, in a vault or of one document.

    A history that does not end is not read to its end: what lies beyond is a gap.
    """
    rows = yield from history_rows(core, vault, since, uid)
    return [(one.uid, Link(one.version, one.hmac)) for one in rows if one.hmac is not None]


def history_rows(core: Core, vault: str, since: int, uid: str | None = None) -> Effects[list[model.ReplacedVersion]]:
    """The same rows as the server shows them, with those that have no proof."""
    found: list[model.ReplacedVersion] = []
    for _ in range(MAX_HISTORY_PAGES):
        page = yield from core.session.send(requests.documents.history(vault, since, uid))
        found += page.versions
        if page.has_more and page.next <= since:
            raise Tampered(WRONG_DOCUMENT)
        if not page.has_more:
            break
        since = page.next
    return found


def record_written(
    core: Core, scope: KeyScope, row: model.Document, content: Content, mark: int, *, deleted: bool = False
) -> Document:
    """What was just written, as a document. Sealing has opened it again, so it is not decrypted a second time.

    The caller has compared the row with what was sealed.
    """
    core.device.record(row, mark, deleted=deleted)
    return to_document(scope, row, content, scope.key(row.collection).name, deleted=deleted)


def to_document(
    scope: KeyScope, row: model.Document, content: Content, name: str, *, deleted: bool, gap: bool = False
) -> Document:
    """The document of a row that was verified. `name` is the plaintext name of its collection."""
    raw, purged = to_value(content), content.kind == NOTHING
    return Document(
        uid=row.uid,
        vault=row.vault_uid,
        collection=name,
        wire=row.collection,
        raw=raw,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted=deleted,
        proof=row.hmac or "",
        gap=gap,
        purged=purged,
        _value=msgspec.UNSET if scope.type is None or purged else scope.type.decode(raw),
    )
