"""Documents: create, read, list, replace, delete. A write locks the account and takes a timestamp of its clock."""

from __future__ import annotations

from contextlib import aclosing
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from strongroom import rules, store
from strongroom.actions import document_forms, document_operations
from strongroom.actions.account_write import begin
from strongroom.errors import DocumentNotFound, UidTaken, VaultNotFound
from strongroom.model import Document, Head
from strongroom.store.queries.documents import Show
from strongroom.store.write_forms import combinable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from strongroom.model import AccountLimits, Actor, Expected
    from strongroom.store import Tx
    from strongroom.store.queries.vaults import VaultSummary
    from strongroom.wire.requests import CreateDocument, PutDocument

D = TypeVar("D", Document, Head)


class ListQuery(Struct, frozen=True):
    """The parameters of a list. `tombstones` None: they are included where `since` is given."""

    since: int | None = None
    limit: int | None = None
    collection: str | None = None
    tombstones: bool | None = None
    wait: int = 0  # seconds of a long poll
    trash: bool = False  # only tombstones that can be restored

    @property
    def show(self) -> Show:
        """Which rows the query selects."""
        if self.trash:
            return Show.TRASH
        tombstones = self.since is not None if self.tombstones is None else self.tombstones
        return Show.ALL if tombstones else Show.LIVE


@combinable(document_forms.new_document)
async def create(
    tx: Tx, actor: Actor, limits: AccountLimits, vault_uid: str, wanted: CreateDocument
) -> tuple[Document, bool]:
    """Add a document; whether it is new. A retried create is idempotent: the stored document is returned."""
    rules.require_collection(actor, wanted.collection)
    rules.require_vault(actor, vault_uid)
    size, row_bytes = rules.octets(wanted.data, wanted.hmac), rules.row_bytes(wanted.collection)
    write = await begin(tx, actor, limits, documents=1, size=size, row_bytes=row_bytes)
    [document] = await document_operations.create(write, vault_uid, [wanted])
    if isinstance(document, UidTaken):
        raise document
    return await write.finish((document, write.changed), vault_uid)


async def get(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> Document:
    """One document, deleted or not."""
    rules.require_vault(actor, vault_uid)
    return await _in_scope(tx, actor, vault_uid, await store.documents.get(tx, actor.user_id, vault_uid, uid))


async def head(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> Head:
    """One document without its ciphertext, deleted or not."""
    rules.require_vault(actor, vault_uid)
    return await _in_scope(tx, actor, vault_uid, await store.documents.head(tx, actor.user_id, vault_uid, uid))


async def _in_scope(tx: Tx, actor: Actor, vault_uid: str, found: D | None) -> D:
    """A document that was found in the actor's scope; otherwise the vault or the document is not found."""
    if found is not None and rules.in_scope(actor, found.collection):
        return found
    await _clock(tx, actor, vault_uid)
    raise DocumentNotFound


async def is_up_to_date(tx: Tx, actor: Actor, vault_uid: str, wanted: ListQuery) -> bool:
    """Whether a list would be empty, by the vault's clock alone: no document is newer than the clock."""
    rules.collections_of(actor, wanted.collection)
    return wanted.since is not None and await _clock(tx, actor, vault_uid) <= wanted.since


async def has_changes(tx: Tx, actor: Actor, vault_uid: str, wanted: ListQuery) -> bool:
    """Whether a list would hold any document."""
    if await is_up_to_date(tx, actor, vault_uid, wanted):
        return False
    return await store.documents.any_after(
        tx,
        actor.user_id,
        vault_uid,
        min(wanted.since or 0, rules.MAX_INTEGER),
        rules.collections_of(actor, wanted.collection),
        wanted.show,
    )


class DocumentList:
    """A list of documents: read from one snapshot, or continued in later ones for a slow client.

    `last` is the cursor: the client asks next for what changed after it. That holds for a continued list too. A
    document that changes meanwhile is listed again, later in the order. A continued list of live documents ends before
    the first deletion since its start, and sets `more`: beyond that point, a client whose cursor is the last row would
    never learn of the deletion of a document that an earlier row showed as live.
    """

    def __init__(self, actor: Actor, vault_uid: str, wanted: ListQuery) -> None:
        self.last = wanted.since or 0
        self.count = 0
        self.more = False
        self._actor = actor
        self._vault_uid = vault_uid
        self._wanted = wanted
        self._started: VaultSummary | None = None
        self._mean_bytes: int | None = None

    async def read(self, tx: Tx) -> AsyncGenerator[list[Document], None]:
        """Pages of the documents after the cursor."""
        collections = rules.collections_of(self._actor, self._wanted.collection)
        rules.require_vault(self._actor, self._vault_uid)
        vault = await store.vaults.summary(tx, self._actor.user_id, self._vault_uid)
        started, self._started = self._started, self._started or vault
        if vault is None or (started is not None and started.created_at != vault.created_at):
            raise VaultNotFound
        self._mean_bytes = vault.mean_bytes
        if started is None or self._wanted.show is not Show.LIVE:
            return self._pages(tx, collections, self._wanted.show, self.last)
        return self._continued(tx, collections, started.updated_at)

    async def read_few(self, tx: Tx) -> list[Document] | None:
        """The documents after the cursor, if they are few and small; otherwise None: they are to be read in pages.

        No document is looked at if the vault's clock shows that nothing changed: the list is empty.
        """
        if await is_up_to_date(tx, self._actor, self._vault_uid, self._wanted):
            return []
        collections = rules.collections_of(self._actor, self._wanted.collection)
        since = min(self.last, rules.MAX_INTEGER)
        return await store.documents.few_after(
            tx, self._actor.user_id, self._vault_uid, since, collections, self._wanted.show, self._limit()
        )

    def take(self, page: list[Document]) -> list[Document]:
        """As much of a page as the limit allows; the cursor moves past it."""
        limit = self._wanted.limit
        if limit is not None and self.count + len(page) > limit:
            self.more = True
            del page[limit - self.count :]
        if page:
            self.count += len(page)
            self.last = page[-1].updated_at
        return page

    def _pages(
        self, tx: Tx, collections: Sequence[str] | None, show: Show, since: int, until: int | None = None
    ) -> AsyncGenerator[list[Document], None]:
        """The documents after `since`."""
        return store.documents.after(
            tx,
            self._actor.user_id,
            self._vault_uid,
            min(since, rules.MAX_INTEGER),
            collections,
            show=show,
            limit=self._limit(),
            mean_bytes=self._mean_bytes,
            until=until,
        )

    def _limit(self) -> int:
        """How many documents are to be read: one more than are wanted, to see whether there are more."""
        limit = self._wanted.limit
        return rules.MAX_INTEGER if limit is None else min(limit - self.count + 1, rules.MAX_INTEGER)

    async def _continued(
        self, tx: Tx, collections: Sequence[str] | None, started: int
    ) -> AsyncGenerator[list[Document], None]:
        """Live documents from before the list started; then changes since then, up to the first deletion."""
        if self.last < started:
            async with aclosing(self._pages(tx, collections, Show.LIVE, self.last, started)) as before:
                async for page in before:
                    yield page
        if self.more:
            return
        async with aclosing(self._pages(tx, collections, Show.ALL, max(self.last, started))) as since:
            async for page in since:
                live = list(takewhile(lambda document: document.deleted_at is None, page))
                if len(live) < len(page):
                    self.more = True
                    yield live
                    return
                yield page


@combinable(document_forms.replacement)
async def put(
    tx: Tx, actor: Actor, limits: AccountLimits, vault_uid: str, uid: str, wanted: PutDocument, expected: Expected
) -> Document:
    """Replace a document's ciphertext if the client saw its latest version; a deleted one is restored."""
    rules.require_vault(actor, vault_uid)
    write = await begin(tx, actor, limits)
    return await write.finish(await document_operations.put(write, vault_uid, uid, wanted, expected), vault_uid)


async def delete(
    tx: Tx, actor: Actor, limits: AccountLimits, vault_uid: str, uid: str, expected: Expected | None
) -> Document:
    """Turn a document into a tombstone."""
    rules.require_vault(actor, vault_uid)
    write = await begin(tx, actor, limits)
    tombstone = await document_operations.delete(write, vault_uid, uid, expected)
    shown = await store.documents.get(tx, actor.user_id, vault_uid, uid) if rules.may_read(actor) else None
    return await write.finish(shown or tombstone, vault_uid)


async def _clock(tx: Tx, actor: Actor, vault_uid: str) -> int:
    """The vault's clock; refuses a vault that the actor does not own or reach."""
    rules.require_vault(actor, vault_uid)
    clock = await store.vaults.clock(tx, actor.user_id, vault_uid)
    if clock is None:
        raise VaultNotFound
    return clock
