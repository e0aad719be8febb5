"""Vaults: create, look, change, delete. A container and a blob are one thing here."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from strongroom import identifiers, rules, store
from strongroom.errors import InsufficientScope, UidTaken, VaultAlreadyExists, VaultConflict, VaultNotFound
from strongroom.store import Duplicate, Undo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strongroom.model import Actor, Expected, Vault
    from strongroom.store import Tx
    from strongroom.wire import CreateBlob, CreateContainer, CreateVault, PutBlob, PutVault, RenameVault

    AnyCreate: TypeAlias = CreateVault | CreateContainer | CreateBlob
    AnyPut: TypeAlias = PutVault | RenameVault | PutBlob


async def create(tx: Tx, actor: Actor, wanted: AnyCreate) -> tuple[Vault, bool]:
    """Make a vault; the same one again, while it is unchanged, is answered as it is and not as new."""
    uid = identifiers.new_uid(tx.now) if wanted.uid is None else wanted.uid.lower()
    vault = await store.vaults.insert(tx, actor.user_id, uid, wanted.name, wanted.data, wanted.salt)
    if vault is not None:
        return vault, True
    stored = await store.vaults.get(tx, actor.user_id, uid)
    if stored is not None:
        if stored.version == 1 and _same(stored, wanted.name, wanted.data, wanted.salt):
            raise Undo((stored, False))
        raise UidTaken
    if await store.documents.holder(tx, actor.user_id, uid) is not None:
        raise UidTaken
    raise VaultAlreadyExists


async def get(tx: Tx, actor: Actor, uid: str) -> Vault:
    """The vault with this uid."""
    rules.require_vault(actor, uid)
    vault = await store.vaults.get(tx, actor.user_id, uid)
    if vault is None:
        raise VaultNotFound
    return _seen_by(actor, vault)


async def by_name(tx: Tx, actor: Actor, name: str) -> Vault:
    """The vault with this name."""
    vault = None if rules.has_control(name) else await store.vaults.by_name(tx, actor.user_id, name)
    if vault is None:
        raise VaultNotFound
    rules.require_vault(actor, vault.uid)
    return _seen_by(actor, vault)


async def list_(tx: Tx, actor: Actor, *, blobs: bool) -> AsyncIterator[list[Vault]]:
    """The vaults within the actor's reach, oldest first, in pages."""
    reach = None if actor.key is None else actor.key.vault_uids
    async for page in store.vaults.of_user(tx, actor.user_id, blobs=blobs and rules.may_see_blobs(actor)):
        yield page if reach is None else [vault for vault in page if vault.uid in reach]


async def change(tx: Tx, actor: Actor, uid: str, wanted: AnyPut, expected: Expected | None) -> Vault:
    """Set the blob, or the name, or both, if the vault is at the version that the client saw."""
    rules.require(actor.key, None, whole_account=wanted.name is not None)
    if not rules.may_see_blobs(actor):
        raise InsufficientScope("An API key limited to collections cannot change a vault.")
    rules.require_vault(actor, uid)
    version = None
    if expected is not None and expected.versions is not None:
        stored = await store.vaults.get(tx, actor.user_id, uid)
        if stored is None:
            raise VaultNotFound
        if not expected.allows(stored.version):
            if expected.precedes(stored.version) and _holds(stored, wanted):
                raise Undo(stored)
            raise VaultConflict(stored.version, stored.updated_at, precondition=expected.by_header)
        version = stored.version
    try:
        vault = await store.vaults.change(
            tx, actor.user_id, uid, name=wanted.name, data=wanted.data, salt=wanted.salt, version=version
        )
    except Duplicate:
        raise VaultAlreadyExists from None
    if vault is None:
        raise await _why_not(tx, actor, uid, expected)
    return vault if wanted.data is not None or rules.may_read(actor) else _bare(vault)


async def delete(tx: Tx, actor: Actor, uid: str, expected: Expected | None) -> None:
    """Delete a vault and all its documents."""
    rules.require_vault(actor, uid)
    version = None
    if expected is not None and expected.versions is not None:
        stored = await store.vaults.get(tx, actor.user_id, uid)
        version = stored.version if stored is not None and expected.allows(stored.version) else 0
    if not await store.vaults.delete(tx, actor.user_id, uid, version):
        raise await _why_not(tx, actor, uid, expected)


async def _why_not(tx: Tx, actor: Actor, uid: str, expected: Expected | None) -> VaultNotFound | VaultConflict:
    stored = await store.vaults.get(tx, actor.user_id, uid)
    if stored is None:
        return VaultNotFound()
    return VaultConflict(stored.version, stored.updated_at, precondition=expected is not None and expected.by_header)


def _same(stored: Vault, name: str, data: str | None, salt: str | None) -> bool:
    return (stored.name, stored.data, stored.salt) == (name, data, salt)


def _holds(stored: Vault, wanted: AnyPut) -> bool:
    """Whether all that is wanted is stored already."""
    return _same(
        stored,
        stored.name if wanted.name is None else wanted.name,
        stored.data if wanted.data is None else wanted.data,
        stored.salt if wanted.salt is None else wanted.salt,
    )


def _seen_by(actor: Actor, vault: Vault) -> Vault:
    return vault if rules.may_see_blobs(actor) else _bare(vault)


def _bare(vault: Vault) -> Vault:
    return msgspec.structs.replace(vault, data=None, salt=None)
