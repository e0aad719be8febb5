"""The lineage of the database, and the secret that it keeps for its nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from strongroom import identifiers, store

if TYPE_CHECKING:
    from strongroom.store import Tx

_DECOYS: Final = "decoys"


async def epoch(tx: Tx) -> str:
    """The id of this database's lineage; a database that has none gets one, and keeps it."""
    known = await store.epochs.epoch(tx)
    if known is None:
        await store.epochs.begin(tx, identifiers.new_uid(tx.now))
        known = await store.epochs.epoch(tx)
    assert known is not None  # noqa: S101 - it has just begun, here or on another node
    return known


async def decoy_secret(tx: Tx) -> str:
    """What decoys follow from, in hexadecimal: made once, and the same on all nodes, after every restart."""
    known = await store.secrets.get(tx, _DECOYS)
    if known is None:
        await store.secrets.put_if_absent(tx, _DECOYS, os.urandom(32).hex())
        known = await store.secrets.get(tx, _DECOYS)
    assert known is not None  # noqa: S101 - it has just been kept, here or on another node
    return known


async def probe(tx: Tx) -> bool:
    """Write to the database, and say whether its schema is the one that this program needs."""
    await store.epochs.probe(tx)
    return await store.schema.is_current(tx)
