"""Ledgers: an account's clock and usage. `advance` locks the ledger until commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from strongroom.model import Usage
from strongroom.store.statement import Sql, columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strongroom.store.database import Tx


class Ledger(Struct, frozen=True):
    """The last timestamp of an account's clock, and its usage."""

    clock: int
    documents: int
    bytes: int
    row_bytes: int


# Advances the clock, adds usage, and takes the account's lock until commit. Where an import is unfinished
# it does nothing: the rule is in the row that is locked, so that no writer passes beside it.
_ADVANCED = """
       SET clock = CASE WHEN ledgers.clock < :now THEN :last ELSE ledgers.clock + :timestamps END,
           documents = ledgers.documents + :documents, bytes = ledgers.bytes + :bytes,
           row_bytes = ledgers.row_bytes + :row_bytes
"""
_MINE = "WHERE user_id = :user_id AND importing = 0"
_ADVANCE = Sql(
    sqlite=f"UPDATE ledgers {_ADVANCED} {_MINE}; SELECT {columns(Ledger)} FROM ledgers {_MINE}",
    postgres=f"UPDATE ledgers {_ADVANCED} {_MINE} RETURNING {columns(Ledger)}",
)
# The same for an account that has no ledger yet.
_BEGIN = Sql(f"""
    INSERT INTO ledgers (user_id, clock, documents, bytes, row_bytes)
    VALUES (:user_id, :last, :documents, :bytes, :row_bytes)
    ON CONFLICT (user_id) DO UPDATE {_ADVANCED} WHERE ledgers.importing = 0
 RETURNING {columns(Ledger)}
""")
_CORRECT = Sql("""
    UPDATE ledgers SET documents = documents + :documents, bytes = bytes + :bytes, row_bytes = row_bytes + :row_bytes
     WHERE user_id = :user_id
""")
# Without an update: PostgreSQL would keep what each of them replaces. SQLite has one writer, and nothing to lock.
_LOCK = Sql(
    sqlite="SELECT 1",
    postgres="""
        SELECT 1 FROM ledgers WHERE user_id = ANY (ARRAY(SELECT jsonb_array_elements_text(:user_ids::jsonb)))
         ORDER BY user_id FOR NO KEY UPDATE
    """,
)
_CLOCK = Sql("SELECT clock FROM ledgers WHERE user_id = :user_id")
_USAGE = Sql("""
    SELECT documents, bytes,
           (SELECT CAST(coalesce(sum(kept), 0) AS BIGINT) FROM vaults WHERE vaults.user_id = :user_id)
      FROM ledgers WHERE user_id = :user_id
""")


async def advance(
    tx: Tx, user_id: str, timestamps: int, documents: int, size: int, row_bytes: int = 0
) -> Ledger | None:
    """Advance the clock by so many timestamps, and add usage; None while an import is unfinished."""
    now = tx.now
    added = {"user_id": user_id, "now": now, "last": now + timestamps - 1, "timestamps": timestamps}
    added |= {"documents": documents, "bytes": size, "row_bytes": row_bytes}
    return await tx.one(Ledger, _ADVANCE, **added) or await tx.one(Ledger, _BEGIN, **added)


async def correct(tx: Tx, user_id: str, documents: int, size: int, row_bytes: int) -> None:
    """Correct the usage by what differs from what `advance` was given."""
    await tx.run(_CORRECT, user_id=user_id, documents=documents, bytes=size, row_bytes=row_bytes)


async def lock(tx: Tx, user_ids: Iterable[str]) -> None:
    """Lock these accounts until commit, always in the same order, without advancing their clocks."""
    await tx.all(int, _LOCK, user_ids=msgspec.json.encode(sorted(set(user_ids))).decode())


async def usage(tx: Tx, user_id: str) -> Usage:
    """The usage of the account."""
    return await tx.one(Usage, _USAGE, user_id=user_id) or Usage(0, 0)


async def clock(tx: Tx, user_id: str) -> int:
    """The account's clock; 0 where nothing was ever written."""
    timestamp: int | None = await tx.value(_CLOCK, user_id=user_id)
    return timestamp or 0
