"""The lineage of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, store

if TYPE_CHECKING:
    from strongroom.store import Tx


async def epoch(tx: Tx) -> str:
    """The id of this database's lineage; a database that has none gets one, and keeps it."""
    known = await store.lineage.epoch(tx)
    if known is None:
        await store.lineage.begin(tx, identifiers.new_uid(tx.now))
        known = await store.lineage.epoch(tx)
    assert known is not None  # noqa: S101 - it has just begun, here or on another node
    return known


async def probe(tx: Tx) -> bool:
    """Write to the database, and say whether its schema is the one that this program needs."""
    await store.lineage.probe(tx)
    return await store.schema.is_current(tx)
