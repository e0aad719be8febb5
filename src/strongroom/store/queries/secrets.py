"""Secrets of this database, which its nodes share and no setting changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_PUT_IF_ABSENT = Sql("INSERT INTO secrets (name, value, made_at) VALUES (:name, :value, :now) ON CONFLICT DO NOTHING")
_GET = Sql("SELECT value FROM secrets WHERE name = :name")


async def put_if_absent(tx: Tx, name: str, value: str) -> None:
    """Store a secret under this name, unless there is one already."""
    await tx.run(_PUT_IF_ABSENT, name=name, value=value, now=tx.now)


async def get(tx: Tx, name: str) -> str | None:
    """The secret of this name."""
    found: str | None = await tx.value(_GET, name=name)
    return found
