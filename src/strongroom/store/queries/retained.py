"""Usage of trash and history, counted for each vault: what is in them, and 256 bytes more for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from strongroom.model import RETAINED_ROW_BYTES
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.model import ExpiredRow
    from strongroom.store.database import Tx

_OF_ACCOUNT = Sql("SELECT CAST(coalesce(sum(kept), 0) AS BIGINT) FROM vaults WHERE user_id = :user_id")
_ADD = Sql("UPDATE vaults SET kept = kept + :size WHERE user_id = :user_id AND uid = :uid")
_VERSION = f"octet_length(v.data) + coalesce(octet_length(v.hmac), 0) + {RETAINED_ROW_BYTES}"
_VAULT_OF_DOCUMENT = "(SELECT vault_uid FROM documents WHERE user_id = :user_id AND uid = :uid)"


def _subtract(size: str, vault: str) -> Sql:
    """Subtract a size from what is counted for a vault, which is never below zero."""
    update = f"""
        UPDATE vaults SET kept = {{}}(kept - coalesce(({size}), 0), 0) WHERE user_id = :user_id AND uid = {vault}
    """
    return Sql(sqlite=update.format("max"), postgres=update.format("greatest"))


_TRASH = _subtract(
    f"""SELECT octet_length(d.data) + coalesce(octet_length(d.hmac), 0) + {RETAINED_ROW_BYTES}
             + coalesce((SELECT sum({_VERSION}) FROM versions AS v WHERE v.user_id = :user_id AND v.uid = :uid), 0)
          FROM documents AS d WHERE d.user_id = :user_id AND d.uid = :uid
           AND (d.deleted_at = :at OR d.updated_at = :at) AND d.deleted_at IS NOT NULL AND d.purged_at IS NULL""",
    _VAULT_OF_DOCUMENT,
)
_VERSIONS = _subtract(
    f"SELECT {_VERSION} FROM versions AS v WHERE v.user_id = :user_id AND v.uid = :uid AND v.version = :at",
    _VAULT_OF_DOCUMENT,
)
_BLOBS = _subtract(
    f"""SELECT octet_length(b.data) + coalesce(octet_length(b.salt), 0) + {RETAINED_ROW_BYTES}
          FROM blob_versions AS b WHERE b.user_id = :user_id AND b.uid = :uid AND b.version = :at""",
    ":uid",
)


async def of_account(tx: Tx, user_id: str) -> int:
    """The usage of an account's trash and history, in bytes."""
    total: int = await tx.value(_OF_ACCOUNT, user_id=user_id)
    return total


async def add(tx: Tx, user_id: str, vault_uid: str, size: int) -> None:
    """Add a size to what is counted for a vault."""
    await tx.run(_ADD, user_id=user_id, uid=vault_uid, size=size)


async def subtract_trash(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Subtract the size of tombstones and their versions, which are about to be purged."""
    await tx.each(_TRASH, [to_builtins(one) for one in due], by=("user_id",))


async def subtract_versions(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Subtract the size of versions of documents, which are about to be dropped."""
    await tx.each(_VERSIONS, [to_builtins(one) for one in due], by=("user_id",))


async def subtract_blobs(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Subtract the size of versions of blobs, which are about to be dropped."""
    await tx.each(_BLOBS, [to_builtins(one) for one in due], by=("user_id",))
