"""Many writes in batches: create, replace and delete, a result for each.

A batch is stored as a whole or not at all, and a lost response is asked for again: what is stored already is recognised
by its proof, so nothing is written twice. If some operations of a batch are refused, these get their errors and the
others are sent again without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic

from msgspec import Struct

from strongroom import identifiers, model
from strongroom.client.errors import Tampered
from strongroom.client.format import seal
from strongroom.client.format.content import EMPTY, to_content
from strongroom.client.format.encoding import NO_PARENT, checked_uid, short
from strongroom.client.format.parents import Descent, Link, trace
from strongroom.client.net import requests
from strongroom.client.operations import documents, keyrings
from strongroom.client.operations.value_types import T
from strongroom.errors import (
    BatchConflict,
    DocumentConflict,
    DocumentNotFound,
    Invalid,
    KeyringConflict,
    PayloadTooLarge,
    Refusal,
    UidTaken,
)

if TYPE_CHECKING:
    from strongroom.client.format.padding import Content
    from strongroom.client.format.seal import Sealed
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Document, KeyScope

MOST_OPERATIONS: Final = 500
MOST_BYTES: Final = 2 << 20
_FEWER: Final = "The server did not answer every operation of a batch."
_UNEXPLAINED: Final = "The server refused a batch and does not say why."


class WriteResult(Generic[T]):
    """What became of one item. `index` is its place, `error` why it was refused or None."""

    __slots__ = ("_document", "error", "index", "uid")

    def __init__(self, index: int, uid: str, document: Document[T] | None, error: Refusal | None = None) -> None:
        self.index = index
        self.uid = uid
        self.error = error
        self._document = document

    @property
    def document(self) -> Document[T]:
        """The document as it was written; raises the error if the item was refused."""
        if self.error is not None:
            raise self.error
        if self._document is None:
            raise DocumentNotFound
        return self._document

    def __repr__(self) -> str:
        return f"WriteResult(index={self.index}, uid={self.uid!r}, error={self.error!r})"


class Write(Struct, frozen=True):
    """One item, sealed. `base` is the version that it replaces, 0 for none."""

    index: int
    uid: str
    wire: str
    base: int
    content: Content
    sealed: Sealed
    deletes: bool
    prepare: Prepare

    def operations(self) -> list[dict[str, Any]]:
        """What is sent."""
        if self.base == 0:
            return [requests.batches.create_operation(self.uid, self.wire, self.sealed)]
        put = requests.batches.put_operation(self.uid, self.sealed, self.base)
        return [put, requests.batches.delete_operation(self.uid, self.base + 1)] if self.deletes else [put]

    @property
    def size(self) -> int:
        """About how many bytes that is."""
        return len(self.sealed.data) + 400


Prepare = Callable[[int, "KeyScope"], Write]  # seals an item, or refuses it


def creations(core: Core, values: Iterable[Any], uids: Iterable[str] | None) -> Iterator[tuple[str, Prepare]]:
    """New documents."""
    given = iter(uids) if uids is not None else None
    for value in values:
        if given is None:
            yield _creation(identifiers.new_uid(core.clock()), value)
            continue
        uid = next(given, None)
        if uid is None:
            raise Invalid({"uids": "must be as many as the values"})
        yield _creation(uid, value)
    if given is not None and next(given, None) is not None:
        raise Invalid({"uids": "must be as many as the values"})


def _creation(uid: str, value: Any) -> tuple[str, Prepare]:
    def prepare(index: int, scope: KeyScope) -> Write:
        keys, checked, content = scope.write_keys(), checked_uid(uid), to_content(scope.encode(value))
        sealed = seal.seal_content(keys, seal.DOCUMENT, checked, 1, content, parent=NO_PARENT)
        return Write(index, checked, keys.wire, 0, content, sealed, deletes=False, prepare=prepare)

    return uid, prepare


def replacements(changes: Iterable[tuple[Document, Any]]) -> Iterator[tuple[str, Prepare]]:
    """Other values in the place of those that were seen."""
    for change in changes:
        if not isinstance(change, tuple | list) or len(change) != 2:
            raise Invalid({"changes": "must be pairs of a Document and its new value"})
        document, value = change
        yield documents.checked_document(document).uid, _replacement(document, value)


def _replacement(document: Document, value: Any) -> Prepare:
    def prepare(index: int, scope: KeyScope) -> Write:
        content = to_content(scope.encode(value))
        sealed = _sealed(scope, document, content, seal.DOCUMENT)
        return Write(
            index, document.uid, document.wire, document.version, content, sealed, deletes=False, prepare=prepare
        )

    return prepare


def deletions(wanted: Iterable[Document]) -> Iterator[tuple[str, Prepare]]:
    """Deletions of documents that were seen."""
    for document in wanted:
        yield documents.checked_document(document).uid, _deletion(document)


def _deletion(document: Document) -> Prepare:
    def prepare(index: int, scope: KeyScope) -> Write:
        content = EMPTY if document.purged else to_content(document.raw)
        sealed = _sealed(scope, document, content, seal.DELETION)
        return Write(
            index, document.uid, document.wire, document.version, content, sealed, deletes=True, prepare=prepare
        )

    return prepare


def _sealed(scope: KeyScope, document: Document, content: Content, kind: int) -> Sealed:
    wire, version, parent = documents.wire_collection(scope, document), document.version + 1, short(document.proof)
    return seal.seal_content(scope.key(wire), kind, document.uid, version, content, parent=parent, wire=wire)


class BatchWrites:
    """A run over many items, batch by batch; the items are taken as they are needed."""

    def __init__(self, core: Core, scope: KeyScope, items: Iterator[tuple[str, Prepare]]) -> None:
        self._core = core
        self._scope = scope
        self._items = items
        self._held: tuple[str, Prepare] | None = None  # taken, and not in the batch before
        self._count = 0
        self.more = True

    def page(self) -> Effects[list[WriteResult]]:
        """Write the next batch; the results in the order of the items."""
        self._scope = documents.renewed(self._core, self._scope)
        batch, results = self._next_batch()
        results += yield from self._send(batch)
        return sorted(results, key=lambda result: result.index)

    def _next_batch(self) -> tuple[list[Write], list[WriteResult]]:
        """The next items, sealed; and the results of those that cannot be."""
        batch: list[Write] = []
        refused: list[WriteResult] = []
        uids: set[str] = set()
        operations = size = 0
        while (item := self._held or next(self._items, None)) is not None:
            uid, prepare = item
            try:
                write = prepare(self._count, self._scope)
            except (Invalid, DocumentNotFound) as error:
                refused.append(WriteResult(self._count, uid, None, error))
            else:
                operations, size = operations + 1 + write.deletes, size + write.size
                too_much = batch and (operations > MOST_OPERATIONS or size > MOST_BYTES)
                if too_much or write.uid in uids:  # what is refused must be so for what was stored before the batch
                    self._held = item
                    return batch, refused
                batch.append(write)
                uids.add(write.uid)
            self._held = None
            self._count += 1
        self.more = False
        return batch, refused

    def _send(self, batch: list[Write]) -> Effects[list[WriteResult]]:
        """Send a batch; if it is too large, in halves, and if some are refused, without these."""
        results: list[WriteResult] = []
        while batch:
            operations = [write.operations() for write in batch]
            mark = self._core.device.mark()
            try:
                wanted = list(chain.from_iterable(operations))
                call = requests.batches.run(self._scope.vault, wanted, self._scope.keyring)
                found = yield from self._core.session.send(call)
            except KeyringConflict:  # a key may have been rotated
                yield from keyrings.reload(self._core)
                was, self._scope = self._scope, documents.renewed(self._core, self._scope)
                if self._scope.keyring == was.keyring:
                    raise Tampered(keyrings.NO_NEWER) from None
                if self._scope.generation != was.generation:
                    batch = [write.prepare(write.index, self._scope) for write in batch]
                continue
            except BatchConflict as refused:
                failed = _failed(batch, operations, refused)
                for write in (one for one in batch if one.index in failed):
                    results += [(yield from self._settle(write))]
                batch = [write for write in batch if write.index not in failed]
                continue
            except PayloadTooLarge as refused:
                if len(batch) == 1:
                    return [*results, WriteResult(batch[0].index, batch[0].uid, None, refused)]
                half = len(batch) // 2
                results += yield from self._send(batch[:half])
                batch = batch[half:]
                continue
            return results + self._stored(batch, operations, found.results, mark)
        return results

    def _stored(
        self, batch: list[Write], operations: list[list[dict[str, Any]]], rows: list[model.Document], mark: int
    ) -> list[WriteResult]:
        """The results of a batch that was stored, if the server says exactly what was sent."""
        if len(rows) != sum(map(len, operations)):
            raise Tampered(_FEWER)
        results, answered, vault = [], iter(rows), self._scope.vault
        for write in batch:
            row, version = next(answered), write.base + 1
            documents.check_stored(row, write.sealed, vault, write.wire, write.uid, version)
            if write.deletes:
                row = documents.with_ciphertext(next(answered), write.sealed)
                documents.check_stored(row, write.sealed, vault, write.wire, write.uid, version + 1, deleted=True)
            document = documents.record_written(
                self._core, self._scope, row, write.content, mark, deleted=write.deletes
            )
            results.append(WriteResult(write.index, write.uid, document))
        return results

    def _settle(self, write: Write) -> Effects[WriteResult]:
        """The result of an item that was refused: done, if an attempt without a response has stored it."""
        try:
            now = yield from documents.get(self._core, self._scope, write.uid, deleted=True)
        except DocumentNotFound as error:
            refused: Refusal = error if write.base else UidTaken()
            return WriteResult(write.index, write.uid, None, refused)
        if (yield from self._was_stored(write, now)):
            return WriteResult(write.index, write.uid, now)
        if write.base == 0:
            return WriteResult(write.index, write.uid, None, UidTaken(now.version, now.updated_at))
        if now.version != write.base:
            return WriteResult(write.index, write.uid, None, DocumentConflict(now.version, now.updated_at))
        if now.purged:
            return WriteResult(write.index, write.uid, None, DocumentNotFound())
        raise Tampered(_UNEXPLAINED)

    def _was_stored(self, write: Write, now: Document) -> Effects[bool]:
        """Whether the document that is there now is this write, or follows on it."""
        if now.proof == write.sealed.hmac:
            return now.deleted or not write.deletes
        if now.version <= write.base + 1:
            return False
        history = yield from documents.read_history(self._core, self._scope.vault, 0, uid=write.uid)
        written = Link(write.base + 1, write.sealed.hmac)
        links = (link for _, link in history)
        return trace(Link(now.version, now.proof), written, links, seal.lineage) is Descent.FOLLOWS


def _failed(batch: list[Write], operations: list[list[dict[str, Any]]], refused: BatchConflict) -> set[int]:
    """The indexes of the items whose operations made the server refuse the batch."""
    owners = [write.index for write, made in zip(batch, operations, strict=True) for _ in made]
    named = (refused.details or {}).get("operations")
    failed: set[int] = set()
    for operation in named if isinstance(named, list) else []:
        index = operation.get("index") if isinstance(operation, dict) else None
        if isinstance(index, int) and 0 <= index < len(owners):
            failed.add(owners[index])
    if not failed:
        raise Tampered(_UNEXPLAINED)
    return failed
