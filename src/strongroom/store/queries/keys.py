"""API keys. Only a hash of the secret is stored; a revoked key is a row that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from strongroom.model import AccountApiKey, Actor, ApiKey, Permission
from strongroom.store.queries.accounts import DELETED, IS_THERE, of_open_accounts
from strongroom.store.statement import Sql, columns

if TYPE_CHECKING:
    from strongroom.store.database import Tx


class _Row(Struct, frozen=True):
    """A key as its columns hold it: scopes are JSON text."""

    uid: str
    name: str
    permissions: str | None
    vault_uids: str | None
    collections: str | None
    expires_at: int | None
    created_at: int
    last_used_at: int | None


class _KeyWithOwner(_Row, frozen=True):
    """A key with its owner."""

    user_id: str
    disabled_at: int | None  # the account, where it is disabled


_INSERT = Sql(f"""
    INSERT INTO api_keys (user_id, key_hash, {columns(_Row)})
    VALUES (:user_id, :key_hash, :uid, :name, :permissions, :vault_uids, :collections, :expires_at, :now, NULL)
    RETURNING {columns(_Row)}
""")
# A uid begins with the time at which it was made, so this is the order of creation.
_OF_USER = Sql(f"""
    SELECT {columns(_Row)} FROM api_keys WHERE user_id = :user_id AND uid > :after ORDER BY uid LIMIT :limit
""")
_COUNT = Sql("SELECT count(*) FROM api_keys WHERE user_id = :user_id")
_DELETE = Sql("DELETE FROM api_keys WHERE user_id = :user_id AND uid = :uid")
_BY_HASH = of_open_accounts(
    f"SELECT {columns(_Row)}, user_id, {{disabled}} FROM api_keys WHERE key_hash = :key_hash", "api_keys.user_id"
)
_PAGE = Sql(f"""
    SELECT user_id, uid, (SELECT email FROM users WHERE users.id = api_keys.user_id), name, created_at, expires_at,
           last_used_at
      FROM api_keys
     WHERE (user_id, uid) > (:user_id, :uid)
       AND (SELECT {IS_THERE} FROM users WHERE users.id = api_keys.user_id)
     ORDER BY user_id, uid LIMIT :limit
""")
_TOUCH = Sql("""
    UPDATE api_keys SET last_used_at = :now
     WHERE user_id = :user_id AND uid = :uid AND (last_used_at IS NULL OR last_used_at < :now)
""")

_scope = msgspec.json.Decoder(list[str]).decode
_permissions = msgspec.json.Decoder(list[Permission]).decode


def _packed(scope: list[Any] | None) -> str | None:
    return None if scope is None else msgspec.json.encode(scope).decode()


def _key(row: _Row) -> ApiKey:
    return ApiKey(
        uid=row.uid,
        name=row.name,
        permissions=None if row.permissions is None else _permissions(row.permissions),
        vault_uids=None if row.vault_uids is None else _scope(row.vault_uids),
        collections=None if row.collections is None else _scope(row.collections),
        expires_at=row.expires_at,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )


async def insert(tx: Tx, user_id: str, key_hash: str, key: ApiKey) -> ApiKey:
    """Add a key."""
    row = await tx.one(
        _Row,
        _INSERT,
        user_id=user_id,
        key_hash=key_hash,
        uid=key.uid,
        name=key.name,
        permissions=_packed(key.permissions),
        vault_uids=_packed(key.vault_uids),
        collections=_packed(key.collections),
        expires_at=key.expires_at,
        now=tx.now,
    )
    assert row is not None  # noqa: S101 - an INSERT without conflict clause returns its row
    return _key(row)


def scope_size(key: ApiKey) -> int:
    """The bytes that the scope of a key takes, as it is stored."""
    scopes = (key.permissions, key.vault_uids, key.collections)
    return sum(len(msgspec.json.encode(scope)) for scope in scopes if scope is not None)


async def count(tx: Tx, user_id: str) -> int:
    """How many keys an account has."""
    found: int = await tx.value(_COUNT, user_id=user_id)
    return found


async def of_user(tx: Tx, user_id: str, after: str, limit: int) -> list[ApiKey]:
    """The next keys of an account after this uid, oldest first."""
    return [_key(row) for row in await tx.all(_Row, _OF_USER, user_id=user_id, after=after, limit=limit)]


async def delete(tx: Tx, user_id: str, uid: str) -> bool:
    """Revoke a key; False if there is none."""
    tx.notify(user_id, None)
    return await tx.run(_DELETE, user_id=user_id, uid=uid) > 0


async def actor(tx: Tx, key_hash: str) -> tuple[Actor | None, bool]:
    """The owner of the key with this hash as an actor, and whether that account is disabled."""
    found = await tx.one(_KeyWithOwner, _BY_HASH, key_hash=key_hash)
    if found is None or found.disabled_at == DELETED:
        return None, False
    return Actor(user_id=found.user_id, key=_key(found), until=found.expires_at), found.disabled_at is not None


async def page(tx: Tx, after: tuple[str, str], limit: int) -> list[AccountApiKey]:
    """The keys of all accounts, after this one."""
    return await tx.all(AccountApiKey, _PAGE, user_id=after[0], uid=after[1], limit=limit)


async def touch(tx: Tx, user_id: str, uid: str) -> None:
    """Record the use of a key."""
    await tx.run(_TOUCH, user_id=user_id, uid=uid, now=tx.now)
