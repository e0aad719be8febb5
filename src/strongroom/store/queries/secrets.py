"""Secrets of this database, which its nodes share and no setting changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_KEEP = Sql("INSERT INTO secrets (name, value, made_at) VALUES (:name, :value, :now) ON CONFLICT DO NOTHING")
_GET = Sql("SELECT value FROM secrets WHERE name = :name")


async def keep(tx: Tx, name: str, value: str) -> None:
    """Keep a secret under this name, unless there is one already."""
    await tx.run(_KEEP, name=name, value=value, now=tx.now)


async def get(tx: Tx, name: str) -> str | None:
    """The secret of this name."""
    found: str | None = await tx.value(_GET, name=name)
    return found
