"""Reading and writing without a server: what was received, and over it what waits to be sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from strongroom import identifiers, model
from strongroom.client.format import seal
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import checked_uid
from strongroom.client.operations import documents
from strongroom.client.operations.documents import Document, Place
from strongroom.client.replica.file import DELETE, PUT, Entry, File
from strongroom.errors import DocumentConflict, DocumentNotFound, UidTaken

if TYPE_CHECKING:
    from strongroom.client.operations.core import Core


class Local:
    """The copy of one account on one device."""

    def __init__(self, core: Core, file: File) -> None:
        self.core = core
        self.file = file
        self.moment = 0  # everything up to it was seen, in all vaults

    def find(self, at: Place, uid: str) -> Document | None:
        """A document as it is here, deleted or not."""
        entry = self.file.entry(at.vault, uid)
        if entry is not None:
            return self.opened_entry(at, entry)
        row = self.file.row(at.vault, uid)
        return None if row is None else self.opened_row(at, row)

    def opened_row(self, at: Place, row: model.Document) -> Document:
        """A row as a document. The disk is not believed either."""
        keys, name = at.key(row.collection)
        return documents.opened(row, seal.open_document(keys, row), name)

    def opened_entry(self, at: Place, entry: Entry) -> Document:
        """A change that waits, as the document that it will be."""
        row = model.Document(
            entry.uid,
            entry.vault,
            entry.collection,
            entry.data,
            entry.hmac,
            entry.version,
            entry.made_at if entry.before is None else entry.before.created_at,
            entry.made_at,
            None,
        )
        return self.opened_row(at, row)

    # What a program does

    def get(self, at: Place, uid: str, *, deleted: bool) -> Document:
        """One document."""
        found = self.find(at, checked_uid(uid))
        if found is None or (found.deleted and not deleted) or not _within(at, found.wire):
            raise DocumentNotFound
        return found

    def walk(self, at: Place) -> Iterator[Document]:
        """Every living document: those that were received, and then those that wait to be sent."""
        waiting = self.file.waiting()
        for row in self.file.rows(at.vault, None if at.one is None else at.one.collection):
            if (row.vault_uid, row.uid) not in waiting:
                yield self.opened_row(at, row)
        for entry in self.file.entries(at.vault):
            if entry.kind == PUT and _within(at, entry.collection):
                yield self.opened_entry(at, entry)

    def create(self, at: Place, value: Any, uid: str | None) -> Document:
        """A new document."""
        keys = at.writing()
        now = self.core.clock()
        uid = identifiers.new_uid(now) if uid is None else checked_uid(uid)
        sealed = seal.seal_document(keys, uid, 1, value)
        entry = Entry(
            vault=at.vault,
            uid=uid,
            collection=keys.collection,
            kind=PUT,
            data=sealed.data,
            hmac=sealed.hmac,
            version=1,
            base=0,
            made_at=now,
        )
        with self.file.change():
            if self.find(at, uid) is not None:
                raise UidTaken
            self.file.put_entry(entry)
        return self.opened_entry(at, entry)

    def replace(self, at: Place, document: Document, value: Any) -> Document:
        """Another value in the place of the one that was seen; a deleted document is revived."""
        with self.file.change():
            entry = self._follow(at, document)
            keys, _ = at.key(entry.collection)
            if entry.before is not None and _is_purged(entry.before):  # nothing is left there to follow on
                self.file.drop_entry(at.vault, document.uid)
                return self.create(documents.place(at.vault, keys, name=document.collection), value, None)
            sealed = seal.seal_document(keys, entry.uid, entry.version, value)
            entry = msgspec.structs.replace(entry, kind=PUT, data=sealed.data, hmac=sealed.hmac)
            self.file.put_entry(entry)
        return self.opened_entry(at, entry)

    def delete(self, at: Place, document: Document) -> Document:
        """A deletion. What was never sent leaves no trace."""
        if document.deleted:
            raise DocumentNotFound
        with self.file.change():
            entry = self._follow(at, document)
            keys, _ = at.key(entry.collection)
            sealed = seal.seal_deletion(keys, entry.uid, entry.version, to_content(document.value))
            entry = msgspec.structs.replace(entry, kind=DELETE, data=sealed.data, hmac=sealed.hmac)
            if entry.base == 0 and not self.file.was_sent(at.vault, document.uid):
                self.file.drop_entry(at.vault, document.uid)
            else:
                self.file.put_entry(entry)
        return self.opened_entry(at, entry)

    def _follow(self, at: Place, document: Document) -> Entry:
        """What is to follow on a document, if it is still as it was seen."""
        documents.wire_of(at, document)
        now = self.find(at, document.uid)
        if now is None:
            raise DocumentNotFound
        if now.proof != document.proof:
            raise DocumentConflict(now.version, now.updated_at)
        entry = self.file.entry(at.vault, document.uid)
        if entry is not None:
            return msgspec.structs.replace(entry, made_at=self.core.clock())
        row = self.file.row(at.vault, document.uid)
        if row is None:
            raise DocumentNotFound
        return Entry(
            vault=at.vault,
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


def _within(at: Place, wire: str) -> bool:
    return at.one is None or wire == at.one.collection


def _is_purged(row: model.Document) -> bool:
    return row.deleted_at is not None and not row.data
