"""Invitations to register, each for one account. Only a hash of the code is stored; a revoked one is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from strongroom.model import Invitation
from strongroom.store.statement import Sql, delete_earliest

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_INSERT = Sql("""
    INSERT INTO invitations (uid, code_hash, email, note, created_at, expires_at, taken_emails)
    VALUES (:uid, :code_hash, :email, :note, :created_at, :expires_at, :taken_emails)
""")
_PAGE = Sql("""
    SELECT uid, email, note, created_at, expires_at, taken_emails, used_at, used_by,
           (SELECT users.email FROM users WHERE users.id = invitations.used_by)
      FROM invitations WHERE uid > :after ORDER BY uid LIMIT :limit
""")
_USABLE = """
    code_hash = :code_hash AND used_at IS NULL AND expires_at > :now AND taken_emails < :most
    AND (email IS NULL OR email = :email)
"""
_IS_USABLE = Sql(f"SELECT 1 FROM invitations WHERE {_USABLE}")
_COUNT_TAKEN = Sql(f"UPDATE invitations SET taken_emails = taken_emails + 1 WHERE {_USABLE}")
_USE = Sql(f"UPDATE invitations SET used_at = :now, expires_at = :now, used_by = :user_id WHERE {_USABLE}")
_REVOKE = Sql("DELETE FROM invitations WHERE uid = :uid AND used_at IS NULL")
_PURGE = delete_earliest("invitations", "expires_at")


async def insert(tx: Tx, invitation: Invitation, code_hash: str) -> None:
    """Add an invitation that was not used."""
    await tx.run(_INSERT, code_hash=code_hash, **msgspec.structs.asdict(invitation))


async def page(tx: Tx, after: str, limit: int) -> list[Invitation]:
    """The invitations after this uid, oldest first."""
    return await tx.all(Invitation, _PAGE, after=after, limit=limit)


async def is_usable(tx: Tx, code_hash: str, email: str, most: int) -> bool:
    """Whether this email may register with the code; `most`: how many taken emails it may be tried with."""
    return await tx.value(_IS_USABLE, code_hash=code_hash, email=email, most=most, now=tx.now) is not None


async def count_taken(tx: Tx, code_hash: str, email: str, most: int) -> bool:
    """Count an attempt with an email that has an account; False if the code is not usable any more."""
    return await tx.run(_COUNT_TAKEN, code_hash=code_hash, email=email, most=most, now=tx.now) > 0


async def use(tx: Tx, code_hash: str, email: str, most: int, user_id: str) -> bool:
    """Use the code up for this account; False if it is not usable any more."""
    return await tx.run(_USE, code_hash=code_hash, email=email, most=most, user_id=user_id, now=tx.now) > 0


async def revoke(tx: Tx, uid: str) -> bool:
    """Delete an invitation that was not used; False if there is none."""
    return await tx.run(_REVOKE, uid=uid) > 0


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some invitations that were used or expired from `reached` to this timestamp; when."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
