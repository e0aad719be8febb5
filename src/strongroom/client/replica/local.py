"""Local reads and writes: the outbox on top of the rows received."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from strongroom import identifiers, model
from strongroom.client.format import seal
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import NO_PARENT, checked_uid
from strongroom.client.format.names import is_sealed
from strongroom.client.format.padding import Content
from strongroom.client.operations import documents
from strongroom.client.operations.documents import Document, KeyScope
from strongroom.client.replica.follow import follow_keys
from strongroom.client.replica.sizes import RequestLimit
from strongroom.client.replica.store.file import File
from strongroom.client.replica.store.records import DELETE, PUT, Entry
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken

if TYPE_CHECKING:
    from strongroom.client.operations.core import Core


class Local:
    """The local state of a replica."""

    def __init__(self, core: Core, file: File) -> None:
        self.core = core
        self.file = file
        self.timestamp = 0  # everything up to it was seen, in all vaults
        self.limit = RequestLimit(file)
        self.keyring_gaps = core.keyring_gaps  # those that a report has told
        # The epochs of the server, by vault, that the client outside the replica goes on with.
        self.epochs = {vault.uid: vault.epoch for vault in file.vaults.all()}
        self.reported = False  # whether the newest sync has returned its report
        core.on_lock.append(self.close)  # without keys there is nothing to read or to write

    def close(self) -> None:
        """Close the file."""
        try:
            if not self.file.is_closed:
                self.forget_told()
        finally:
            self.file.close()

    def forget_told(self) -> None:
        """Forget what was kept for the report of a sync, if a program has had that report."""
        if self.reported and self.file.is_writer and self.file.vaults.renamed():
            self.file.vaults.forget_renamed()
        self.reported = False

    def writable(self, scope: KeyScope) -> KeyScope:
        """The same place with the newest keys that the keyring in the file has.

        This client may have newer ones in memory. What is queued must open again from the file alone; where it was
        sealed under an older key, it is sealed anew when it is sent.
        """
        scope = documents.renewed(self.core, scope)
        keys, newest = scope.vault_keys, self.file.vaults.generation(scope.vault)
        if self.core.token is not None or keys is None or newest is None or keys.newest.generation <= newest:
            return scope
        older = msgspec.structs.replace(keys, keys=tuple(key for key in keys.keys if key.generation <= newest))
        name, sealed = None, True
        if scope.collection_keys is not None:
            name, sealed = scope.name, is_sealed(scope.collection_keys.wire)
        return msgspec.structs.replace(documents.key_scope(older, name, sealed=sealed), type=scope.type)

    def find(self, scope: KeyScope, uid: str) -> Document | None:
        """Find a document locally, deleted or not."""
        scope = documents.renewed(self.core, scope)
        entry = self.file.outbox.get(scope.vault, uid)
        if entry is not None:
            return self.open_entry(scope, entry)
        row = self.file.documents.get(scope.vault, uid)
        return None if row is None else self.open_local_row(scope, row)

    def open_local_row(self, scope: KeyScope, row: model.Document) -> Document:
        """A row as a document. The disk is not believed either."""
        keys = scope.key(row.collection)
        made = seal.open_past_document(keys, row)
        return documents.to_document(scope, row, made.content, keys.name, deleted=made.deleted)

    def open_entry(self, scope: KeyScope, entry: Entry) -> Document:
        """Decrypt an outbox entry."""
        return self.open_local_row(scope, _entry_row(entry))

    def _written(self, scope: KeyScope, entry: Entry, content: Content) -> Document:
        """What was sealed just now, and opened again to compare: it is not decrypted a second time."""
        name = scope.key(entry.collection).name
        return documents.to_document(scope, _entry_row(entry), content, name, deleted=entry.kind == DELETE)

    # What a program does

    def get(self, scope: KeyScope, uid: str, *, deleted: bool) -> Document:
        """One document."""
        follow_keys(self.core, self.file)
        scope = documents.renewed(self.core, scope)
        found = self.find(scope, checked_uid(uid))
        if found is None or (found.deleted and not deleted) or not scope.holds(found.wire):
            raise DocumentNotFound
        return found

    def iterate(self, scope: KeyScope) -> Iterator[Document]:
        """Iterate the live documents: those received, then those queued."""
        follow_keys(self.core, self.file)
        scope = documents.renewed(self.core, scope)
        queued_documents = self.file.outbox.documents()
        for row in self.file.documents.live(scope.vault, scope.filter):
            if (row.vault_uid, row.uid) not in queued_documents and scope.holds(row.collection):
                yield self.open_local_row(scope, row)
        for entry in self.file.outbox.entries(scope.vault):
            if entry.kind == PUT and scope.holds(entry.collection):
                yield self.open_entry(scope, entry)

    def create(self, scope: KeyScope, value: Any, uid: str | None) -> Document:
        """A new document."""
        return self._create(scope, [(uid, to_content(scope.encode(value)))])[0]

    def create_many(self, scope: KeyScope, values: Iterable[Any]) -> list[Document]:
        """New documents in one transaction: all or none."""
        return self._create(scope, [(None, to_content(scope.encode(value))) for value in values])

    def _create(self, scope: KeyScope, contents: list[tuple[str | None, Content]]) -> list[Document]:
        scope = self.writable(scope)
        made = [(self._new_entry(scope, uid, content), content) for uid, content in contents]
        with self.file.transaction():
            for entry, _ in made:
                if self.file.documents.exists(entry.vault, entry.uid):
                    raise UidTaken
                self.file.outbox.put(entry)
        return [self._written(scope, entry, content) for entry, content in made]

    def _new_entry(self, scope: KeyScope, uid: str | None, content: Content) -> Entry:
        keys = scope.write_keys()
        now = self.core.clock()
        uid = identifiers.new_uid(now) if uid is None else checked_uid(uid)
        sealed = seal.seal_content(keys, seal.DOCUMENT, uid, 1, content, parent=NO_PARENT)
        self.limit.require(uid, keys.wire, sealed)
        return Entry(
            vault=scope.vault,
            uid=uid,
            collection=keys.wire,
            kind=PUT,
            data=sealed.data,
            hmac=sealed.hmac,
            version=1,
            base=0,
            made_at=now,
        )

    def replace(self, scope: KeyScope, document: Document, value: Any) -> Document:
        """Replace the value of a document; a deleted one is revived."""
        scope, content = self.writable(scope), to_content(scope.encode(value))
        with self.file.transaction():
            entry = self._next_entry(scope, document)
            keys = scope.key(entry.collection)
            if entry.before is not None and _is_purged(entry.before):  # nothing is left there to follow on
                self.file.outbox.drop(scope.vault, document.uid)
                within = msgspec.structs.replace(documents.key_scope(keys), type=scope.type)
                return self._create(within, [(None, content)])[0]
            parent, wire, version = seal.parent_after(entry.before), entry.collection, entry.version
            sealed = seal.seal_content(keys, seal.DOCUMENT, entry.uid, version, content, parent=parent, wire=wire)
            self.limit.require(entry.uid, wire, sealed)
            entry = msgspec.structs.replace(entry, kind=PUT, data=sealed.data, hmac=sealed.hmac)
            self.file.outbox.put(entry)
        return self._written(scope, entry, content)

    def delete(self, scope: KeyScope, document: Document) -> Document:
        """Delete a document. One that was never sent is only removed from the outbox."""
        scope = self.writable(scope)
        if documents.checked_document(document).deleted:
            raise DocumentNotFound
        with self.file.transaction():
            entry = self._next_entry(scope, document)
            keys, last = scope.key(entry.collection), to_content(document.raw)
            parent, wire = seal.parent_after(entry.before), entry.collection
            sealed = seal.seal_deletion(keys, entry.uid, entry.version, last, parent=parent, wire=wire)
            if not self.limit.takes_deletion(entry.uid, wire, sealed):  # then without the content that is deleted
                sealed = seal.seal_deletion(keys, entry.uid, entry.version, parent=parent, wire=wire)
            entry = msgspec.structs.replace(entry, kind=DELETE, data=sealed.data, hmac=sealed.hmac)
            if entry.base == 0 and not self.file.outbox.was_sent(scope.vault, document.uid):
                self.file.outbox.drop(scope.vault, document.uid)
            else:
                self.file.outbox.put(entry)
        return self._written(scope, entry, last)

    def _next_entry(self, scope: KeyScope, document: Document) -> Entry:
        """The next entry of a document, if it is still as the caller saw it."""
        documents.wire_collection(scope, document)
        now = self.find(scope, document.uid)
        if now is None:
            raise DocumentNotFound
        if now.proof != document.proof:
            raise DocumentConflict(now.version, now.updated_at)
        entry = self.file.outbox.get(scope.vault, document.uid)
        if entry is not None:
            return msgspec.structs.replace(entry, made_at=self.core.clock())
        row = self.file.documents.get(scope.vault, document.uid)
        if row is None:
            raise DocumentNotFound
        return Entry(
            vault=scope.vault,
            uid=row.uid,
            collection=row.collection,
            kind=PUT,
            data="",
            hmac="",
            version=row.version + 1,
            base=row.version,
            before=row,
            made_at=self.core.clock(),
        )


def _entry_row(entry: Entry) -> model.Document:
    created_at = entry.made_at if entry.before is None else entry.before.created_at
    return model.Document(
        entry.uid,
        entry.vault,
        entry.collection,
        entry.data,
        entry.hmac,
        entry.version,
        created_at,
        entry.made_at,
        None,
    )


def _is_purged(row: model.Document) -> bool:
    return row.deleted_at is not None and not row.data
