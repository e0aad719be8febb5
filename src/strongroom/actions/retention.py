"""Retention: purges expired trash, history and change records, in small transactions that delay no writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import store
from strongroom.rules import DAY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.model import ExpiredRow, RetentionPolicy
    from strongroom.store import Tx

ROWS: Final = 64  # in one transaction, at most
BYTES: Final = 1024 * 1024  # of ciphertext in one transaction, unless a single row is larger
KEYRING_DAYS: Final = 90  # that a replaced keyring is retained
CHANGES_DAYS: Final = 7  # at least, so that a client that reconnects to an event stream misses nothing


async def purge_some(tx: Tx, retention: RetentionPolicy) -> bool:
    """Purge some expired rows; False if there are none. The rest is left to the next call."""
    history = tx.now - retention.history_days * DAY
    changes = tx.now - max(retention.history_days, CHANGES_DAYS) * DAY
    keyrings = tx.now - KEYRING_DAYS * DAY
    return (
        (retention.trash_days is not None and await _expired_trash(tx, tx.now - retention.trash_days * DAY))
        or await _drop(tx, await store.versions.replaced_before(tx, history, ROWS), _versions)
        or await _drop(tx, await store.versions.blobs_replaced_before(tx, history, ROWS), _blobs)
        or await _drop(tx, await store.vault_changes.before(tx, changes, ROWS), store.vault_changes.drop)
        or await _drop(tx, await store.keyrings.replaced_before(tx, keyrings, ROWS), store.keyrings.drop)
    )


async def _expired_trash(tx: Tx, before: int) -> bool:
    """Purge some documents that were deleted before a time; whether there were any."""
    expired = await store.documents.deleted_before(tx, before, ROWS)
    await purge_trash(tx, expired)
    return bool(expired)


async def purge_trash(tx: Tx, expired: list[ExpiredRow]) -> int:
    """Purge the ciphertext of tombstones, and their versions: as many of the first as one transaction may.

    Returns how many were purged: none where the first is larger than that, and only some of its versions went.
    """
    fitting = _fitting(expired)
    await store.ledgers.lock(tx, (one.user_id for one in fitting or expired[:1]))
    if fitting:
        await store.retained.subtract_trash(tx, fitting)
        purged = await store.documents.purge(tx, fitting)
        await store.versions.drop_all_of(tx, purged)
        return len(purged)
    if expired and await store.documents.is_trash(tx, expired[0]):  # larger than one transaction: its versions first
        versions = await store.versions.oldest_of(tx, expired[0], ROWS)
        await _versions(tx, _fitting(versions) or versions[:1])
        if not versions:
            await store.retained.subtract_trash(tx, expired[:1])
            return len(await store.documents.purge(tx, expired[:1]))
    return 0


async def _versions(tx: Tx, expired: list[ExpiredRow]) -> None:
    await store.retained.subtract_versions(tx, expired)
    await store.versions.drop(tx, expired)


async def _blobs(tx: Tx, expired: list[ExpiredRow]) -> None:
    await store.retained.subtract_blobs(tx, expired)
    await store.versions.drop_blobs(tx, expired)


async def _drop(tx: Tx, expired: list[ExpiredRow], drop: Callable[[Tx, list[ExpiredRow]], Awaitable[None]]) -> bool:
    """Purge as many of the expired rows as one transaction may; whether there were any."""
    fitting = _fitting(expired) or expired[:1]
    await store.ledgers.lock(tx, (one.user_id for one in fitting))
    await drop(tx, fitting)
    return bool(expired)


def _fitting(expired: list[ExpiredRow]) -> list[ExpiredRow]:
    """The first rows, as many as one transaction may purge."""
    rows = size = 0
    for index, one in enumerate(expired):
        rows += one.rows
        size += one.bytes
        if rows > ROWS or size > BYTES:
            return expired[:index]
    return expired
