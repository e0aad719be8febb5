"""Changes of vaults themselves, for the change feed of an account: created, renamed, blob set, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import to_builtins

from strongroom.model import ExpiredRow
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.model import VaultChange
    from strongroom.store.database import Tx

TRIM_EVERY: Final = 16  # timestamps: a blob may be set often, and the changes are gone through to trim them

_ADD = Sql("""
    INSERT INTO vault_changes (user_id, changed_at, vault_uid, kind, name, version)
    VALUES (:user_id, :timestamp, :vault_uid, :kind, :name, :version)
""")
_TRIM = Sql("""
    DELETE FROM vault_changes WHERE user_id = :user_id AND changed_at <= (
        SELECT changed_at FROM vault_changes WHERE user_id = :user_id ORDER BY changed_at DESC LIMIT 1 OFFSET :keep)
""")
_BEFORE = Sql("""
    SELECT user_id, vault_uid, changed_at, 0, 1, changed_at FROM vault_changes
     WHERE changed_at BETWEEN :reached AND :before ORDER BY changed_at LIMIT :limit
""")
_DROP = Sql("DELETE FROM vault_changes WHERE user_id = :user_id AND changed_at = :at")


async def add(
    tx: Tx, user_id: str, timestamp: int, vault_uid: str, kind: VaultChange, name: str, version: int, keep: int
) -> None:
    """Record a change of a vault at this timestamp of the account's clock; from time to time, trim them to `keep`."""
    tx.notify(user_id, vault_uid)
    await tx.run(
        _ADD, user_id=user_id, timestamp=timestamp, vault_uid=vault_uid, kind=kind.value, name=name, version=version
    )
    if timestamp % TRIM_EVERY == 0:
        await trim(tx, user_id, keep)


async def trim(tx: Tx, user_id: str, keep: int) -> None:
    """Delete all but the newest `keep` changes of an account."""
    await tx.run(_TRIM, user_id=user_id, keep=keep)


async def before(tx: Tx, reached: int, timestamp: int, limit: int) -> list[ExpiredRow]:
    """Some changes from `reached` to this timestamp."""
    return await tx.all(ExpiredRow, _BEFORE, reached=reached, before=timestamp, limit=limit)


async def drop(tx: Tx, found: Sequence[ExpiredRow]) -> None:
    """Delete changes."""
    await tx.each(_DROP, [to_builtins(due) for due in found], by=("user_id",))
