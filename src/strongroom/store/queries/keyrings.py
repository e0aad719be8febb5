"""Keyrings: one text of wrapped keys for each account, and the version that it is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.model import StoredKeyring
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_GET = Sql("""
    SELECT keyring, version, keyrings.updated_at, kdf
      FROM keyrings JOIN users ON users.id = keyrings.user_id WHERE user_id = :user_id
""")
_INSERT = Sql("""
    INSERT INTO keyrings (user_id, version, updated_at, keyring) VALUES (:user_id, 1, :now, :keyring)
    ON CONFLICT DO NOTHING
""")
_REPLACE = Sql("""
    UPDATE keyrings SET keyring = :keyring, version = version + 1, updated_at = :now
     WHERE user_id = :user_id AND version = :version
""")


async def get(tx: Tx, user_id: str) -> StoredKeyring | None:
    """The account's keyring."""
    return await tx.one(StoredKeyring, _GET, user_id=user_id)


async def insert(tx: Tx, user_id: str, keyring: str) -> bool:
    """Add an account's first keyring; False if it has one."""
    return await tx.run(_INSERT, user_id=user_id, keyring=keyring, now=tx.now) > 0


async def replace(tx: Tx, user_id: str, version: int, keyring: str) -> bool:
    """Replace the keyring at this version; False if it is not at it any more."""
    return await tx.run(_REPLACE, user_id=user_id, version=version, keyring=keyring, now=tx.now) > 0
