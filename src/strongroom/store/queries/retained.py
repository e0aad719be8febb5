"""Usage of trash and history, counted for each vault: what is in them, and 256 bytes more for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from strongroom.model import RETAINED_ROW_BYTES
from strongroom.store.queries.deletions import live
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.model import ExpiredRow
    from strongroom.store.database import Tx

_OF_ACCOUNT = Sql("SELECT CAST(coalesce(sum(kept), 0) AS BIGINT) FROM vaults WHERE user_id = :user_id")
_ADD = Sql("UPDATE vaults SET kept = kept + :size WHERE user_id = :user_id AND uid = :uid")
_AT = "CAST(due.value ->> 2 AS BIGINT)"
_VERSION = f"octet_length({{0}}.data) + coalesce(octet_length({{0}}.hmac), 0) + {RETAINED_ROW_BYTES}"


def _subtract(table: str, size: str, vault: str, condition: str) -> Sql:
    """Subtract the sizes of rows from what is counted for their vaults, which is never below zero.

    The parameter is a JSON list: a vault is updated once for all of its rows. With an update for each, PostgreSQL would
    go through all that earlier ones left, as long as an older transaction is open.
    """
    update = f"""
        UPDATE vaults SET kept = {{least}}(kept - freed.size, 0)
          FROM (SELECT user_id, uid, CAST(sum(size) AS BIGINT) AS size
                  FROM (SELECT x.user_id, {vault} AS uid, {size} AS size FROM {{rows}}) AS sized
                 GROUP BY user_id, uid) AS freed
         WHERE vaults.user_id = freed.user_id AND vaults.uid = freed.uid
    """
    of_live_vault = live("x.", "x.user_id", vault)  # another of the same uid may be there, which does not count them
    found = f"""
        {table} AS x WHERE x.user_id = due.value ->> 0 AND x.uid = due.value ->> 1 AND {condition} AND {of_live_vault}
    """
    by_key = f"CROSS JOIN LATERAL (SELECT * FROM {found} OFFSET 0) AS x"  # row by row, whatever the planner knows
    # With the limit, SQLite sorts sizes by their vaults, and does not read and sort the contents that are measured.
    return Sql(
        sqlite=update.format(least="max", rows=f"json_each(:due) AS due CROSS JOIN {found} LIMIT -1"),
        postgres=update.format(least="greatest", rows=f"jsonb_array_elements(:due::jsonb) AS due (value) {by_key}"),
    )


_TRASH = _subtract(
    "documents",
    f"""{_VERSION.format("x")} + coalesce(
        (SELECT sum({_VERSION.format("v")}) FROM versions AS v WHERE v.user_id = x.user_id AND v.uid = x.uid), 0)""",
    "x.vault_uid",
    f"(x.deleted_at = {_AT} OR x.updated_at = {_AT}) AND x.deleted_at IS NOT NULL AND x.purged_at IS NULL",
)
_VERSIONS = _subtract("versions", _VERSION.format("x"), "x.vault_uid", f"x.version = {_AT}")
_BLOBS = _subtract(
    "blob_versions",
    f"octet_length(x.data) + coalesce(octet_length(x.salt), 0) + {RETAINED_ROW_BYTES}",
    "x.uid",
    f"x.version = {_AT}",
)


async def of_account(tx: Tx, user_id: str) -> int:
    """The usage of an account's trash and history, in bytes."""
    total: int = await tx.value(_OF_ACCOUNT, user_id=user_id)
    return total


async def add(tx: Tx, user_id: str, vault_uid: str, size: int) -> None:
    """Add a size to what is counted for a vault."""
    await tx.run(_ADD, user_id=user_id, uid=vault_uid, size=size)


async def subtract_trash(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Subtract the size of tombstones and their versions, which are about to be purged."""
    await tx.run(_TRASH, due=_listed(due))


async def subtract_versions(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Subtract the size of versions of documents, which are about to be dropped."""
    await tx.run(_VERSIONS, due=_listed(due))


async def subtract_blobs(tx: Tx, due: Sequence[ExpiredRow]) -> None:
    """Subtract the size of versions of blobs, which are about to be dropped."""
    await tx.run(_BLOBS, due=_listed(due))


def _listed(due: Sequence[ExpiredRow]) -> str:
    return msgspec.json.encode([(one.user_id, one.uid, one.at) for one in due]).decode()
