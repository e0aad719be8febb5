"""Vaults: create, read, change, delete. Containers of documents and blobs are the same kind of row."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from strongroom import identifiers, rules, store
from strongroom.actions import deletions
from strongroom.actions.account_write import AccountWrite, begin
from strongroom.errors import (
    InsufficientScope,
    TooManyVaults,
    UidTaken,
    VaultAlreadyExists,
    VaultConflict,
    VaultNotFound,
)
from strongroom.model import RETAINED_ROW_BYTES, Expected, VaultChange
from strongroom.store import Duplicate, RollbackWith

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from strongroom.model import AccountLimits, Actor, Vault
    from strongroom.store import Tx
    from strongroom.wire.requests import CreateBlob, CreateContainer, CreateVault, PutBlob, PutVault, RenameVault

    AnyCreate: TypeAlias = CreateVault | CreateContainer | CreateBlob
    AnyPut: TypeAlias = PutVault | RenameVault | PutBlob


async def create(tx: Tx, actor: Actor, limits: AccountLimits, wanted: AnyCreate) -> tuple[Vault, bool]:
    """Create a vault; whether it is new. A retried create is idempotent: the stored vault is returned."""
    uid = identifiers.new_uid(tx.now) if wanted.uid is None else wanted.uid.lower()
    size = rules.octets(wanted.data, wanted.salt)
    write = await begin(tx, actor, limits, size=size)
    timestamp = write.next_timestamp()
    vault = await store.vaults.insert(tx, actor.user_id, uid, timestamp, wanted.name, wanted.data, wanted.salt, size)
    if vault is not None:
        if await store.vaults.count(tx, actor.user_id) > rules.VAULTS_PER_ACCOUNT:
            raise TooManyVaults
        await _record(write, timestamp, vault, VaultChange.CREATED, size)
        return await write.finish((vault, True))
    stored = await store.vaults.get(tx, actor.user_id, uid)
    if stored is not None:
        if stored.version == 1 and _same(stored, wanted.name, wanted.data, wanted.salt):
            raise RollbackWith((stored, False))
        raise UidTaken
    if await store.documents.by_uid(tx, actor.user_id, uid) is not None:
        raise UidTaken
    raise VaultAlreadyExists


async def get(tx: Tx, actor: Actor, uid: str) -> Vault:
    """The vault with this uid."""
    rules.require_vault(actor, uid)
    vault = await store.vaults.get(tx, actor.user_id, uid)
    if vault is None:
        raise VaultNotFound
    return vault


async def by_name(tx: Tx, actor: Actor, name: str) -> Vault:
    """The vault with this name."""
    vault = None if rules.has_control(name) else await store.vaults.by_name(tx, actor.user_id, name)
    if vault is None:
        raise VaultNotFound
    rules.require_vault(actor, vault.uid)
    return vault


async def list_(tx: Tx, actor: Actor, beyond: str, *, blobs: bool) -> AsyncGenerator[list[Vault], None]:
    """The vaults in the actor's scope after a uid, in the order of their uids, in pages."""
    scope = None if actor.key is None else actor.key.vault_uids
    found = store.vaults.of_user(tx, actor.user_id, beyond, blobs=blobs and rules.may_see_blobs(actor))
    async with aclosing(found) as pages:
        async for page in pages:
            yield page if scope is None else [vault for vault in page if vault.uid in scope]


async def change(
    tx: Tx, actor: Actor, limits: AccountLimits, uid: str, wanted: AnyPut, expected: Expected | None
) -> Vault:
    """Set the blob, or the name, or both, if the vault is at the version that the client saw."""
    rules.require(actor.key, None, whole_account=wanted.name is not None)
    if not rules.may_see_blobs(actor):
        raise InsufficientScope("An API key limited to collections cannot change a vault.")
    rules.require_vault(actor, uid)
    write = await begin(tx, actor, limits)
    stored = await store.vaults.get(tx, actor.user_id, uid)
    if stored is None:
        raise VaultNotFound
    version = wanted.new_version or stored.version + 1
    expected = expected or Expected(None)
    if expected.allows(stored.version) and version > stored.version:
        return await write.finish(await _changed(write, stored, wanted, version))
    if expected.precedes(stored.version, wanted.new_version) and _is_stored(stored, wanted):
        raise RollbackWith(stored)
    raise VaultConflict(stored.version, stored.updated_at, precondition=expected.by_header)


async def _changed(write: AccountWrite, stored: Vault, wanted: AnyPut, version: int) -> Vault:
    """Replace the stored vault's blob or name."""
    timestamp, added, retained = write.next_timestamp(), 0, 0
    if wanted.data is not None:
        added = rules.octets(wanted.data, wanted.salt) - rules.octets(stored.data, stored.salt)
        retained = await _retain_blob(write, timestamp, stored)
    try:
        vault = await store.vaults.change(
            write.tx,
            write.actor.user_id,
            stored.uid,
            timestamp,
            name=wanted.name,
            data=wanted.data,
            salt=wanted.salt,
            version=stored.version,
            new_version=version,
            added=added,
            kept=retained,
        )
    except Duplicate:
        raise VaultAlreadyExists from None
    if vault is None:
        raise VaultNotFound
    await _record(write, timestamp, vault, VaultChange.RENAMED if wanted.data is None else VaultChange.BLOB, added)
    return vault


async def _retain_blob(write: AccountWrite, timestamp: int, stored: Vault) -> int:
    """Copy the current blob, if any, into history; the bytes added to history.

    If trash and history exceed their limit, the oldest versions of this blob are deleted.
    """
    limit = write.limits.versions
    if not limit or stored.data is None:
        return 0
    tx, owner = write.tx, write.actor.user_id
    retained = rules.octets(stored.data, stored.salt) + RETAINED_ROW_BYTES
    retained -= await store.versions.retain_blob(tx, owner, stored.uid, stored.version, timestamp, limit)
    if excess := await write.retained_excess(retained):
        retained -= await store.versions.drop_oldest_blobs(tx, owner, stored.uid, excess)
    return retained


async def delete(tx: Tx, actor: Actor, limits: AccountLimits, uid: str, expected: Expected | None) -> None:
    """Delete a vault: at once for everybody, its documents in steps."""
    rules.require_vault(actor, uid)
    write = await begin(tx, actor, limits)
    stored = await store.vaults.bare(tx, actor.user_id, uid)
    if stored is None:
        raise VaultNotFound
    if expected is not None and not expected.allows(stored.version):
        raise VaultConflict(stored.version, stored.updated_at, precondition=expected.by_header)
    row_bytes = await store.vaults.row_bytes(tx, actor.user_id, uid)
    if not await store.vaults.delete(tx, actor.user_id, uid, stored.version):
        raise VaultNotFound
    await deletions.require_room(tx, actor.user_id)
    timestamp = write.next_timestamp()
    await store.deletions.add(tx, actor.user_id, uid, timestamp)
    await _record(
        write, timestamp, stored, VaultChange.DELETED, -(stored.bytes or 0), -(stored.documents or 0), -row_bytes
    )
    await write.finish(None)


async def _record(
    write: AccountWrite,
    timestamp: int,
    vault: Vault,
    kind: VaultChange,
    size: int,
    documents: int = 0,
    row_bytes: int = 0,
) -> None:
    """Record a change of the vault for event streams, and the usage that it adds."""
    owner = write.actor.user_id
    await store.vault_changes.add(
        write.tx, owner, timestamp, vault.uid, kind, vault.name, vault.version, rules.VAULT_CHANGES_PER_ACCOUNT
    )
    write.record(timestamp, documents, size, row_bytes=row_bytes)


def _same(stored: Vault, name: str, data: str | None, salt: str | None) -> bool:
    return (stored.name, stored.data, stored.salt) == (name, data, salt)


def _is_stored(stored: Vault, wanted: AnyPut) -> bool:
    """Whether the wanted name and blob are stored already."""
    return _same(
        stored,
        stored.name if wanted.name is None else wanted.name,
        stored.data if wanted.data is None else wanted.data,
        stored.salt if wanted.salt is None else wanted.salt,
    )
