"""Failed attempts, by address and account: stored, so that they survive restarts and count on all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import Sql, delete_earliest

if TYPE_CHECKING:
    from strongroom.store.database import Tx

# SQLite has one writer; on PostgreSQL an advisory lock serialises those that count one address.
_LOCK_ADDRESS = Sql(sqlite="SELECT :address", postgres="SELECT pg_advisory_xact_lock(hashtext(:address))")
_ADD = Sql("INSERT INTO failures (address, account, failed_at) VALUES (:address, :account, :now)")
# The time of the failure that makes the limit full, counted back from the newest: None while it is not full.
_NTH_OF_ACCOUNT = Sql("""
    SELECT failed_at FROM failures WHERE address = :address AND account = :account AND failed_at > :after
     ORDER BY failed_at DESC LIMIT 1 OFFSET :skip
""")
_NTH_OF_ADDRESS = Sql("""
    SELECT failed_at FROM failures WHERE address = :address AND failed_at > :after
     ORDER BY failed_at DESC LIMIT 1 OFFSET :skip
""")
_COUNT_OF_ACCOUNT = Sql("""
    SELECT count(*) FROM failures WHERE address = :address AND account = :account AND failed_at > :after
""")
_COUNT_OF_ADDRESS = Sql("SELECT count(*) FROM failures WHERE address = :address AND failed_at > :after")
_CLEAR = Sql("DELETE FROM failures WHERE address = :address AND account = :account")
_CLEAR_ACCOUNT = Sql("DELETE FROM failures WHERE account = :account")
_CLEAR_ADDRESS = Sql("DELETE FROM failures WHERE address = :address")
_PURGE = delete_earliest("failures", "failed_at")


async def lock_address(tx: Tx, address: str) -> None:
    """Lock the failures of this address until commit."""
    await tx.value(_LOCK_ADDRESS, address=address)


async def add(tx: Tx, address: str, account: str) -> None:
    """Record a failure; `account` is empty where none was named."""
    await tx.run(_ADD, address=address, account=account, now=tx.now)


async def nth_of_account(tx: Tx, address: str, account: str, after: int, n: int) -> int | None:
    """When the n-th newest failure of this account from this address was, if there are n since `after`."""
    timestamp: int | None = await tx.value(_NTH_OF_ACCOUNT, address=address, account=account, after=after, skip=n - 1)
    return timestamp


async def nth_of_address(tx: Tx, address: str, after: int, n: int) -> int | None:
    """When the n-th newest failure from this address was, if there are n since `after`."""
    timestamp: int | None = await tx.value(_NTH_OF_ADDRESS, address=address, after=after, skip=n - 1)
    return timestamp


async def count_of_account(tx: Tx, address: str, account: str, after: int) -> int:
    """How many failures of this account from this address there are since `after`."""
    count: int = await tx.value(_COUNT_OF_ACCOUNT, address=address, account=account, after=after)
    return count


async def count_of_address(tx: Tx, address: str, after: int) -> int:
    """How many failures from this address there are since `after`."""
    count: int = await tx.value(_COUNT_OF_ADDRESS, address=address, after=after)
    return count


async def clear(tx: Tx, address: str, account: str) -> None:
    """Delete the failures of this account from this address."""
    await tx.run(_CLEAR, address=address, account=account)


async def clear_account(tx: Tx, account: str) -> int:
    """Delete the failures of this account from anywhere; how many there were."""
    return await tx.run(_CLEAR_ACCOUNT, account=account)


async def clear_address(tx: Tx, address: str) -> int:
    """Delete the failures of this address; how many there were."""
    return await tx.run(_CLEAR_ADDRESS, address=address)


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some from `reached` to this timestamp; their times."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
