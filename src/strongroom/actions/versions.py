"""Version history: replaced versions of documents and blobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import rules, store
from strongroom.actions import documents, vaults
from strongroom.errors import VaultNotFound, VersionNotFound
from strongroom.model import VaultBlob

if TYPE_CHECKING:
    from strongroom.model import Actor, BlobVersion, Document, ReplacedVersion, Version
    from strongroom.store import Tx


async def of_document(tx: Tx, actor: Actor, vault_uid: str, uid: str) -> list[Version]:
    """The replaced versions of a document in history, newest first."""
    await documents.head(tx, actor, vault_uid, uid)
    return await store.versions.of_document(tx, actor.user_id, uid)


async def document(tx: Tx, actor: Actor, vault_uid: str, uid: str, version: int) -> Document:
    """A document as it was at a version, or as it is."""
    if version == (await documents.head(tx, actor, vault_uid, uid)).version:
        current = await documents.get(tx, actor, vault_uid, uid)
        if current.version == version:
            return current  # otherwise it was replaced after the query before, and is in history
    replaced = await store.versions.get(tx, actor.user_id, uid, version)
    if replaced is None:
        raise VersionNotFound
    return replaced


async def history(
    tx: Tx, actor: Actor, vault_uid: str, uid: str | None, since: int, limit: int
) -> tuple[list[ReplacedVersion], bool]:
    """Retained versions of a vault's documents, or of one, written after `since`; and whether there are more.

    They are those of the collections in the actor's scope.
    """
    rules.require_vault(actor, vault_uid)
    if await store.vaults.clock(tx, actor.user_id, vault_uid) is None:
        raise VaultNotFound
    scope = rules.collections_of(actor, None)
    since = min(since, rules.MAX_INTEGER)
    found = await store.versions.of_vault(tx, actor.user_id, vault_uid, uid, scope, since, limit + 1)
    return found[:limit], len(found) > limit


async def of_blob(tx: Tx, actor: Actor, uid: str) -> list[BlobVersion]:
    """The replaced versions of a vault's blob in history, newest first."""
    await vaults.get(tx, actor, uid)
    return await store.versions.of_blob(tx, actor.user_id, uid) if rules.may_see_blobs(actor) else []


async def blob(tx: Tx, actor: Actor, uid: str, version: int) -> VaultBlob:
    """A vault's blob as it was at a version, or as it is."""
    vault = await vaults.get(tx, actor, uid)
    if not rules.may_see_blobs(actor):
        raise VersionNotFound
    if version == vault.version and vault.data is not None:
        return VaultBlob(vault.uid, vault.version, vault.updated_at, vault.data, vault.salt, vault.name)
    replaced = await store.versions.blob(tx, actor.user_id, uid, version)
    if replaced is None:
        raise VersionNotFound
    return replaced
