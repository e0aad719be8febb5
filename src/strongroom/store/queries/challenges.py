"""Challenges of ceremonies with passkeys. Only a hash is stored; one that was used is a row that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.statement import ALL, Sql, delete_earliest

if TYPE_CHECKING:
    from strongroom.model import Purpose
    from strongroom.store.database import Tx

_ADD = Sql("""
    INSERT INTO challenges (challenge_hash, purpose, user_id, address, created_at, expires_at)
    VALUES (:challenge_hash, :purpose, CAST(:user_id AS TEXT), CAST(:address AS TEXT), :now, :expires_at)
""")
_NTH_OF_ADDRESS = Sql("""
    SELECT expires_at FROM challenges WHERE address = :address AND expires_at > :now
     ORDER BY expires_at DESC LIMIT 1 OFFSET :skip
""")
# Of those that began in the same millisecond, the new one stays.
_TRIM = Sql("""
    DELETE FROM challenges WHERE user_id = :user_id AND challenge_hash IN (
        SELECT challenge_hash FROM challenges WHERE user_id = :user_id
         ORDER BY created_at DESC, challenge_hash <> :newest, challenge_hash LIMIT :all OFFSET :keep)
""")
# Whoever deletes the row has used the challenge: of two at once, one finds nothing.
_TAKE = Sql("""
    DELETE FROM challenges
     WHERE challenge_hash = :challenge_hash AND purpose = :purpose AND expires_at > :now
       AND coalesce(user_id, '') = :user_id
""")
_CLEAR = Sql("DELETE FROM challenges WHERE user_id = :user_id")
_PURGE = delete_earliest("challenges", "expires_at")


async def add(
    tx: Tx,
    challenge_hash: str,
    purpose: Purpose,
    expires_at: int,
    *,
    user_id: str | None = None,
    address: str | None = None,
) -> None:
    """Add a challenge: of an account, or of an address where no account is known."""
    await tx.run(
        _ADD,
        challenge_hash=challenge_hash,
        purpose=purpose.value,
        user_id=user_id,
        address=address,
        now=tx.now,
        expires_at=expires_at,
    )


async def nth_of_address(tx: Tx, address: str, n: int) -> int | None:
    """When the n-th newest open challenge of this address expires, if there are n."""
    expires_at: int | None = await tx.value(_NTH_OF_ADDRESS, address=address, now=tx.now, skip=n - 1)
    return expires_at


async def trim(tx: Tx, user_id: str, newest: str, keep: int) -> None:
    """Delete the oldest challenges of an account that are too many, never the one that was just added."""
    await tx.run(_TRIM, user_id=user_id, newest=newest, keep=keep, all=ALL)


async def take(tx: Tx, challenge_hash: str, purpose: Purpose, user_id: str | None) -> bool:
    """Use a challenge up; False if it is unknown, used, expired, or for another purpose or account."""
    taken = await tx.run(_TAKE, challenge_hash=challenge_hash, purpose=purpose.value, user_id=user_id or "", now=tx.now)
    return taken > 0


async def clear(tx: Tx, user_id: str) -> None:
    """Delete the challenges of an account."""
    await tx.run(_CLEAR, user_id=user_id)


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some that expired from `reached` to this timestamp; when they did."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
