"""Deletions: the rows of deleted vaults and accounts go in small transactions that delay no writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import rules, store
from strongroom.actions.retention import fitting
from strongroom.errors import Unavailable
from strongroom.store.queries.deletions import ACCOUNT, Deletion

if TYPE_CHECKING:
    from strongroom.store import Tx

ROWS: Final = 64  # in one transaction, at most; of ciphertext no more than a purge deletes at once


class DeletionProgress:
    """Where the steps of one process are in each vault: PostgreSQL would go through all that earlier ones deleted."""

    def __init__(self) -> None:
        self._reached: dict[tuple[str, str], int] = {}

    def of(self, deletion: Deletion) -> int:
        """The time from which on the documents of a vault are still there."""
        return self._reached.get((deletion.user_id, deletion.vault_uid), 0)

    def move(self, deletion: Deletion, reached: int) -> None:
        """Continue here with the next step."""
        self._reached[deletion.user_id, deletion.vault_uid] = reached

    def forget(self, deletion: Deletion) -> None:
        """The vault is empty."""
        self._reached.pop((deletion.user_id, deletion.vault_uid), None)


async def delete_some(tx: Tx, progress: DeletionProgress) -> bool:
    """Delete some rows of what was deleted; False where none wait. Any process may do this, also several at once."""
    deletion = await store.deletions.claim(tx)
    if deletion is None:  # on PostgreSQL it may be that each waiting account is locked
        deletion = await store.deletions.oldest(tx)
        if deletion is None:
            return False
        await store.ledgers.lock(tx, [deletion.user_id])
    await _step(tx, deletion, progress)
    return True


async def delete_some_of(tx: Tx, user_id: str, progress: DeletionProgress) -> bool:
    """Delete some rows of the deleted vaults of an account; False where none wait."""
    await store.ledgers.lock(tx, [user_id])
    deletion = await store.deletions.of_account(tx, user_id)
    if deletion is None:
        return False
    await _step(tx, deletion, progress)
    return True


async def is_crowded(tx: Tx, user_id: str) -> bool:
    """Whether so many deleted vaults of an account wait for their rows that the next one is to delete some of them."""
    return (await store.deletions.counts(tx, user_id)).waiting >= rules.WAITING_DELETIONS // 2


async def require_room(tx: Tx, user_id: str) -> None:
    """Refuse a deletion while too many of the account are not forgotten; another attempt finds room."""
    counts = await store.deletions.counts(tx, user_id)
    if counts.all >= rules.DELETIONS_PER_ACCOUNT or counts.waiting >= rules.WAITING_DELETIONS:
        raise Unavailable(1)


async def add_account(tx: Tx, user_id: str) -> None:
    """Record that an account was deleted."""
    await store.deletions.add(tx, user_id, ACCOUNT, rules.MAX_INTEGER)


async def _step(tx: Tx, deletion: Deletion, progress: DeletionProgress) -> None:
    if not deletion.is_account:
        if not await _delete_contents(tx, deletion, progress):
            await store.deletions.finish(tx, deletion)
        return
    vault = await store.deletions.of_account(tx, deletion.user_id)
    if vault is not None:
        await _step(tx, vault, progress)
        return
    uid = await store.deletions.vault_of_account(tx, deletion.user_id)
    if uid is not None:
        if not await _delete_contents(tx, Deletion(deletion.user_id, uid, rules.MAX_INTEGER), progress):
            await store.deletions.drop_vault(tx, deletion.user_id, uid)
    elif not await store.deletions.drop_some(tx, deletion.user_id):
        await store.accounts.remove(tx, deletion.user_id)
        await store.deletions.finish(tx, deletion)


async def _delete_contents(tx: Tx, deletion: Deletion, progress: DeletionProgress) -> bool:
    """Delete some documents of a vault with their versions, or a replaced blob; False where there are none."""
    found = await store.deletions.documents(tx, deletion, progress.of(deletion), ROWS)
    if found:
        progress.move(deletion, found[0].since)
        some = fitting(found)
        if not some:  # the first is larger than one transaction: its versions first
            versions = await store.versions.oldest_of(tx, found[0], ROWS)
            await store.versions.drop(tx, fitting(versions) or versions[:1])
            some = [] if versions else found[:1]
        await store.deletions.drop_documents(tx, deletion.user_id, some)
        return True
    version = await store.deletions.blob(tx, deletion)
    if version is not None:
        await store.deletions.drop_blob(tx, deletion, version)
        return True
    progress.forget(deletion)
    return False
