"""Documents: sealed before they leave, believed only where a key holder made them for this place and version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from strongroom import identifiers, model
from strongroom.client import calls, names, seal
from strongroom.client.content import to_content
from strongroom.client.encoding import checked_uid
from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.keys import CollectionKey, VaultKey
from strongroom.errors import DocumentNotFound

if TYPE_CHECKING:
    from strongroom.client.answers import Page
    from strongroom.client.core import Core
    from strongroom.client.seal import Opened, Sealed
    from strongroom.client.steps import Steps

_OTHER: Final = "The server answered with another document than the one that was asked for."
_KEPT: Final = "The server did not keep the document that it was given."
_ORDER: Final = "The server's list of documents is not in order, or shows a document twice."
_WITHHELD: Final = "The server left out a document that this device has seen, and that nobody deleted."
_FIRST: Final = 200  # documents of a first page
_MOST: Final = 2_000
_GOOD: Final = 4 << 20  # bytes that a page should have


class Document(Struct, frozen=True, kw_only=True):
    """A document, opened. `deleted` is a key holder's word; of a deletion, `value` is the last value if it is kept.

    `collection` is what people call it, `wire` what the server calls it.
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

    def __repr__(self) -> str:
        return f"Document(uid={self.uid!r}, version={self.version}, deleted={self.deleted})"


class Place(Struct, frozen=True, kw_only=True):
    """Where documents lie: one collection of a vault (`one`), or all that the key opens.

    `whole` is the vault's key; without it only the one collection can be opened.
    """

    vault: str
    whole: VaultKey | None
    one: CollectionKey | None
    name: str = ""
    cache: dict[str, tuple[CollectionKey, str]] = {}

    def key(self, wire: str) -> tuple[CollectionKey, str]:
        """The key of a collection, called as on the wire, and what people call it."""
        if self.one is not None and wire == self.one.collection:
            return self.one, self.name
        found = self.cache.get(wire)
        if found is None:
            if self.whole is None:
                raise Tampered(_OTHER)
            sealed = names.is_sealed(wire)
            name = names.open_collection_name(self.whole, wire) if sealed else wire
            found = self.cache[wire] = self.whole.collection(wire), name
        return found

    def writing(self) -> CollectionKey:
        """The key to write with."""
        if self.one is None:
            raise Locked("Say which collection to write in.")
        return self.one

    def __repr__(self) -> str:
        return f"Place(vault={self.vault!r})"


def place(vault: str, keys: VaultKey | CollectionKey, wire: str | None = None, name: str = "") -> Place:
    """Where documents lie, by the keys that open them."""
    if isinstance(keys, CollectionKey):
        return Place(vault=vault, whole=None, one=keys, name=name, cache={})
    one = None if wire is None else keys.collection(wire)
    return Place(vault=vault, whole=keys, one=one, name=name, cache={})


def create(core: Core, at: Place, value: Any, uid: str | None) -> Steps[Document]:
    """A new document. Its uid is made here, so that sending it twice does not make two."""
    keys = at.writing()
    uid = identifiers.new_uid(core.clock()) if uid is None else checked_uid(uid)
    sealed = seal.seal_document(keys, uid, 1, value)
    mark = core.device.mark()
    row = yield from core.session.ask_or_done(calls.create_document(at.vault, uid, keys.collection, sealed))
    if row is None:  # it was made by a sending whose answer was lost, and changed since
        return (yield from get(core, at, uid, deleted=True))
    _kept(row, sealed, uid, 1)
    return _believe(core, at, row, mark)


def get(core: Core, at: Place, uid: str, *, deleted: bool = False) -> Steps[Document]:
    """One document; a deleted one only where it is asked for."""
    uid = checked_uid(uid)
    for _ in range(10):
        mark = core.device.mark()
        row = yield from core.session.ask(calls.get_document(at.vault, uid))
        if row.uid != uid:
            raise Tampered(_OTHER)
        found = _judge(core, at, row, mark)
        if found is None:
            continue  # something newer was seen while this answer was under way
        if (found.deleted and not deleted) or (at.one is not None and row.collection != at.one.collection):
            raise DocumentNotFound
        return found
    raise Tampered


def replace(core: Core, at: Place, document: Document, value: Any) -> Steps[Document]:
    """Another value in the place of the one that was seen."""
    keys, _ = at.key(_wire(at, document))
    sealed = seal.seal_document(keys, document.uid, document.version + 1, value)
    return (yield from _put(core, at, document, sealed))


def delete(core: Core, at: Place, document: Document) -> Steps[Document]:
    """A notice that the document is deleted, and then the server's own deletion, which keeps the notice."""
    keys, _ = at.key(_wire(at, document))
    noticed = document.version + 1
    sealed = seal.seal_deletion(keys, document.uid, noticed, to_content(document.value))
    yield from _put(core, at, document, sealed)
    mark = core.device.mark()
    row = yield from core.session.ask_or_done(calls.delete_document(at.vault, document.uid, noticed))
    if row is None:
        return (yield from get(core, at, document.uid, deleted=True))
    if not row.data and row.hmac is None:
        row = _with(row, sealed)
    _kept(row, sealed, document.uid, noticed + 1, deleted=True)
    return _believe(core, at, row, mark)


def _put(core: Core, at: Place, document: Document, sealed: Sealed) -> Steps[Document]:
    mark = core.device.mark()
    row = yield from core.session.ask(calls.put_document(at.vault, document.uid, sealed, document.version))
    _kept(row, sealed, document.uid, document.version + 1)
    return _believe(core, at, row, mark)


def _wire(at: Place, document: Document) -> str:
    if document.vault != at.vault or (at.one is not None and document.wire != at.one.collection):
        raise DocumentNotFound
    return document.wire


def _with(row: model.Document, sealed: Sealed) -> model.Document:
    """A tombstone that was answered without the ciphertext that it keeps."""
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


def _kept(row: model.Document, sealed: Sealed, uid: str, version: int, *, deleted: bool = False) -> None:
    """Refuse an answer to a write that does not say exactly what was written."""
    if row.uid != uid or row.version != version or (row.deleted_at is not None) != deleted:
        raise Tampered(_KEPT)
    if row.data != sealed.data or row.hmac != sealed.hmac:
        raise Tampered(_KEPT)


def _judge(core: Core, at: Place, row: model.Document, mark: int) -> Document | None:
    """A row as a document, if it is believed; None if this device has meanwhile seen a newer one."""
    if row.vault_uid != at.vault:
        raise Tampered(_OTHER)
    keys, name = at.key(row.collection)
    opened = seal.open_document(keys, row)
    if not core.device.saw(row, mark, deleted=opened.deleted):
        return None
    return _document(row, opened, name)


def _believe(core: Core, at: Place, row: model.Document, mark: int) -> Document:
    """What was just written, as a document."""
    keys, name = at.key(row.collection)
    opened = seal.open_document(keys, row)
    core.device.saw(row, mark, deleted=opened.deleted)
    return _document(row, opened, name)


def _document(row: model.Document, opened: Opened, name: str) -> Document:
    return Document(
        uid=row.uid,
        vault=row.vault_uid,
        collection=name,
        wire=row.collection,
        value=opened.value,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted=opened.deleted,
    )


class Listing:
    """A walk through the documents of a place, page by page; each document once.

    `cursor` is the moment up to which everything was seen. Without `since`, only the living are walked through, and
    what this device has seen before must be among them, unless somebody who has the key deleted it.
    """

    def __init__(self, core: Core, at: Place, since: int | None) -> None:
        self._core = core
        self._at = at
        self._since = since
        self._seen: dict[str, int] = {}
        self._limit: int | None = None if core.bare else _FIRST
        self._expected = core.device.live(at.vault, self._wire()) if since is None else {}
        self.cursor = since or 0
        self.more = True

    def _wire(self) -> str | None:
        return None if self._at.one is None else self._at.one.collection

    def page(self) -> Steps[list[Document]]:
        """The next documents; `more` says whether there is another page."""
        mark = self._core.device.mark()
        page = yield from self._core.session.ask(self._call())
        found = []
        for row in self._in_order(page):
            document = _judge(self._core, self._at, row, mark)
            if document is None:
                document = yield from get(self._core, self._at, row.uid, deleted=True)
            if self._since is None and (document.deleted or row.uid in self._seen):
                self._seen[row.uid] = row.version
                continue
            self._seen[row.uid] = row.version
            found.append(document)
        self._adapt(page)
        if not self.more:
            yield from self._miss()
        return found

    def _call(self) -> calls.Call[Page]:
        start = self._since is None and not self._seen
        return calls.list_documents(
            self._at.vault,
            collection=self._wire(),
            since=None if start else self.cursor,
            limit=self._limit,
            deleted=None if self._core.bare else self._since is not None,
        )

    def _in_order(self, page: Page) -> Iterator[model.Document]:
        """The rows of a page, if they are in the order that is promised."""
        if self._core.bare:
            yield from self._in_any_order(page)
            return
        if self._limit is not None and len(page.documents) > self._limit:
            raise Tampered(_ORDER)
        for row in page.documents:
            if row.updated_at <= self.cursor or self._seen.get(row.uid, 0) >= row.version:
                raise Tampered(_ORDER)
            if self._at.one is not None and row.collection != self._at.one.collection:
                raise Tampered(_OTHER)
            if self._since is None and row.deleted_at is not None:
                raise Tampered(_ORDER)
            self.cursor = row.updated_at
            yield row
        if page.next != self.cursor or page.has_more is None or (page.has_more and not page.documents):
            raise Tampered(_ORDER)
        self.more = page.has_more

    def _in_any_order(self, page: Page) -> Iterator[model.Document]:
        """The bare specification promises no order and no pages: all of them come at once."""
        for row in page.documents:
            if row.uid in self._seen or (self._since is not None and row.updated_at <= self._since):
                raise Tampered(_ORDER)
            self.cursor = max(self.cursor, row.updated_at)
            yield row
        self.more = False

    def _adapt(self, page: Page) -> None:
        """A page should have a good size: small documents come in thousands, large ones a few at a time."""
        if self._limit is not None and page.documents:
            average = sum(len(row.data) for row in page.documents) // len(page.documents) + 300
            self._limit = max(1, min(_MOST, _GOOD // average, self._limit * 4))

    def _miss(self) -> Steps[None]:
        """Ask for what this device knows and the list did not have: it must be deleted, or have come after the list."""
        for uid, known in self._expected.items():
            if uid in self._seen:
                continue
            try:
                document = yield from get(self._core, self._at, uid, deleted=True)
            except DocumentNotFound:
                if self._core.bare:
                    continue  # it may hide what is deleted
                raise RolledBack(_WITHHELD) from None
            if not document.deleted and (document.version == known.row.version or document.updated_at <= self.cursor):
                raise RolledBack(_WITHHELD)
