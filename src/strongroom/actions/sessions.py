"""Sessions: open, authenticate, refresh, list, end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from strongroom import credentials, store
from strongroom.actions import events, invitations, login_throttle, second_factors
from strongroom.errors import AccountDisabled, InvalidCredentials, InvalidTicket, SessionNotFound, Unauthorized
from strongroom.model import Actor, EventType, Login, Renewal
from strongroom.rules import (
    DAY,
    KEY_SHARE_GRACE,
    REUSE_GRACE,
    SESSIONS_PER_ACCOUNT,
    TICKETS_PER_ACCOUNT,
    TOKENS_PER_SESSION,
)

if TYPE_CHECKING:
    from strongroom.actions.retention import Sweep
    from strongroom.credentials import Claims, TokenPair
    from strongroom.model import FactorProof, Origin, Session
    from strongroom.store import Tx
    from strongroom.store.session_check import SessionCheck


async def open_(
    tx: Tx, user_id: str, password_hash: str, pair: TokenPair, origin: Origin, device_name: str | None = None
) -> None:
    """Open a session for an account whose password was verified against this hash."""
    if not await store.sessions.open_(
        tx, user_id, pair.session_id, password_hash, pair.session_expires_at, origin, device_name
    ):
        raise AccountDisabled if await store.accounts.is_disabled(tx, user_id) else InvalidCredentials
    await store.sessions.add_token(tx, user_id, pair.session_id, pair.jti, 0, pair.refresh_expires_at)
    await store.sessions.trim(tx, user_id, pair.session_id, SESSIONS_PER_ACCOUNT)


async def log_in(
    tx: Tx,
    login: Login,
    checked: str,
    new_hash: str | None,
    pair: TokenPair,
    origin: Origin,
    address: str,
    account: str,
    device_name: str | None,
) -> None:
    """Open a session after a correct password, and clear its failures; a new hash replaces an outdated one."""
    checked = await _accept_password(tx, login, checked, new_hash, address, account)
    await open_(tx, login.id, checked, pair, origin, device_name)
    await events.record(tx, login.id, EventType.LOGIN, origin)


async def _accept_password(tx: Tx, login: Login, checked: str, new_hash: str | None, address: str, account: str) -> str:
    """Clear the failures after a correct password; the hash that is stored now."""
    await login_throttle.check_again(tx, address, account)
    await login_throttle.clear_failures(tx, address, account)
    if new_hash is None:
        return checked
    new_hash = credentials.marked(new_hash, second_factor=credentials.needs_second_factor(checked))
    return new_hash if await store.accounts.change_hash(tx, login.id, checked, new_hash) else checked


async def issue_ticket(
    tx: Tx,
    login: Login,
    checked: str,
    new_hash: str | None,
    ticket_hash: str,
    expires_at: int,
    address: str,
    account: str,
    device_name: str | None,
) -> list[str]:
    """Issue a ticket after a correct password, to finish the login with; the second factors that the account has."""
    checked = await _accept_password(tx, login, checked, new_hash, address, account)
    binding = credentials.password_binding(checked)
    if not await store.tickets.insert(
        tx, login.id, checked, ticket_hash, binding, expires_at, device_name, TICKETS_PER_ACCOUNT
    ):
        raise AccountDisabled if await store.accounts.is_disabled(tx, login.id) else InvalidCredentials
    return await second_factors.methods(tx, login.id)


async def ticket_holder(tx: Tx, ticket_hash: str | None) -> Login | None:
    """The account of a ticket that has not expired, if it has a second factor."""
    login = None if ticket_hash is None else await store.tickets.holder(tx, ticket_hash)
    return login if login is not None and credentials.needs_second_factor(login.password_hash) else None


async def finish_login(
    tx: Tx, login: Login, ticket_hash: str, factor: FactorProof, pair: TokenPair, origin: Origin
) -> None:
    """Open a session with a ticket and a second factor, and use both up."""
    await second_factors.use_factor(tx, login.id, factor, origin)
    ticket, stored = await store.tickets.take(tx, ticket_hash), await store.accounts.with_hash(tx, login.id)
    if ticket is None or ticket.user_id != login.id or stored is None or stored.password_hash is None:
        raise InvalidTicket
    if credentials.password_binding(stored.password_hash) != ticket.password:
        raise InvalidTicket
    await open_(tx, login.id, stored.password_hash, pair, origin, ticket.device_name)
    await events.record(tx, login.id, EventType.LOGIN, origin)


async def actor(tx: Tx, claims: Claims) -> Actor:
    """The actor of this access token; refused if its session has ended."""
    last_used = require_valid(await store.sessions.last_used(tx, claims.sub, claims.sid))
    return Actor(claims.sub, claims.sid, last_used, until=math.ceil(claims.exp * 1000))


def require_valid(found: int | None) -> int:
    """Validate the result of a session lookup: when the session was last used, or a refusal."""
    if not isinstance(found, int):  # it has ended, or damage has left something else in the place of a time
        raise Unauthorized
    if found <= -store.accounts.DELETED:
        raise Unauthorized
    if found < 0:
        raise AccountDisabled
    return found


async def require_open(tx: Tx, actor: Actor) -> None:
    """Check a running request's session or key again: it may have ended, or its account may be disabled.

    An expired access token is not refused: a long request may outlive the token that it began with.
    """
    if actor.key is None:
        found = (
            None if actor.session_id is None else await store.sessions.last_used(tx, actor.user_id, actor.session_id)
        )
        require_valid(found)
        return
    status = await store.access_status.of_account(tx, actor.user_id)
    if status.disabled:
        raise AccountDisabled
    expires_at = actor.key.expires_at
    if not status.account or actor.key.uid not in status.keys or (expires_at is not None and expires_at <= tx.now):
        raise Unauthorized


def session_check(claims: Claims) -> SessionCheck:
    """The deferred check that the session of this access token is open."""
    return store.sessions.session_check(claims.sub, claims.sid, require_valid)


async def check_only(_tx: Tx) -> None:
    """An action that does nothing, to run a session check alone."""


async def refresh(tx: Tx, claims: Claims, pair: TokenPair, origin: Origin) -> Renewal | None:
    """Exchange a refresh token for a pair of the next generation; None if it is refused.

    The key share of the session stays: where a response is lost, the next refresh gives it again.

    Presenting generation n supersedes all below n. A superseded token that is used again after the grace period, which
    allows for two browser tabs, was probably stolen: the session ends. That must be committed, so a refusal is a
    return value.
    """
    token = await store.sessions.token(tx, claims.sub, claims.sid, claims.jti)
    if token is None or await store.accounts.is_deleted(tx, claims.sub):
        return None
    if await store.accounts.is_disabled(tx, claims.sub):
        raise AccountDisabled
    if not await store.sessions.present(tx, claims.sub, claims.sid, token.generation, pair.session_expires_at):
        if token.superseded_at is not None and tx.now - token.superseded_at > REUSE_GRACE:
            await store.sessions.end(tx, claims.sub, claims.sid)
            await events.record(tx, claims.sub, EventType.REFRESH_REUSE, origin)
        return None
    await store.sessions.add_token(tx, claims.sub, claims.sid, pair.jti, token.generation + 1, pair.refresh_expires_at)
    await store.sessions.trim_tokens(tx, claims.sub, claims.sid, claims.jti, TOKENS_PER_SESSION)
    await store.sessions.touch(tx, claims.sub, claims.sid, origin)
    until = pair.access_expires_at + KEY_SHARE_GRACE
    return Renewal(await store.key_shares.renew(tx, claims.sub, claims.sid, until))


async def list_(tx: Tx, actor: Actor) -> list[Session]:
    """The actor's sessions, the one used last first."""
    return await store.sessions.of_user(tx, actor.user_id)


async def end(tx: Tx, actor: Actor, session_id: str, origin: Origin) -> None:
    """End one of the actor's sessions: its tokens are refused from now on."""
    if not await store.sessions.end(tx, actor.user_id, session_id):
        raise SessionNotFound
    await events.record(tx, actor.user_id, EventType.SESSION_ENDED, origin)


async def log_out(tx: Tx, actor: Actor, origin: Origin, *, everywhere: bool) -> None:
    """End the actor's session, or all of them."""
    if actor.session_id is None:
        return
    await store.sessions.end(tx, actor.user_id, actor.session_id)
    if everywhere:
        await store.sessions.end_others(tx, actor.user_id, actor.session_id)
    await events.record(tx, actor.user_id, EventType.SESSION_ENDED, origin)


async def purge_some(tx: Tx, event_days: int, sweep: Sweep) -> bool:
    """Delete some of what has expired; whether there may be more, for the next call with the same sweep.

    Sessions, tokens, key shares, events, failures, invitations, tickets, enrolments, challenges.
    """
    return (
        await sweep.delete(tx, store.sessions.purge_tokens, tx.now)
        or await sweep.delete(tx, store.sessions.purge, tx.now)
        or await sweep.delete(tx, store.key_shares.purge, tx.now)
        or await sweep.delete(tx, store.events.purge, tx.now - event_days * DAY)
        or await login_throttle.purge_some(tx, sweep)
        or await invitations.purge_some(tx, sweep)
        or await second_factors.purge_some(tx, sweep)
        or await sweep.delete(tx, store.challenges.purge, tx.now)
    )
