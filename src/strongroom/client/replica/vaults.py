"""Vaults and collections of a replica: reads and writes on this device, without a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, overload

from strongroom.client.format.encoding import checked_text
from strongroom.client.operations import documents, vaults
from strongroom.client.operations.value_types import T
from strongroom.client.replica import unlock
from strongroom.items import ITEMS, Item, find_item

if TYPE_CHECKING:
    from strongroom.client.operations.documents import Document, KeyScope
    from strongroom.client.operations.vaults import OpenVault
    from strongroom.client.replica.local import Local


class ReplicaVault:
    """A vault on this device."""

    def __init__(self, local: Local, opened: OpenVault) -> None:
        self._local = local
        self._opened = opened
        self._scope = documents.key_scope(opened.keys)

    def __repr__(self) -> str:
        return f"ReplicaVault(uid={self.uid!r})"

    @property
    def uid(self) -> str:
        """The vault's uid."""
        return self._opened.uid

    @property
    def name(self) -> str:
        """Its plaintext name, by now: a sync may have changed that of a vault that was made here."""
        return vaults.renewed(self._local.core, self._opened).name

    @overload
    def collection(self, name: str) -> ReplicaCollection: ...
    @overload
    def collection(self, name: str, *, type: type[T]) -> ReplicaCollection[T]: ...
    def collection(self, name: str, *, type: Any = None) -> ReplicaCollection[Any]:  # noqa: A002
        """A collection of documents. `type` is that of their values."""
        name = checked_text(name, "collection")
        scope = documents.key_scope(self._opened.keys, name, sealed=self._opened.sealed, values=type)
        return ReplicaCollection(self._local, scope)

    def items(self) -> ReplicaItems:
        """The items of the vault: logins, notes, keys and so on, in its collection `items`."""
        scope = documents.key_scope(self._opened.keys, ITEMS, sealed=self._opened.sealed, values=Item)
        return ReplicaItems(self._local, scope)

    def blob(self) -> Any:
        """The vault's blob, as it was when this device last saw it; None where there is none."""
        return unlock.blob(self._local, self._opened)

    def __iter__(self) -> Iterator[Document]:
        """Iterate the live documents of every collection."""
        return self._local.iterate(self._scope)


class ReplicaCollection(Generic[T]):
    """Documents of one kind, on this device. What is written here is sent with the next sync."""

    def __init__(self, local: Local, scope: KeyScope) -> None:
        self._local = local
        self._scope = scope

    def __repr__(self) -> str:
        return f"ReplicaCollection(vault={self._scope.vault!r})"

    @property
    def name(self) -> str:
        """Its plaintext name."""
        return self._scope.name

    def create(self, value: T, *, uid: str | None = None) -> Document[T]:
        """A new document."""
        return self._local.create(self._scope, value, uid)

    def create_many(self, values: Iterable[T]) -> list[Document[T]]:
        """New documents in one transaction: all are on disk when the call returns, or none. Faster than one by one."""
        return self._local.create_many(self._scope, values)

    def get(self, uid: str, *, deleted: bool = False) -> Document[T]:
        """One document; a deleted one only if `deleted` is True."""
        return self._local.get(self._scope, uid, deleted=deleted)

    def replace(self, document: Document[T], value: T) -> Document[T]:
        """Another value. If the document has changed since you read it, that is a DocumentConflict."""
        return self._local.replace(self._scope, document, value)

    def delete(self, document: Document[T]) -> Document[T]:
        """Delete a document, if it has not changed since you read it."""
        return self._local.delete(self._scope, document)

    def __iter__(self) -> Iterator[Document[T]]:
        """Iterate the live documents."""
        return self._local.iterate(self._scope)


class ReplicaItems(ReplicaCollection[Item]):
    """The items of a vault, on this device."""

    def list(self) -> list[Document[Item]]:
        """All items."""
        return [*self]

    def find(self, name: str) -> Document[Item]:
        """The item with this uid or this title; capitals do not matter where no title is the same.

        ItemNotFound if there is none; AmbiguousName, with the uids, if there are several.
        """
        return find_item(name, self)
