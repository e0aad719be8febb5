"""Tickets: logins whose password was right and whose second factor is still to come. Only a hash of each is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.model import Login, Ticket
from strongroom.store.statement import ALL, Sql, columns, delete_earliest

if TYPE_CHECKING:
    from strongroom.store.database import Tx

# The password hash that was checked must still be the stored one, as for a session.
_INSERT = Sql("""
    INSERT INTO login_tickets (ticket_hash, user_id, password, device_name, created_at, expires_at)
    SELECT :ticket_hash, id, :password, CAST(:device_name AS TEXT), :now, :expires_at
      FROM users WHERE id = :user_id AND password_hash = :password_hash AND disabled_at IS NULL
""")
# An attacker who knows the password must not fill the disk with tickets. Of those of the same millisecond, the new one
# stays.
_TRIM = Sql("""
    DELETE FROM login_tickets WHERE user_id = :user_id AND ticket_hash IN (
        SELECT ticket_hash FROM login_tickets WHERE user_id = :user_id
         ORDER BY created_at DESC, ticket_hash <> :ticket_hash, ticket_hash LIMIT :all OFFSET :keep)
""")
_HOLDER = Sql("""
    SELECT id, email, password_hash FROM users JOIN login_tickets ON login_tickets.user_id = users.id
     WHERE ticket_hash = :ticket_hash AND expires_at > :now
""")
_TAKE = Sql(f"""
    DELETE FROM login_tickets WHERE ticket_hash = :ticket_hash AND expires_at > :now RETURNING {columns(Ticket)}
""")
_CLEAR = Sql("DELETE FROM login_tickets WHERE user_id = :user_id")
_PURGE = delete_earliest("login_tickets", "expires_at")


async def insert(
    tx: Tx,
    user_id: str,
    password_hash: str,
    ticket_hash: str,
    password: str,
    expires_at: int,
    device_name: str | None,
    keep: int,
) -> bool:
    """Add a ticket, and delete all but the newest `keep`; False if account or password changed since the check."""
    added = await tx.run(
        _INSERT,
        user_id=user_id,
        password_hash=password_hash,
        ticket_hash=ticket_hash,
        password=password,
        now=tx.now,
        expires_at=expires_at,
        device_name=device_name,
    )
    await tx.run(_TRIM, user_id=user_id, ticket_hash=ticket_hash, keep=keep, all=ALL)
    return added > 0


async def holder(tx: Tx, ticket_hash: str) -> Login | None:
    """The account of a ticket that has not expired."""
    return await tx.one(Login, _HOLDER, ticket_hash=ticket_hash, now=tx.now)


async def take(tx: Tx, ticket_hash: str) -> Ticket | None:
    """Use up a ticket; None if there is none, or it has expired."""
    return await tx.one(Ticket, _TAKE, ticket_hash=ticket_hash, now=tx.now)


async def clear(tx: Tx, user_id: str) -> None:
    """Delete the tickets of an account."""
    await tx.run(_CLEAR, user_id=user_id)


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some that expired from `reached` to this timestamp; when they did."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
