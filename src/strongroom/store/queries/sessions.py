"""Sessions and their refresh tokens. A session that has ended is a row that is gone, and its tokens go with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from strongroom.model import Origin, Session
from strongroom.store.queries.accounts import of_open_accounts
from strongroom.store.session_check import SessionCheck
from strongroom.store.statement import ALL, Sql, columns, delete_earliest

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.store.database import Tx


class RefreshToken(Struct, frozen=True):
    """A refresh token's generation within its session, and when it was superseded."""

    generation: int
    superseded_at: int | None


# The password hash that was checked must still be the stored one: a login cannot outrun a password change.
_OPENED = """
    INSERT INTO sessions
           (user_id, id, generation, created_at, last_used_at, expires_at, address, user_agent, device_name)
    SELECT id, :id, 0, :now, :now, :expires_at, :address, :user_agent, CAST(:device_name AS TEXT)
      FROM users WHERE id = :user_id AND password_hash = :password_hash AND disabled_at IS NULL
"""
_OPEN = Sql(sqlite=f"{_OPENED} RETURNING id", postgres=f"{_OPENED} FOR SHARE RETURNING id")
# The session that was unused for longest ends first; of those used in the same millisecond, the new one stays.
_TRIM = Sql("""
    DELETE FROM sessions WHERE user_id = :user_id AND id IN (
        SELECT id FROM sessions WHERE user_id = :user_id
         ORDER BY last_used_at DESC, id <> :newest, id DESC LIMIT :all OFFSET :keep)
""")
_LIST = Sql(f"SELECT {columns(Session)} FROM sessions WHERE user_id = :user_id ORDER BY last_used_at DESC, id DESC")
_TOUCH = Sql("""
    UPDATE sessions SET last_used_at = :now, address = :address, user_agent = :user_agent
     WHERE user_id = :user_id AND id = :id AND last_used_at < :now
""")
_END_ALL = Sql("DELETE FROM sessions WHERE user_id = :user_id")
_END_OTHERS = Sql("DELETE FROM sessions WHERE user_id = :user_id AND id <> :id")
_ADD_TOKEN = Sql("""
    INSERT INTO refresh_tokens (user_id, jti, session_id, generation, created_at, expires_at)
    VALUES (:user_id, :jti, :session_id, :generation, :now, :expires_at)
""")
_TRIM_TOKENS = Sql("""
    DELETE FROM refresh_tokens WHERE user_id = :user_id AND jti IN (
        SELECT jti FROM refresh_tokens WHERE user_id = :user_id AND session_id = :session_id AND jti <> :presented
         ORDER BY generation DESC, jti DESC LIMIT :all OFFSET :others)
""")
# Run on every request: two searches by key, the second in the index of the accounts that are disabled.
_LAST_USED = of_open_accounts(
    "SELECT COALESCE(-{disabled}, last_used_at) FROM sessions WHERE user_id = :user_id AND id = :id", ":user_id"
)
_TOKEN = Sql(f"""
    SELECT {columns(RefreshToken)} FROM refresh_tokens
     WHERE user_id = :user_id AND jti = :jti AND session_id = :session_id
""")
# Presenting a token of generation n makes n the oldest that lives. Nothing happens if n is dead already.
_PRESENT = Sql("""
    UPDATE sessions
       SET generation = :generation,
           expires_at = CASE WHEN expires_at < :expires_at THEN :expires_at ELSE expires_at END
     WHERE user_id = :user_id AND id = :id AND generation <= :generation
 RETURNING id
""")
_SUPERSEDE = Sql("""
    UPDATE refresh_tokens SET superseded_at = :now
     WHERE user_id = :user_id AND session_id = :session_id AND generation < :generation AND superseded_at IS NULL
""")
_END = Sql("DELETE FROM sessions WHERE user_id = :user_id AND id = :id")
_PURGE_TOKENS = delete_earliest("refresh_tokens", "expires_at")
_PURGE = delete_earliest("sessions", "expires_at")


async def open_(
    tx: Tx,
    user_id: str,
    session_id: str,
    password_hash: str,
    expires_at: int,
    origin: Origin,
    device_name: str | None = None,
) -> bool:
    """Open a session; False if the account or its password has changed since it was checked."""
    opened = await tx.value(
        _OPEN,
        user_id=user_id,
        id=session_id,
        password_hash=password_hash,
        now=tx.now,
        expires_at=expires_at,
        address=origin.address,
        user_agent=origin.user_agent,
        device_name=device_name,
    )
    return opened is not None


async def trim(tx: Tx, user_id: str, newest: str, keep: int) -> int:
    """End the sessions that are too many, never the one that was just opened; how many there were."""
    ended = await tx.run(_TRIM, user_id=user_id, newest=newest, keep=keep, all=ALL)
    if ended:
        tx.notify(user_id, None)
    return ended


async def of_user(tx: Tx, user_id: str) -> list[Session]:
    """The sessions of an account, the one used last first."""
    return await tx.all(Session, _LIST, user_id=user_id)


async def touch(tx: Tx, user_id: str, session_id: str, origin: Origin) -> None:
    """Record the use of a session."""
    await tx.run(
        _TOUCH,
        user_id=user_id,
        id=session_id,
        now=tx.now,
        address=origin.address,
        user_agent=origin.user_agent,
    )


async def add_token(tx: Tx, user_id: str, session_id: str, jti: str, generation: int, expires_at: int) -> None:
    """Record a refresh token."""
    await tx.run(
        _ADD_TOKEN,
        user_id=user_id,
        jti=jti,
        session_id=session_id,
        generation=generation,
        now=tx.now,
        expires_at=expires_at,
    )


async def trim_tokens(tx: Tx, user_id: str, session_id: str, presented: str, keep: int) -> None:
    """Delete the oldest refresh tokens of a session that are too many, but not the presented one: it may come again."""
    where = {"user_id": user_id, "session_id": session_id, "presented": presented}
    await tx.run(_TRIM_TOKENS, **where, others=keep - 1, all=ALL)


async def last_used(tx: Tx, user_id: str, session_id: str) -> int | None:
    """When this session was last used; below zero if its account is disabled, None if it has ended."""
    used: int | None = await tx.value(_LAST_USED, user_id=user_id, id=session_id)
    return used


def session_check(user_id: str, session_id: str, validate: Callable[[int | None], int]) -> SessionCheck:
    """A check that this session is open; `validate` takes what `last_used` returns."""
    return SessionCheck(_LAST_USED, validate, user_id=user_id, id=session_id)


async def token(tx: Tx, user_id: str, session_id: str, jti: str) -> RefreshToken | None:
    """The record of a refresh token; None if it is unknown or its session has ended."""
    return await tx.one(RefreshToken, _TOKEN, user_id=user_id, jti=jti, session_id=session_id)


async def present(tx: Tx, user_id: str, session_id: str, generation: int, expires_at: int) -> bool:
    """Make this generation the oldest that lives, and lock the session; False if it is dead."""
    alive = await tx.value(_PRESENT, user_id=user_id, id=session_id, generation=generation, expires_at=expires_at)
    if alive is None:
        return False
    await tx.run(_SUPERSEDE, user_id=user_id, session_id=session_id, generation=generation, now=tx.now)
    return True


async def end(tx: Tx, user_id: str, session_id: str) -> bool:
    """End a session; False if there is none."""
    tx.notify(user_id, None)
    return await tx.run(_END, user_id=user_id, id=session_id) > 0


async def end_all(tx: Tx, user_id: str) -> int:
    """End all sessions of an account; how many there were."""
    return await tx.run(_END_ALL, user_id=user_id)


async def end_others(tx: Tx, user_id: str, session_id: str) -> int:
    """End all sessions of an account but this one; how many there were."""
    tx.notify(user_id, None)
    return await tx.run(_END_OTHERS, user_id=user_id, id=session_id)


async def purge_tokens(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some refresh tokens that expired from `reached` to this timestamp; when they did."""
    return await tx.all(int, _PURGE_TOKENS, reached=reached, before=before, limit=limit)


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some sessions that expired from `reached` to this timestamp; when they did.

    Their signatures are refused before they would be looked up. The tokens of a session expire no later than it does.
    """
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
