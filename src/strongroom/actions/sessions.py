"""Sessions: open, recognise, refresh, end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import store
from strongroom.errors import InvalidCredentials, Unauthorized
from strongroom.model import Actor, User
from strongroom.rules import GUESS_WINDOW, REUSE_GRACE

if TYPE_CHECKING:
    from strongroom.credentials import Claims, Pair
    from strongroom.store import Tx


async def open_(tx: Tx, user_id: str, password_hash: str, pair: Pair) -> None:
    """Open a session for an account whose password was checked against this hash."""
    if not await store.sessions.open_(tx, user_id, pair.session_id, password_hash, pair.session_expires_at):
        raise InvalidCredentials
    await store.sessions.add_token(tx, user_id, pair.session_id, pair.jti, 0, pair.refresh_expires_at)


async def log_in(tx: Tx, user: User, password_hash: str, pair: Pair, address: str, account: str) -> None:
    """Open a session after a correct password, and clear the count of wrong ones."""
    await open_(tx, user.id, password_hash, pair)
    await store.failures.clear(tx, address, account)


async def actor(tx: Tx, claims: Claims) -> Actor:
    """Who presents this access token; refused if its session has ended."""
    if not await store.sessions.is_open(tx, claims.sub, claims.sid):
        raise Unauthorized
    return Actor(claims.sub, claims.sid)


async def refresh(tx: Tx, claims: Claims, pair: Pair) -> bool:
    """Exchange a refresh token for a pair of the next generation; False if it is refused.

    Presenting generation n kills all below n. A dead token that comes back later than two tabs would explain is in
    two hands, and one of them is a thief's: the session ends. That must be written, so a refusal is a return value.
    """
    token = await store.sessions.token(tx, claims.sub, claims.sid, claims.jti)
    if token is None:
        return False
    if not await store.sessions.present(tx, claims.sub, claims.sid, token.generation, pair.session_expires_at):
        if token.superseded_at is not None and tx.now - token.superseded_at > REUSE_GRACE:
            await store.sessions.end(tx, claims.sub, claims.sid)
        return False
    await store.sessions.add_token(tx, claims.sub, claims.sid, pair.jti, token.generation + 1, pair.refresh_expires_at)
    return True


async def log_out(tx: Tx, actor: Actor) -> None:
    """End the session: its refresh tokens and its access tokens are refused from now on."""
    if actor.session_id is not None:
        await store.sessions.end(tx, actor.user_id, actor.session_id)


async def purge(tx: Tx) -> None:
    """Forget sessions and tokens that have expired, and failures that are too old to count."""
    await store.sessions.purge(tx)
    await store.failures.purge(tx, tx.now - GUESS_WINDOW)
