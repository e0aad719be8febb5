"""API keys: create, list, revoke, authenticate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, store
from strongroom.actions import events
from strongroom.errors import AccountDisabled, ApiKeyNotFound, Invalid, TooManyApiKeys, VaultNotFound
from strongroom.model import ApiKey, EventType
from strongroom.rules import KEYS_PER_ACCOUNT, MAX_KEY_SCOPE

if TYPE_CHECKING:
    from strongroom.model import Actor, Origin
    from strongroom.store import Tx
    from strongroom.wire.requests import CreateApiKey


async def create(tx: Tx, actor: Actor, wanted: CreateApiKey, key_hash: str, origin: Origin) -> ApiKey:
    """Create a key with these scopes for the actor."""
    if wanted.expires_at is not None and wanted.expires_at <= tx.now:
        raise Invalid({"expiresAt": "must be in the future, in Unix milliseconds"})
    vault_uids = None
    if wanted.vault_uids is not None:
        vault_uids = list(dict.fromkeys(uid.lower() for uid in wanted.vault_uids))
        for uid in vault_uids:
            if await store.vaults.clock(tx, actor.user_id, uid) is None:
                raise VaultNotFound
    key = ApiKey(
        uid=identifiers.new_uid(tx.now),
        name=wanted.name,
        permissions=wanted.permissions and list(dict.fromkeys(wanted.permissions)),
        vault_uids=vault_uids,
        collections=wanted.collections and list(dict.fromkeys(wanted.collections)),
        expires_at=wanted.expires_at,
        created_at=tx.now,
        last_used_at=None,
    )
    if (size := store.keys.scope_size(key)) > MAX_KEY_SCOPE:
        raise Invalid(
            {"collections": f"the scope of a key takes at most {MAX_KEY_SCOPE:,} bytes in JSON, not {size:,}"}
        )
    await store.accounts.lock(tx, actor.user_id)  # of two at once, the second counts the first
    if await store.keys.count(tx, actor.user_id) >= KEYS_PER_ACCOUNT:
        raise TooManyApiKeys
    created = await store.keys.insert(tx, actor.user_id, key_hash, key)
    await events.record(tx, actor.user_id, EventType.KEY_CREATED, origin)
    return created


async def page(tx: Tx, actor: Actor, after: str, limit: int) -> list[ApiKey]:
    """The actor's next keys after this uid, oldest first."""
    return await store.keys.of_user(tx, actor.user_id, after, limit)


async def revoke(tx: Tx, actor: Actor, uid: str, origin: Origin) -> None:
    """Revoke a key: it is refused from now on."""
    if not await store.keys.delete(tx, actor.user_id, uid):
        raise ApiKeyNotFound
    await events.record(tx, actor.user_id, EventType.KEY_REVOKED, origin)


async def holder(tx: Tx, key_hash: str) -> Actor | None:
    """The actor of this key; None if it is unknown, revoked or expired."""
    actor, disabled = await store.keys.actor(tx, key_hash)
    if actor is None or actor.key is None:
        return None
    expires = actor.key.expires_at
    if expires is not None and expires <= tx.now:
        return None
    if disabled:
        raise AccountDisabled
    return actor
