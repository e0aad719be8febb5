"""Lists of documents: page by page, in the order that is promised, and nothing left out that this device has seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from strongroom import model
from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.net import requests
from strongroom.client.operations.documents import OTHER, WITHHELD, Document, Place, get, judge
from strongroom.errors import DocumentNotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.device import Known
    from strongroom.wire.responses import Documents

_ORDER: Final = "The server's list of documents is not in order, or shows a document twice."
FIRST: Final = 200  # documents of a first page
_MOST: Final = 2_000
_GOOD: Final = 4 << 20  # bytes that a page should have


def check_page(page: Documents, at: Place, since: int, limit: int, *, deleted: bool) -> int:
    """Refuse a page that is not what was asked for, in the order that is promised; give the moment that it ends at."""
    if len(page.documents) > limit:
        raise Tampered(_ORDER)
    moment = since
    wire = None if at.one is None else at.one.collection
    for row in page.documents:
        if row.updated_at <= moment or (row.deleted_at is not None and not deleted):
            raise Tampered(_ORDER)
        if row.vault_uid != at.vault or (wire is not None and row.collection != wire):
            raise Tampered(OTHER)
        moment = row.updated_at
    if len({row.uid for row in page.documents}) != len(page.documents):
        raise Tampered(_ORDER)
    if page.next != moment or (page.has_more and not page.documents):
        raise Tampered(_ORDER)
    return moment


def next_limit(page: Documents, limit: int) -> int:
    """How many to ask for next: small documents come in thousands, large ones a few at a time."""
    if not page.documents:
        return limit
    average = sum(len(row.data) for row in page.documents) // len(page.documents) + 300
    return max(1, min(_MOST, _GOOD // average, limit * 4))


class Listing:
    """A walk through the documents of a place, page by page; each document once.

    `cursor` is the moment up to which everything was seen. Without `since`, only the living are walked through. What
    this device has seen before must be among them, unless somebody who has the key deleted it or changed it meanwhile.
    """

    def __init__(self, core: Core, at: Place, since: int | None) -> None:
        self._core = core
        self._at = at
        self._since = since
        self._seen: dict[str, int] = {}
        self._limit = FIRST
        self._expected = self._to_expect()
        self.cursor = since or 0
        self.more = True

    def _to_expect(self) -> dict[str, Known]:
        """What this device knows and the list must therefore have."""
        if self._since is None:
            return self._core.device.live(self._at.vault, self._wire())
        return self._core.device.after(self._at.vault, self._wire(), self._since)

    def _wire(self) -> str | None:
        return None if self._at.one is None else self._at.one.collection

    def page(self) -> Effects[list[Document]]:
        """The next documents; `more` says whether there is another page."""
        mark = self._core.device.mark()
        page = yield from self._core.session.send(self._call())
        found = []
        for row in self._in_order(page):
            document = judge(self._core, self._at, row, mark)
            if document is None:
                document = yield from get(self._core, self._at, row.uid, deleted=True)
            if self._since is None and (document.deleted or row.uid in self._seen):
                self._seen[row.uid] = row.version
                continue
            self._seen[row.uid] = row.version
            found.append(document)
        self._limit = next_limit(page, self._limit)
        if not self.more:
            yield from self._miss()
        return found

    def _call(self) -> requests.Call[Documents]:
        start = self._since is None and not self._seen
        return requests.list_documents(
            self._at.vault,
            collection=self._wire(),
            since=None if start else self.cursor,
            limit=self._limit,
            deleted=self._since is not None,
        )

    def _in_order(self, page: Documents) -> Iterator[model.Document]:
        """The rows of a page, if they are in the order that is promised."""
        cursor = check_page(page, self._at, self.cursor, self._limit, deleted=self._since is not None)
        for row in page.documents:
            if self._seen.get(row.uid, 0) >= row.version:
                raise Tampered(_ORDER)
            yield row
        self.cursor = cursor
        self.more = page.has_more

    def _miss(self) -> Effects[None]:
        """Ask for what this device knows and the list did not have: it must be deleted, or have come after the list."""
        for uid, known in self._expected.items():
            if uid in self._seen:
                continue
            try:
                document = yield from get(self._core, self._at, uid, deleted=True)
            except DocumentNotFound:
                continue  # its vault was deleted here meanwhile
            if document.deleted and self._since is None:
                continue
            if document.version == known.row.version or document.updated_at <= self.cursor:
                raise RolledBack(WITHHELD)
