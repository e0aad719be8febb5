"""Events: an account's audit log, with time and address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.model import Event, Origin
from strongroom.store.statement import Sql, columns, delete_earliest

if TYPE_CHECKING:
    from strongroom.store.database import Tx

# Nothing where there is no such account: a failed login runs the same statements for an email without one.
_ADD = Sql("""
    INSERT INTO events (user_id, id, type, created_at, address, user_agent)
    SELECT id, :id, :type, :now, :address, :user_agent FROM users WHERE id = :user_id
""")
_NEWEST = Sql(f"""
    SELECT {columns(Event)} FROM events WHERE user_id = :user_id AND id < :before ORDER BY id DESC LIMIT :limit
""")
# An attacker who guesses passwords must not fill the disk with the log, nor push other events out of it.
_TRIM = Sql("""
    DELETE FROM events WHERE user_id = :user_id AND type = :type AND id <= (
        SELECT id FROM events WHERE user_id = :user_id AND type = :type ORDER BY id DESC LIMIT 1 OFFSET :keep)
""")
_PURGE = delete_earliest("events", "created_at")


async def add(tx: Tx, user_id: str, event_id: str, kind: str, origin: Origin, keep: int) -> None:
    """Add an event, and delete all but the newest `keep` of its type."""
    await tx.run(
        _ADD,
        user_id=user_id,
        id=event_id,
        type=kind,
        now=tx.now,
        address=origin.address,
        user_agent=origin.user_agent,
    )
    await tx.run(_TRIM, user_id=user_id, type=kind, keep=keep)


async def newest(tx: Tx, user_id: str, before: str, limit: int) -> list[Event]:
    """The newest events before this one, newest first."""
    return await tx.all(Event, _NEWEST, user_id=user_id, before=before, limit=limit)


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some events from `reached` to this timestamp; their times."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
