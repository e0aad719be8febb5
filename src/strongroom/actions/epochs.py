"""The epoch of the database, which changes with a restore, and the secret that its nodes share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from strongroom import identifiers, store

if TYPE_CHECKING:
    from strongroom.store import Tx

_DECOYS: Final = "decoys"


async def epoch(tx: Tx) -> str:
    """The database's epoch; a database without one gets one."""
    known = await store.epochs.epoch(tx)
    if known is None:
        await store.epochs.begin(tx, identifiers.new_uid(tx.now))
        known = await store.epochs.epoch(tx)
    assert known is not None  # noqa: S101 - it was just stored, by this node or another
    return known


async def decoy_secret(tx: Tx) -> str:
    """The secret that decoy descriptors are derived from, in hexadecimal; the same on all nodes and after restarts."""
    known = await store.secrets.get(tx, _DECOYS)
    if known is None:
        await store.secrets.put_if_absent(tx, _DECOYS, os.urandom(32).hex())
        known = await store.secrets.get(tx, _DECOYS)
    assert known is not None  # noqa: S101 - it was just stored, by this node or another
    return known


async def probe(tx: Tx) -> bool:
    """Write to the database; whether its schema is the one that this release needs."""
    await store.epochs.probe(tx)
    return await store.schema.is_current(tx)
