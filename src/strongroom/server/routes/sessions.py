"""Log in, refresh, log out."""

from __future__ import annotations

from typing import Final

from strongroom import credentials, errors, identifiers, rules, wire
from strongroom.actions import accounts, login_throttle, sessions
from strongroom.errors import InvalidCredentials, InvalidRefreshToken, Refusal
from strongroom.model import User
from strongroom.server.authentication import settle
from strongroom.server.request import Access, Call, Endpoint
from strongroom.server.response import Answer, answer


async def log_in(call: Call) -> Answer:
    """Check a password and open a session. An unknown email costs the same work and gets the same answer."""
    room, address = call.room, call.counted_address
    await call.read(login_throttle.admit_address, address)
    given = await call.read_body(wire.LogIn)
    email = rules.normal_email(given.email)
    account = login_throttle.account_label(email)
    async with room.gate.attempt(f"{address} {account}", lambda: call.read(login_throttle.room_for, address, account)):
        login = await call.read(accounts.for_login, email) if rules.is_email(email) else None
        phc = None if login is None else login.password_hash
        if not await room.password_matches(given.password, phc) or login is None or phc is None:
            await call.write(login_throttle.failed, address, account, login.id if login else None, call.origin)
            raise InvalidCredentials
        anew = await room.hash_password(given.password) if credentials.is_outdated(phc) else None
        now = room.clock()
        pair = room.mint.pair(login.id, identifiers.new_uid(now), now)
        await call.write(sessions.log_in, login, phc, anew, pair, call.origin, address, account)
    user = User(login.id, login.email)
    return answer(wire.SignedIn(pair.access_token, pair.refresh_token, user, pair.access_token))


async def refresh(call: Call) -> Answer:
    """Exchange a refresh token for a new pair."""
    room = call.room
    try:
        given = await call.read_body(wire.Refresh)
    except Refusal:
        await call.read(
            login_throttle.admit_address, call.counted_address
        )  # 429 comes before what is wrong with the body
        raise
    now = room.clock()
    claims = room.tokens.claims(given.refresh_token, "refresh", now)
    if claims is not None:
        pair = room.mint.pair(claims.sub, claims.sid, now)
        if await call.write(sessions.refresh, claims, pair, call.origin):
            return answer(wire.Tokens(pair.access_token, pair.refresh_token))
    await call.write(login_throttle.failed_secret, call.counted_address)
    raise InvalidRefreshToken


async def log_out(call: Call) -> Answer:
    """End the session of the presented access token, or all sessions of the account."""
    wanted = await call.read_body(wire.LogOut)
    await call.write(sessions.log_out, call.actor, call.origin, everywhere=wanted.everywhere)
    return answer(wire.Done())


async def list_(call: Call) -> Answer:
    """The open sessions: where each was last used, and which one this is."""
    await settle(call)  # this use is among those that are shown
    found = await call.read(sessions.list_, call.actor)
    shown = [
        wire.ListedSession(
            session.id,
            session.created_at,
            session.last_used_at,
            session.address,
            session.user_agent,
            session.id == call.actor.session_id,
        )
        for session in found
    ]
    return answer(wire.Sessions(shown))


async def end(call: Call) -> Answer:
    """End one session."""
    await call.write(sessions.end, call.actor, call.uid("sid"), call.origin)
    return answer(wire.Done())


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/email/login",
        handler=log_in,
        summary="Log in with an email and a password",
        access=Access.PUBLIC,
        takes=wire.LogIn,
        answers=wire.SignedIn,
        refusals=(errors.InvalidCredentials, errors.AccountDisabled, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/refresh",
        handler=refresh,
        summary="Exchange a refresh token for a new pair of tokens",
        access=Access.PUBLIC,
        takes=wire.Refresh,
        answers=wire.Tokens,
        refusals=(errors.InvalidRefreshToken, errors.AccountDisabled, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/logout",
        handler=log_out,
        summary="End the session, or all of them: their tokens are refused from now on",
        access=Access.USER,
        takes=wire.LogOut,
        answers=wire.Done,
    ),
    Endpoint(
        method="GET",
        path="/auth/sessions",
        handler=list_,
        summary="List the open sessions",
        access=Access.USER,
        answers=wire.Sessions,
    ),
    Endpoint(
        method="DELETE",
        path="/auth/sessions/{sid}",
        handler=end,
        summary="End a session",
        access=Access.USER,
        answers=wire.Done,
        refusals=(errors.SessionNotFound,),
    ),
)
