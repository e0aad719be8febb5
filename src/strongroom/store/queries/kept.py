"""What trash and history take, counted for each vault: what is in them, and 256 bytes more for each row."""

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
_MORE = Sql("UPDATE vaults SET kept = kept + :size WHERE user_id = :user_id AND uid = :uid")
_VERSION = f"octet_length(v.data) + coalesce(octet_length(v.hmac), 0) + {RETAINED_ROW_BYTES}"
_HOME = "(SELECT vault_uid FROM documents WHERE user_id = :user_id AND uid = :uid)"


def _less(size: str, home: str) -> Sql:
    """Count so much less for a vault, and never less than nothing."""
    left = f"kept - coalesce(({size}), 0)"
    return Sql(f"""
        UPDATE vaults SET kept = CASE WHEN {left} > 0 THEN {left} ELSE 0 END WHERE user_id = :user_id AND uid = {home}
    """)


_TRASH = _less(
    f"""SELECT octet_length(d.data) + coalesce(octet_length(d.hmac), 0) + {RETAINED_ROW_BYTES}
             + coalesce((SELECT sum({_VERSION}) FROM versions AS v WHERE v.user_id = :user_id AND v.uid = :uid), 0)
          FROM documents AS d WHERE d.user_id = :user_id AND d.uid = :uid AND d.version = :at
           AND d.deleted_at IS NOT NULL AND d.purged_at IS NULL""",
    _HOME,
)
_OLD = _less(
    f"SELECT {_VERSION} FROM versions AS v WHERE v.user_id = :user_id AND v.uid = :uid AND v.version = :at", _HOME
)
_BLOB = _less(
    f"""SELECT octet_length(b.data) + coalesce(octet_length(b.salt), 0) + {RETAINED_ROW_BYTES}
          FROM blob_versions AS b WHERE b.user_id = :user_id AND b.uid = :uid AND b.version = :at""",
    ":uid",
)


async def of_account(tx: Tx, user_id: str) -> int:
    """What the trash and the history of an account take."""
    total: int = await tx.value(_OF_ACCOUNT, user_id=user_id)
    return total


async def more(tx: Tx, user_id: str, vault_uid: str, size: int) -> None:
    """Count so much more for a vault."""
    await tx.run(_MORE, user_id=user_id, uid=vault_uid, size=size)


async def without_trash(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Count these tombstones and their versions no more, which are about to be thrown away."""
    await tx.each(_TRASH, [to_builtins(one) for one in due], by=("user_id",))


async def without_versions(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Count these versions of documents no more, which are about to be dropped."""
    await tx.each(_OLD, [to_builtins(one) for one in due], by=("user_id",))


async def without_blobs(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Count these versions of blobs no more, which are about to be dropped."""
    await tx.each(_BLOB, [to_builtins(one) for one in due], by=("user_id",))
