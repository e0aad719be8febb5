"""Changes of vaults themselves, for the change feed of an account: created, renamed, blob set, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from strongroom.model import ExpiredRow
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.model import VaultChange
    from strongroom.store.database import Tx

_ADD = Sql("""
    INSERT INTO vault_changes (user_id, changed_at, vault_uid, kind, name, version)
    VALUES (:user_id, :timestamp, :vault_uid, :kind, :name, :version)
""")
_BEFORE = Sql("""
    SELECT user_id, vault_uid, changed_at, 0, 1, changed_at FROM vault_changes
     WHERE changed_at BETWEEN :reached AND :before ORDER BY changed_at LIMIT :limit
""")
_DROP = Sql("DELETE FROM vault_changes WHERE user_id = :user_id AND changed_at = :at")


async def add(tx: Tx, user_id: str, timestamp: int, vault_uid: str, kind: VaultChange, name: str, version: int) -> None:
    """Record a change of a vault at this timestamp of the account's clock."""
    tx.notify(user_id, vault_uid)
    await tx.run(
        _ADD, user_id=user_id, timestamp=timestamp, vault_uid=vault_uid, kind=kind.value, name=name, version=version
    )


async def before(tx: Tx, reached: int, timestamp: int, limit: int) -> list[ExpiredRow]:
    """Some changes from `reached` to this timestamp."""
    return await tx.all(ExpiredRow, _BEFORE, reached=reached, before=timestamp, limit=limit)


async def drop(tx: Tx, found: Sequence[ExpiredRow]) -> None:
    """Delete changes."""
    await tx.each(_DROP, [to_builtins(due) for due in found], by=("user_id",))
