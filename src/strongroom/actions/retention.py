"""Retention: purges expired trash, history and change records, in small transactions that delay no writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import store
from strongroom.rules import DAY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.model import ExpiredRow, RetentionPolicy
    from strongroom.store import Tx

    _Expired = Callable[[Tx, int, int, int], Awaitable[list[ExpiredRow]]]
    _Purge = Callable[[Tx, int, int, int], Awaitable[list[int]]]

ROWS: Final = 64  # in one transaction, at most
SHORT_ROWS: Final = 256  # in one transaction, of those without ciphertext: sessions, tokens, log entries
BYTES: Final = 1024 * 1024  # of ciphertext in one transaction, unless a single row is larger
KEYRING_DAYS: Final = 90  # that a replaced keyring is retained
CHANGES_DAYS: Final = 7  # at least, so that a client that reconnects to an event stream misses nothing


class Sweep:
    """Where one run of the purge is in each table.

    A step continues there, not at the oldest row: PostgreSQL keeps the index entries of purged rows as long as any
    transaction that is older is open, such as that of a backup, and each step would read all of them again. A table in
    which nothing was left is not read again in the same run.
    """

    def __init__(self) -> None:
        self._reached: dict[_Expired | _Purge, int] = {}
        self._finished: set[_Expired | _Purge] = set()

    async def expired(self, tx: Tx, find: _Expired, before: int) -> list[ExpiredRow]:
        """The next expired rows of a table, as many as one transaction may purge at the most."""
        if find in self._finished:
            return []
        found = await find(tx, self._reached.get(find, 0), before, ROWS)
        if found:
            self._reached[find] = found[0].since
        else:
            self._finished.add(find)
        return found

    async def delete(self, tx: Tx, purge: _Purge, before: int) -> bool:
        """Delete rows of a table up to a time, as many as one transaction may; whether there may be more."""
        if purge in self._finished:
            return False
        times = await purge(tx, self._reached.get(purge, 0), before, SHORT_ROWS)
        if len(times) < SHORT_ROWS:
            self._finished.add(purge)
            return False
        self._reached[purge] = min(times)
        return True


async def purge_some(tx: Tx, retention: RetentionPolicy, sweep: Sweep) -> bool:
    """Purge some expired rows; False if there are none. The rest is left to the next call with the same sweep."""
    if retention.trash_days is not None:
        expired = await sweep.expired(tx, store.documents.deleted_before, tx.now - retention.trash_days * DAY)
        if expired:
            await purge_trash(tx, expired)
            return True
    changes_days = max(retention.history_days, CHANGES_DAYS)
    for find, days, drop in (
        (store.versions.replaced_before, retention.history_days, _versions),
        (store.versions.blobs_replaced_before, retention.history_days, _blobs),
        (store.vault_changes.before, changes_days, store.vault_changes.drop),
        (store.keyrings.replaced_before, KEYRING_DAYS, store.keyrings.drop),
    ):
        expired = await sweep.expired(tx, find, tx.now - days * DAY)
        if expired:
            some = fitting(expired) or expired[:1]
            await store.ledgers.lock(tx, (one.user_id for one in some))
            await drop(tx, some)
            return True
    return False


async def purge_trash(tx: Tx, expired: list[ExpiredRow]) -> int:
    """Purge the ciphertext of tombstones, and their versions: as many of the first as one transaction may.

    Returns how many were purged: none where the first is larger than that, and only some of its versions went.
    """
    some = fitting(expired)
    await store.ledgers.lock(tx, (one.user_id for one in some or expired[:1]))
    if some:
        await store.retained.subtract_trash(tx, some)
        purged = await store.documents.purge(tx, some)
        await store.versions.drop_all_of(tx, purged)
        return len(purged)
    if expired and await store.documents.is_trash(tx, expired[0]):  # larger than one transaction: its versions first
        versions = await store.versions.oldest_of(tx, expired[0], ROWS)
        await _versions(tx, fitting(versions) or versions[:1])
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


def fitting(expired: list[ExpiredRow]) -> list[ExpiredRow]:
    """The first rows, as many as one transaction may purge."""
    rows = size = 0
    for index, one in enumerate(expired):
        rows += one.rows
        size += one.bytes
        if rows > ROWS or size > BYTES:
            return expired[:index]
    return expired
