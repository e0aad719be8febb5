"""Paginated lists of documents, checked for order and completeness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from strongroom import model
from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.net import requests
from strongroom.client.operations.documents import WITHHELD, WRONG_DOCUMENT, Document, KeyScope, get, open_row, renewed
from strongroom.errors import DocumentNotFound

if TYPE_CHECKING:
    from strongroom.client.net.call import Call
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.device import KnownDocument
    from strongroom.wire.responses import Documents

_ORDER: Final = "The server's list of documents is not in order, or shows a document twice."
FIRST_LIMIT: Final = 200  # documents of a first page
_MAX_LIMIT: Final = 2_000
_TARGET_BYTES: Final = 2 << 20  # bytes that a page should have


def check_page(page: Documents, scope: KeyScope, since: int, limit: int, *, deleted: bool) -> int:
    """Refuse a page that does not match its request or is out of order; returns the timestamp that it ends at."""
    if len(page.documents) > limit:
        raise Tampered(_ORDER)
    timestamp, vault, collection = since, scope.vault, scope.filter
    for row in page.documents:
        if row.updated_at <= timestamp or (row.deleted_at is not None and not deleted):
            raise Tampered(_ORDER)
        if row.vault_uid != vault or (collection is not None and row.collection != collection):
            raise Tampered(WRONG_DOCUMENT)
        timestamp = row.updated_at
    if len({row.uid for row in page.documents}) != len(page.documents):
        raise Tampered(_ORDER)
    if page.next != timestamp or (page.has_more and not page.documents):
        raise Tampered(_ORDER)
    return timestamp


def next_limit(page: Documents, limit: int) -> int:
    """The page size of the next request, by the average size of documents."""
    if not page.documents:
        return limit
    average = sum(len(row.data) for row in page.documents) // len(page.documents) + 300
    return max(1, min(_MAX_LIMIT, _TARGET_BYTES // average, limit * 4))


class Listing:
    """A cursor over the documents of a scope, page by page; each document once.

    `cursor` is the timestamp up to which everything was seen. Without `since`, only live documents are returned. What
    this device has seen before must be among them, unless a key holder has deleted or changed it meanwhile. With
    `trash`, only deleted documents are returned whose content is still there; which those are is the server's word.
    A `survey` returns notices of deletion among the live documents too, and nothing of it is remembered.
    """

    def __init__(
        self, core: Core, scope: KeyScope, since: int | None, *, trash: bool = False, survey: bool = False
    ) -> None:
        self._core = core
        self._scope = renewed(core, scope)
        self._since = since
        self._trash = trash
        self._survey = survey
        self._deleted = trash or since is not None  # whether tombstones are wanted
        self._seen: dict[str, int] = {}
        self._given: dict[str, int] = {}  # before the list began again
        self._limit = FIRST_LIMIT
        self._expected = self._expected_documents()
        self.cursor = since or 0
        self.more = True

    def _expected_documents(self) -> dict[str, KnownDocument]:
        """The documents that this device has seen, which the list must therefore contain."""
        if self._trash:
            return {}
        if self._since is None:
            seen = self._core.device.live(self._scope.vault)
        else:
            seen = self._core.device.after(self._scope.vault, self._since)
        return {uid: known for uid, known in seen.items() if self._scope.holds(known.collection)}

    def page(self) -> Effects[list[Document]]:
        """The next documents; `more` says whether there is another page."""
        mark = self._core.device.mark()
        page = yield from self._core.session.send(self._call())
        found = []
        for row in self._in_order(page):
            if self._given.get(row.uid) == row.version:
                self._scope.require_floor(row)
                self._seen[row.uid] = row.version
                continue
            if not self._scope.holds(row.collection):
                continue
            if self._scope.is_beyond(row) and self._core.device.known(row.vault_uid, row.uid) is None:
                self._seen[row.uid] = row.version
                continue
            document = yield from open_row(self._core, self._scope, row, mark, keep=not self._survey)
            if document is None:
                document = yield from get(self._core, self._scope, row.uid, deleted=True)
            unwanted = document.deleted != self._trash and not self._survey
            if self._since is None and (unwanted or row.uid in self._seen):
                self._seen[row.uid] = row.version
                continue
            self._seen[row.uid] = row.version
            found.append(document)
        self._limit = next_limit(page, self._limit)
        scope = renewed(self._core, self._scope)
        if scope is not self._scope:
            self._begin_again(scope)
        elif not self.more:
            yield from self._check_missing()
        return found

    def _begin_again(self, scope: KeyScope) -> None:
        """The vault's key was rotated meanwhile: the collection has another name on the wire as well."""
        self._scope, self._given, self._seen = scope, self._given | self._seen, {}
        self.cursor, self.more = self._since or 0, True

    def _call(self) -> Call[Documents]:
        start = self._since is None and not self._seen
        return requests.documents.list_page(
            self._scope.vault,
            collection=self._scope.filter,
            since=None if start else self.cursor,
            limit=self._limit,
            deleted=self._deleted,
            trash=self._trash,
        )

    def _in_order(self, page: Documents) -> Iterator[model.Document]:
        """The rows of a page, checked for order."""
        cursor = check_page(page, self._scope, self.cursor, self._limit, deleted=self._deleted)
        for row in page.documents:
            if self._trash and (row.deleted_at is None or not row.data):
                raise Tampered(_ORDER)
            if self._seen.get(row.uid, 0) >= row.version:
                raise Tampered(_ORDER)
            yield row
        self.cursor = cursor
        self.more = page.has_more

    def _check_missing(self) -> Effects[None]:
        """Get each expected document that the list left out: it must be deleted, or changed after the list."""
        for uid, known in self._expected.items():
            if uid in self._seen:
                continue
            try:
                document = yield from get(self._core, self._scope, uid, deleted=True)
            except DocumentNotFound:
                if self._core.device.known(self._scope.vault, uid) is None:
                    continue  # its vault was deleted here meanwhile
                raise RolledBack(WITHHELD) from None
            if document.deleted and self._since is None:
                continue
            if document.version == known.row.version or document.updated_at <= self.cursor:
                raise RolledBack(WITHHELD)
