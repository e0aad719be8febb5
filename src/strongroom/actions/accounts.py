"""Accounts: register, look up for a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import store
from strongroom.actions import sessions
from strongroom.errors import EmailAlreadyExists, Unauthorized

if TYPE_CHECKING:
    from strongroom.credentials import Pair
    from strongroom.model import Actor, Login, User
    from strongroom.store import Tx


async def require_free(tx: Tx, email: str) -> None:
    """Refuse an email that has an account, before any work is spent on its password."""
    if await store.accounts.by_email(tx, email) is not None:
        raise EmailAlreadyExists


async def register(tx: Tx, user_id: str, email: str, password_hash: str, pair: Pair) -> User:
    """Make an account and open its first session."""
    user = await store.accounts.insert(tx, user_id, email, password_hash)
    if user is None:
        raise EmailAlreadyExists
    await sessions.open_(tx, user_id, password_hash, pair)
    return user


async def me(tx: Tx, actor: Actor) -> User:
    """The actor's account."""
    user = await store.accounts.get(tx, actor.user_id)
    if user is None:
        raise Unauthorized
    return user


async def for_login(tx: Tx, email: str) -> Login | None:
    """What a login with this email is checked against."""
    return await store.accounts.by_email(tx, email)
