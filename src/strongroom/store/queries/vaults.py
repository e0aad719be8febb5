"""Vaults: a named container with a clock, and perhaps a blob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from strongroom.model import Vault
from strongroom.store.queries.deletions import live
from strongroom.store.statement import ALL, Sql, columns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from strongroom.store.database import Tx


class VaultSummary(Struct, frozen=True):
    """When a vault was created and last changed, and how large its documents are."""

    created_at: int  # tells it from a later one of the same uid
    updated_at: int
    mean_bytes: int  # of a document


_BARE = "uid, name, version, updated_at, documents, bytes"

# An owner's uids are unique over vaults and documents alike.
_INSERT = Sql(f"""
    INSERT INTO vaults (user_id, uid, name, data, salt, version, created_at, updated_at, documents, bytes)
    SELECT :user_id, :uid, :name, :data, :salt, 1, :timestamp, :timestamp, 0, :bytes
     WHERE NOT EXISTS (
           SELECT 1 FROM documents
            WHERE user_id = :user_id AND uid = :uid AND {live(vault_uid="documents.vault_uid")})
    ON CONFLICT DO NOTHING
    RETURNING {columns(Vault)}
""")
_GET = Sql(f"SELECT {columns(Vault)} FROM vaults WHERE user_id = :user_id AND uid = :uid")
_GET_BARE = Sql(f"SELECT {_BARE} FROM vaults WHERE user_id = :user_id AND uid = :uid")
_CLOCK = Sql("SELECT updated_at FROM vaults WHERE user_id = :user_id AND uid = :uid")
_SUMMARY = Sql("""
    SELECT created_at, updated_at, CASE WHEN documents > 0 THEN bytes / documents ELSE 0 END
      FROM vaults WHERE user_id = :user_id AND uid = :uid
""")
_BY_NAME = Sql(f"SELECT {columns(Vault)} FROM vaults WHERE user_id = :user_id AND name = :name")
_LISTED = "FROM vaults WHERE user_id = :user_id AND uid > :beyond ORDER BY uid LIMIT :limit"
_LIST = Sql(f"SELECT {columns(Vault)} {_LISTED}")
_LIST_BARE = Sql(f"SELECT {_BARE}, NULL AS data, NULL AS salt {_LISTED}")
_COUNT = Sql("SELECT count(*) FROM vaults WHERE user_id = :user_id")
_ADD_USAGE = Sql("""
    UPDATE vaults
       SET updated_at = :timestamp, documents = documents + :documents, bytes = bytes + :bytes, kept = kept + :kept,
           row_bytes = row_bytes + :row_bytes
     WHERE user_id = :user_id AND uid = :uid
""")
_CHANGE = Sql(f"""
    UPDATE vaults
       SET name = COALESCE(:name, name), data = COALESCE(:data, data), salt = COALESCE(:salt, salt),
           version = :new_version, updated_at = :timestamp, bytes = bytes + :added, kept = kept + :kept
     WHERE user_id = :user_id AND uid = :uid AND version = :version
 RETURNING {columns(Vault)}
""")
_ROW_BYTES = Sql("SELECT row_bytes FROM vaults WHERE user_id = :user_id AND uid = :uid")
_DELETE = Sql("DELETE FROM vaults WHERE user_id = :user_id AND uid = :uid AND version = :version")


async def insert(
    tx: Tx, user_id: str, uid: str, timestamp: int, name: str, data: str | None, salt: str | None, size: int
) -> Vault | None:
    """Add a vault at this timestamp; None if this owner uses the uid or the name already."""
    return await tx.one(
        Vault, _INSERT, user_id=user_id, uid=uid, name=name, data=data, salt=salt, timestamp=timestamp, bytes=size
    )


async def get(tx: Tx, user_id: str, uid: str) -> Vault | None:
    """The vault with this uid."""
    return await tx.one(Vault, _GET, user_id=user_id, uid=uid)


async def bare(tx: Tx, user_id: str, uid: str) -> Vault | None:
    """The vault with this uid, without its blob."""
    return await tx.one(Vault, _GET_BARE, user_id=user_id, uid=uid)


async def clock(tx: Tx, user_id: str, uid: str) -> int | None:
    """The vault's clock; None if this owner has no such vault."""
    timestamp: int | None = await tx.value(_CLOCK, user_id=user_id, uid=uid)
    return timestamp


async def summary(tx: Tx, user_id: str, uid: str) -> VaultSummary | None:
    """The summary of a vault; None if this owner has no such vault."""
    return await tx.one(VaultSummary, _SUMMARY, user_id=user_id, uid=uid)


async def by_name(tx: Tx, user_id: str, name: str) -> Vault | None:
    """The vault with this name."""
    return await tx.one(Vault, _BY_NAME, user_id=user_id, name=name)


def of_user(tx: Tx, user_id: str, beyond: str, *, blobs: bool) -> AsyncGenerator[list[Vault], None]:
    """The vaults of an account beyond a uid, in the order of their uids, with or without their blobs."""
    statement = _LIST if blobs else _LIST_BARE
    return tx.pages(Vault, statement, after="beyond", by="uid", user_id=user_id, beyond=beyond, limit=ALL)


async def add_usage(
    tx: Tx, user_id: str, uid: str, timestamp: int, documents: int, size: int, kept: int, row_bytes: int = 0
) -> bool:
    """Set the vault's clock, and add to its usage; False if this owner has no such vault."""
    tx.notify(user_id, uid)
    counted = {"documents": documents, "bytes": size, "kept": kept, "row_bytes": row_bytes}
    return await tx.run(_ADD_USAGE, user_id=user_id, uid=uid, timestamp=timestamp, **counted) > 0


async def change(
    tx: Tx,
    user_id: str,
    uid: str,
    timestamp: int,
    *,
    name: str | None,
    data: str | None,
    salt: str | None,
    version: int,
    new_version: int,
    added: int,
    kept: int,
) -> Vault | None:
    """Replace what is given, and add to the usage of vault and history; None if the vault is not at this version."""
    return await tx.one(
        Vault,
        _CHANGE,
        user_id=user_id,
        uid=uid,
        name=name,
        data=data,
        salt=salt,
        version=version,
        new_version=new_version,
        timestamp=timestamp,
        added=added,
        kept=kept,
    )


async def count(tx: Tx, user_id: str) -> int:
    """How many vaults an account has."""
    found: int = await tx.value(_COUNT, user_id=user_id)
    return found


async def row_bytes(tx: Tx, user_id: str, uid: str) -> int:
    """What the rows of a vault's documents take beside their ciphertext."""
    size: int | None = await tx.value(_ROW_BYTES, user_id=user_id, uid=uid)
    return size or 0


async def delete(tx: Tx, user_id: str, uid: str, version: int) -> bool:
    """Delete the row of a vault; False if it is not there at this version."""
    return await tx.run(_DELETE, user_id=user_id, uid=uid, version=version) > 0
