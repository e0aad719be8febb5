"""Registrations by address, so that one address cannot make accounts without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import Sql, delete_earliest

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_ADD = Sql("INSERT INTO signups (address, signed_up_at) VALUES (:address, :now)")
_NTH = Sql("""
    SELECT signed_up_at FROM signups WHERE address = :address AND signed_up_at > :after
     ORDER BY signed_up_at DESC LIMIT 1 OFFSET :skip
""")
_PURGE = delete_earliest("signups", "signed_up_at")


async def add(tx: Tx, address: str) -> None:
    """Record a registration."""
    await tx.run(_ADD, address=address, now=tx.now)


async def nth(tx: Tx, address: str, after: int, n: int) -> int | None:
    """When the n-th newest registration from this address was, if there are n since `after`."""
    timestamp: int | None = await tx.value(_NTH, address=address, after=after, skip=n - 1)
    return timestamp


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some from `reached` to this timestamp; their times."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
