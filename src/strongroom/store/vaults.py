"""Vaults: a named container with a clock, and perhaps a blob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.model import Vault
from strongroom.store.db import ALL, Sql, columns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strongroom.store.db import Tx

_BARE = "uid, name, version, updated_at"
_NEXT = "CASE WHEN updated_at < :now THEN :now ELSE updated_at + 1 END"

# An owner's uids are unique over vaults and documents alike.
_INSERT = Sql(f"""
    INSERT INTO vaults (user_id, uid, name, data, salt, version, created_at, updated_at)
    SELECT :user_id, :uid, :name, :data, :salt, 1, :now, :now
     WHERE NOT EXISTS (SELECT 1 FROM documents WHERE user_id = :user_id AND uid = :uid)
    ON CONFLICT DO NOTHING
    RETURNING {columns(Vault)}
""")
_GET = Sql(f"SELECT {columns(Vault)} FROM vaults WHERE user_id = :user_id AND uid = :uid")
_CLOCK = Sql("SELECT updated_at FROM vaults WHERE user_id = :user_id AND uid = :uid")
_BY_NAME = Sql(f"SELECT {columns(Vault)} FROM vaults WHERE user_id = :user_id AND name = :name")
_LISTED = "FROM vaults WHERE user_id = :user_id AND uid > :beyond ORDER BY uid LIMIT :limit"
_LIST = Sql(f"SELECT {columns(Vault)} {_LISTED}")
_LIST_BARE = Sql(f"SELECT {_BARE}, NULL AS data, NULL AS salt {_LISTED}")
# Proves the owner, takes the vault's lock until commit, and draws the next time, in one statement.
_ADVANCE = Sql(f"UPDATE vaults SET updated_at = {_NEXT} WHERE user_id = :user_id AND uid = :uid RETURNING updated_at")
_CHANGE = Sql(f"""
    UPDATE vaults
       SET name = COALESCE(:name, name), data = COALESCE(:data, data), salt = COALESCE(:salt, salt),
           version = version + 1, updated_at = {_NEXT}
     WHERE user_id = :user_id AND uid = :uid AND (:any_version OR version = :version)
 RETURNING {columns(Vault)}
""")
_DELETE = Sql("DELETE FROM vaults WHERE user_id = :user_id AND uid = :uid AND (:any_version OR version = :version)")


async def insert(tx: Tx, user_id: str, uid: str, name: str, data: str | None, salt: str | None) -> Vault | None:
    """Add a vault; None if this owner uses the uid or the name already."""
    return await tx.one(Vault, _INSERT, user_id=user_id, uid=uid, name=name, data=data, salt=salt, now=tx.now)


async def get(tx: Tx, user_id: str, uid: str) -> Vault | None:
    """The vault with this uid."""
    return await tx.one(Vault, _GET, user_id=user_id, uid=uid)


async def clock(tx: Tx, user_id: str, uid: str) -> int | None:
    """The vault's time; None if this owner has no such vault."""
    moment: int | None = await tx.value(_CLOCK, user_id=user_id, uid=uid)
    return moment


async def by_name(tx: Tx, user_id: str, name: str) -> Vault | None:
    """The vault with this name."""
    return await tx.one(Vault, _BY_NAME, user_id=user_id, name=name)


def of_user(tx: Tx, user_id: str, *, blobs: bool) -> AsyncIterator[list[Vault]]:
    """The vaults of an account in the order of their uids, with or without their blobs."""
    statement = _LIST if blobs else _LIST_BARE
    return tx.pages(Vault, statement, after="beyond", by="uid", user_id=user_id, beyond="", limit=ALL)


async def advance(tx: Tx, user_id: str, uid: str) -> int | None:
    """The vault's next time; None if this owner has no such vault. Nobody else writes in it until commit."""
    tx.tell(user_id, uid)
    moment: int | None = await tx.value(_ADVANCE, user_id=user_id, uid=uid, now=tx.now)
    return moment


async def change(
    tx: Tx, user_id: str, uid: str, *, name: str | None, data: str | None, salt: str | None, version: int | None
) -> Vault | None:
    """Replace what is given; None if the vault is not at this version. A version of None matches any."""
    return await tx.one(
        Vault,
        _CHANGE,
        user_id=user_id,
        uid=uid,
        name=name,
        data=data,
        salt=salt,
        any_version=version is None,
        version=version,
        now=tx.now,
    )


async def delete(tx: Tx, user_id: str, uid: str, version: int | None) -> bool:
    """Delete a vault and all its documents; False if it is not there at this version."""
    tx.tell(user_id, uid)
    return await tx.run(_DELETE, user_id=user_id, uid=uid, any_version=version is None, version=version) > 0
