"""The lineage of a database: a random id that all its nodes share, and that a restore from a backup changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_BEGIN = Sql("INSERT INTO lineage (id, epoch, began_at) VALUES (1, :epoch, :now) ON CONFLICT DO NOTHING")
_PROBE = Sql("UPDATE lineage SET probed_at = :now WHERE id = 1")
_EPOCH = Sql("SELECT epoch FROM lineage")


async def begin(tx: Tx, epoch: str) -> None:
    """Begin the lineage under this id, unless it has begun already."""
    await tx.run(_BEGIN, epoch=epoch, now=tx.now)


async def epoch(tx: Tx) -> str | None:
    """The id of this lineage; None before it has begun."""
    found: str | None = await tx.value(_EPOCH)
    return found


async def probe(tx: Tx) -> None:
    """Write something that nobody reads, to see whether it can be written."""
    await tx.run(_PROBE, now=tx.now)
