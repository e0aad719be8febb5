"""The change feed: what changed in a vault or an account, in the order of the account's clock.

A change is the document as it is now, or a version of it that has been replaced since. So every change shows once,
for as long as history keeps it. A statement reads one snapshot of the database, and commits come in the order of the
clock: a reader that has seen a timestamp has seen all before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strongroom.model import Change
from strongroom.store.queries.deletions import live_after, with_later
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_OF_DOCUMENT = "updated_at, '' AS kind, uid, vault_uid, collection AS name, version, deleted_at"
_IN_VAULT = f"""
    user_id = :user_id AND vault_uid = :vault_uid AND {live_after(":since")} AND updated_at <= :until
"""
_OF_VAULT = with_later(f"""
    SELECT {_OF_DOCUMENT} FROM documents WHERE {_IN_VAULT}
     UNION ALL
    SELECT {_OF_DOCUMENT} FROM versions WHERE {_IN_VAULT}
     ORDER BY updated_at LIMIT :limit
""")
_OF_VAULTS = Sql("""
    SELECT changed_at, kind, vault_uid, vault_uid, name, version, NULL FROM vault_changes
     WHERE user_id = :user_id AND changed_at > :since AND changed_at <= :until
     ORDER BY changed_at LIMIT :limit
""")
# A version that was replaced after a timestamp has a successor after it: the documents alone show which vaults changed.
# Not the vault's own time, which lies behind its blob: SQLite would have to read the blob to come to it.
_LATEST = Sql("""
    SELECT uid, (SELECT max(updated_at) FROM documents AS d WHERE d.user_id = v.user_id AND d.vault_uid = v.uid)
      FROM vaults AS v WHERE user_id = :user_id AND uid > :beyond ORDER BY uid LIMIT :limit
""")


class Latest(NamedTuple):
    """A vault, and when a document in it last changed."""

    uid: str
    timestamp: int | None


async def of_vault(tx: Tx, user_id: str, vault_uid: str, since: int, until: int, limit: int) -> list[Change]:
    """The first changes of a vault's documents in this span of time."""
    return await tx.all(Change, _OF_VAULT, user_id=user_id, vault_uid=vault_uid, since=since, until=until, limit=limit)


async def of_vaults(tx: Tx, user_id: str, since: int, until: int, limit: int) -> list[Change]:
    """The first changes of an account's vaults themselves in this span of time."""
    return await tx.all(Change, _OF_VAULTS, user_id=user_id, since=since, until=until, limit=limit)


async def latest(tx: Tx, user_id: str, beyond: str, limit: int) -> list[Latest]:
    """The next vaults after this uid, and the time of the latest document in each."""
    return await tx.all(Latest, _LATEST, user_id=user_id, beyond=beyond, limit=limit)
