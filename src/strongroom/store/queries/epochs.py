"""The epoch of a database: a random id that all its nodes share, and that a restore from a backup changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_BEGIN = Sql("INSERT INTO lineage (id, epoch, began_at) VALUES (1, :epoch, :now) ON CONFLICT DO NOTHING")
_PROBE = Sql("UPDATE lineage SET probed_at = :now WHERE id = 1")
_EPOCH = Sql("SELECT epoch FROM lineage")


async def begin(tx: Tx, epoch: str) -> None:
    """Set the epoch, unless there is one already."""
    await tx.run(_BEGIN, epoch=epoch, now=tx.now)


async def epoch(tx: Tx) -> str | None:
    """The epoch; None before there is one."""
    found: str | None = await tx.value(_EPOCH)
    return found


async def probe(tx: Tx) -> None:
    """Write a row that is never read, to check that the database can be written to."""
    await tx.run(_PROBE, now=tx.now)
