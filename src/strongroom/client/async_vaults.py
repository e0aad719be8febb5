"""What an asynchronous client opens: vaults, their blobs and their collections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Generic, overload

from strongroom.client.async_iterators import AsyncChanges, AsyncPart, AsyncTrash, AsyncWrites
from strongroom.client.format.encoding import checked_cursor, checked_text
from strongroom.client.net.async_driver import AsyncDriver
from strongroom.client.operations import collections, documents, history, rotation, sessions_and_keys, trash, vaults
from strongroom.client.operations.batches import BatchWrites, creations, deletions, replacements
from strongroom.client.operations.core import Core
from strongroom.client.operations.documents import Document, KeyScope
from strongroom.client.operations.history import Version
from strongroom.client.operations.rotation import Rotation
from strongroom.client.operations.sessions_and_keys import Permissions
from strongroom.client.operations.value_types import T
from strongroom.client.operations.vaults import Blob, OpenVault
from strongroom.items import ITEMS, Item, find_item


class AsyncVault(AsyncPart):
    """A vault: collections of documents, and perhaps a blob."""

    def __init__(self, core: Core, driver: AsyncDriver, opened: OpenVault) -> None:
        super().__init__(core, driver)
        self._opened = opened
        self._scope = documents.key_scope(opened.keys)
        self.blob = AsyncVaultBlob(core, driver, opened)

    def __repr__(self) -> str:
        return f"Vault(uid={self.uid!r})"

    @property
    def uid(self) -> str:
        """The vault's uid."""
        return self._opened.uid

    @property
    def name(self) -> str:
        """Its plaintext name."""
        return self._opened.name

    @overload
    def collection(self, name: str) -> AsyncCollection: ...
    @overload
    def collection(self, name: str, *, type: type[T]) -> AsyncCollection[T]: ...
    def collection(self, name: str, *, type: Any = None) -> AsyncCollection[Any]:  # noqa: A002
        """A collection of documents. It needs no making: it is there when it holds a document.

        `type` is that of the values: a `msgspec.Struct`, a dataclass, a model of pydantic, or a type made of these.
        Without it, values are JSON or bytes.
        """
        name = checked_text(name, "collection")
        scope = documents.key_scope(self._opened.keys, name, sealed=self._opened.sealed, values=type)
        return AsyncCollection(self._core, self._driver, scope)

    def items(self) -> AsyncItems:
        """The items of the vault: logins, notes, keys and so on, in its collection `items`."""
        scope = documents.key_scope(self._opened.keys, ITEMS, sealed=self._opened.sealed, values=Item)
        return AsyncItems(self._core, self._driver, scope)

    async def collections(self) -> list[AsyncCollection]:
        """The collections that hold documents, by name."""
        found = await self._run(collections.list_collections(self._core, self._opened))
        return [self.collection(name) for name in found]

    @property
    def trash(self) -> AsyncTrash:
        """The deleted documents of every collection that can be revived."""
        return AsyncTrash(self._core, self._driver, self._scope)

    def __aiter__(self) -> AsyncIterator[Document]:
        """Iterate the live documents of every collection."""
        return aiter(AsyncChanges(self._core, self._driver, self._scope, None))

    def since(self, cursor: int) -> AsyncChanges:
        """The changes after a cursor, in all collections; deletions included."""
        return AsyncChanges(self._core, self._driver, self._scope, checked_cursor(cursor))

    async def rename(self, name: str) -> None:
        """Give the vault another name."""
        self._opened = await self._run(vaults.rename_vault(self._core, self._opened, name))

    async def rotate(self, *, progress: Callable[[int, int], None] | None = None) -> Rotation:
        """Make a new key for this vault, and encrypt everything in it again. Tokens for it are revoked.

        Of the result, `unseen` is what this device had not read before: `finish_rotation` of the client takes it.
        """
        self._opened, made = await self._run(rotation.rotate_vault(self._core, self._opened, progress))
        self._scope = documents.key_scope(self._opened.keys)
        self.blob = AsyncVaultBlob(self._core, self._driver, self._opened)
        return made

    async def delete(self) -> None:
        """Delete the vault and everything in it, at once and for good."""
        await self._run(vaults.delete_vault(self._core, self._opened))

    async def token(
        self,
        name: str,
        *,
        permissions: Permissions | None = None,
        expires_at: int | None = None,
        older_keys: bool = False,
    ) -> str:
        """A token (`srv_…`) that opens this vault and nothing else: an API key and the vault's key in one.

        With `older_keys` it also opens what was written before the last rotation and not again since: versions in the
        history, and changes that wait in the replica of an agent.
        """
        opened = vaults.renewed(self._core, self._opened)
        return await self._run(
            sessions_and_keys.make_token(
                self._core,
                name,
                opened.keys,
                opened.name,
                permissions,
                expires_at,
                sealed=opened.sealed,
                older_keys=older_keys,
            )
        )


class AsyncVaultBlob(AsyncPart):
    """The one value that a vault may carry besides its documents."""

    def __init__(self, core: Core, driver: AsyncDriver, opened: OpenVault) -> None:
        super().__init__(core, driver)
        self._opened = opened

    async def get(self) -> Blob | None:
        """The blob, if there is one."""
        return await self._run(vaults.get_blob(self._core, self._opened))

    async def put(self, value: T, *, after: Blob | None = None) -> Blob[T]:
        """Set the blob, if it is still the one that this client has last read or written; otherwise VaultConflict.

        A client that has read none sets the first one only. `after` is the blob that this one follows on, in the place
        of the last one read: `after=vault.blob.get()` replaces whatever is there. The value is JSON, bytes, or of a
        type that a collection may have.
        """
        return await self._run(vaults.put_blob(self._core, self._opened, value, after))

    async def history(self) -> list[Version]:
        """The versions of the vault whose blob was replaced and is kept, newest first: the server's word."""
        return await self._run(history.of_blob(self._core, self._opened))

    async def get_version(self, version: int) -> Blob:
        """The blob as it was at a version of the vault, verified."""
        return await self._run(history.get_blob_version(self._core, self._opened, version))

    async def restore(self, version: int, *, after: Blob | None = None) -> Blob:
        """Set the blob to what it was at a version. `after` is as for `put`."""
        return await self._run(history.restore_blob(self._core, self._opened, version, after))


class AsyncCollection(AsyncPart, Generic[T]):
    """Documents of one kind. Their values are JSON or bytes, or of the type `T` that the collection was opened with."""

    def __init__(self, core: Core, driver: AsyncDriver, scope: KeyScope) -> None:
        super().__init__(core, driver)
        self._scope = scope

    def __repr__(self) -> str:
        return f"Collection(vault={self._scope.vault!r})"

    @property
    def name(self) -> str:
        """Its plaintext name."""
        return self._scope.name

    async def create(self, value: T, *, uid: str | None = None) -> Document[T]:
        """A new document."""
        return await self._run(documents.create(self._core, self._scope, value, uid))

    async def get(self, uid: str, *, deleted: bool = False) -> Document[T]:
        """One document; a deleted one only if `deleted` is True."""
        return await self._run(documents.get(self._core, self._scope, uid, deleted=deleted))

    async def replace(self, document: Document[T], value: T) -> Document[T]:
        """Another value. If the document has changed since you read it, that is a DocumentConflict.

        A deleted document is revived.
        """
        return await self._run(documents.replace(self._core, self._scope, document, value))

    async def delete(self, document: Document[T]) -> Document[T]:
        """Delete a document, if it has not changed since you read it."""
        return await self._run(documents.delete(self._core, self._scope, document))

    def create_many(self, values: Iterable[T], *, uids: Iterable[str] | None = None) -> AsyncWrites[T]:
        """New documents, in batches. With `uids`, one for each value, what was created before is not created again."""
        return AsyncWrites(
            self._core, self._driver, BatchWrites(self._core, self._scope, creations(self._core, values, uids))
        )

    def replace_many(self, changes: Iterable[tuple[Document[T], T]]) -> AsyncWrites[T]:
        """Other values for documents, in batches; each as for `replace`."""
        return AsyncWrites(self._core, self._driver, BatchWrites(self._core, self._scope, replacements(changes)))

    def delete_many(self, documents: Iterable[Document[T]]) -> AsyncWrites[T]:
        """Delete documents, in batches; each as for `delete`."""
        return AsyncWrites(self._core, self._driver, BatchWrites(self._core, self._scope, deletions(documents)))

    async def history(self, uid: str) -> list[Version]:
        """The versions of a document that were replaced and are kept, newest first."""
        return await self._run(history.of_document(self._core, self._scope, uid))

    async def get_version(self, uid: str, version: int) -> Document[T]:
        """A document as it was at a version, deleted or not."""
        return await self._run(history.get_version(self._core, self._scope, uid, version))

    async def restore(self, document: Document[T], version: int) -> Document[T]:
        """Replace a document by what it was at a version, if it has not changed since you read it."""
        return await self._run(history.restore(self._core, self._scope, document, version))

    @property
    def trash(self) -> AsyncTrash[T]:
        """The deleted documents that can be revived."""
        return AsyncTrash(self._core, self._driver, self._scope)

    async def revive(self, document: Document[T]) -> Document[T]:
        """A deleted document with its last value again, if it has not changed since you read it."""
        return await self._run(trash.revive(self._core, self._scope, document))

    async def purge(self, document: Document[T]) -> None:
        """Purge a deleted document: its content and its history, at once and for good."""
        await self._run(trash.purge(self._core, self._scope, document))

    def __aiter__(self) -> AsyncIterator[Document[T]]:
        """Iterate the live documents, each once, in the order of their last change."""
        return aiter(AsyncChanges(self._core, self._driver, self._scope, None))

    def since(self, cursor: int) -> AsyncChanges[T]:
        """The changes after a cursor; deletions included."""
        return AsyncChanges(self._core, self._driver, self._scope, checked_cursor(cursor))

    async def token(
        self,
        name: str,
        *,
        permissions: Permissions | None = None,
        expires_at: int | None = None,
        older_keys: bool = False,
    ) -> str:
        """A token (`srv_…`) that opens this collection and nothing else; `older_keys` as for a vault."""
        keys = documents.renewed(self._core, self._scope).write_keys()
        return await self._run(
            sessions_and_keys.make_token(
                self._core, name, keys, self.name, permissions, expires_at, sealed=True, older_keys=older_keys
            )
        )


class AsyncItems(AsyncCollection[Item]):
    """The items of a vault: a collection of documents whose values are items, such as `Login` and `Note`.

    What another program has stored there is read whole, also where it does not fit: see `Other`.
    """

    async def list(self) -> list[Document[Item]]:
        """All items, in the order of their last change."""
        return [document async for document in self]

    async def find(self, name: str) -> Document[Item]:
        """The item with this uid or this title; capitals do not matter where no title is the same.

        ItemNotFound if there is none; AmbiguousName, with the uids, if there are several.
        """
        return find_item(name, await self.list())
