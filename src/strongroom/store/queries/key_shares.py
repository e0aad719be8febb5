"""Key shares: what the server keeps of the key of a saved session. A share goes with its session, or its account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.queries.accounts import IS_THERE
from strongroom.store.statement import Sql, delete_earliest

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_FOUND = f"""
    INSERT INTO key_shares (user_id, session_id, key_share, expires_at)
    SELECT sessions.user_id, sessions.id, CAST(:key_share AS TEXT), :until
      FROM users JOIN sessions ON sessions.user_id = users.id
     WHERE users.id = :user_id AND {IS_THERE} AND sessions.id = :session_id
"""
_REPLACED = """
    ON CONFLICT (user_id, session_id) DO UPDATE SET key_share = excluded.key_share, expires_at = excluded.expires_at
    RETURNING session_id
"""
# Neither may the session end nor the account be deleted between the check and the row that goes with them.
_PUT = Sql(sqlite=f"{_FOUND} {_REPLACED}", postgres=f"{_FOUND} FOR SHARE {_REPLACED}")
_RENEW = Sql("""
    UPDATE key_shares SET expires_at = CASE WHEN expires_at < :until THEN :until ELSE expires_at END
     WHERE user_id = :user_id AND session_id = :session_id AND expires_at > :now
 RETURNING key_share
""")
_DELETE = Sql("DELETE FROM key_shares WHERE user_id = :user_id AND session_id = :session_id")
_PURGE = delete_earliest("key_shares", "expires_at")


async def put(tx: Tx, user_id: str, session_id: str, key_share: str, until: int) -> bool:
    """Keep a share with a session, in place of an earlier one; False if the session has ended, or its account."""
    kept = await tx.value(_PUT, user_id=user_id, session_id=session_id, key_share=key_share, until=until)
    return kept is not None


async def renew(tx: Tx, user_id: str, session_id: str, until: int) -> str | None:
    """The share of a session, which lasts until then; None if there is none, or it has expired."""
    found: str | None = await tx.value(_RENEW, user_id=user_id, session_id=session_id, until=until, now=tx.now)
    return found


async def delete(tx: Tx, user_id: str, session_id: str) -> None:
    """Delete the share of a session."""
    await tx.run(_DELETE, user_id=user_id, session_id=session_id)


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some that expired from `reached` to this timestamp; when they did."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
