"""Changes of vaults themselves: created, renamed, blob set, deleted; for those who follow an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.db import Sql

if TYPE_CHECKING:
    from strongroom.model import VaultChange
    from strongroom.store.db import Tx

_ADD = Sql("""
    INSERT INTO vault_changes (user_id, changed_at, vault_uid, kind, name, version)
    VALUES (:user_id, :moment, :vault_uid, :kind, :name, :version)
""")


async def add(tx: Tx, user_id: str, moment: int, vault_uid: str, kind: VaultChange, name: str, version: int) -> None:
    """Note what happened to a vault at this moment of the account's clock."""
    await tx.run(_ADD, user_id=user_id, moment=moment, vault_uid=vault_uid, kind=kind.value, name=name, version=version)
