"""Throwing away what was kept for long enough, a little at a time: nobody who writes has to wait for it."""

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
CHANGES_DAYS: Final = 7  # who follows an account may be away for so long, however short the history


async def purge_some(tx: Tx, retention: RetentionPolicy) -> bool:
    """Throw away some of what is due; False if nothing is. What is left is due the next time."""
    history = tx.now - retention.history_days * DAY
    changes = tx.now - max(retention.history_days, CHANGES_DAYS) * DAY
    return (
        (retention.trash_days is not None and await _trash(tx, tx.now - retention.trash_days * DAY))
        or await _drop(tx, await store.versions.replaced_before(tx, history, ROWS), _versions)
        or await _drop(tx, await store.versions.blobs_replaced_before(tx, history, ROWS), _blobs)
        or await _drop(tx, await store.vault_changes.before(tx, changes, ROWS), store.vault_changes.drop)
    )


async def _trash(tx: Tx, before: int) -> bool:
    """Take the ciphertext from under tombstones, and the versions before them."""
    due = await store.documents.deleted_before(tx, before, ROWS)
    if not due:
        return False
    fitting = _fitting(due)
    await store.ledgers.lock(tx, (one.user_id for one in fitting or due[:1]))
    if fitting:
        await store.retained.subtract_trash(tx, fitting)
        await store.versions.drop_all_of(tx, await store.documents.purge(tx, fitting))
    elif await store.documents.is_trash(tx, due[0]):  # and more than fits: its versions go first, a few at a time
        versions = await store.versions.oldest_of(tx, due[0], ROWS)
        await _versions(tx, _fitting(versions) or versions[:1])
        if not versions:
            await store.retained.subtract_trash(tx, due[:1])
            await store.documents.purge(tx, due[:1])
    return True


async def _versions(tx: Tx, due: list[ExpiredRow]) -> None:
    await store.retained.subtract_versions(tx, due)
    await store.versions.drop(tx, due)


async def _blobs(tx: Tx, due: list[ExpiredRow]) -> None:
    await store.retained.subtract_blobs(tx, due)
    await store.versions.drop_blobs(tx, due)


async def _drop(tx: Tx, due: list[ExpiredRow], drop: Callable[[Tx, list[ExpiredRow]], Awaitable[None]]) -> bool:
    """Drop what is due, as much as fits."""
    fitting = _fitting(due) or due[:1]
    await store.ledgers.lock(tx, (one.user_id for one in fitting))
    await drop(tx, fitting)
    return bool(due)


def _fitting(due: list[ExpiredRow]) -> list[ExpiredRow]:
    """As many from the beginning as one transaction may throw away."""
    rows = size = 0
    for place, one in enumerate(due):
        rows += one.rows
        size += one.bytes
        if rows > ROWS or size > BYTES:
            return due[:place]
    return due
