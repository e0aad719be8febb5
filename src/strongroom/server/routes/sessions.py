"""Log in, refresh, log out."""

from __future__ import annotations

from typing import Final

from strongroom import errors, identifiers, rules, wire
from strongroom.actions import accounts, guessing, sessions
from strongroom.errors import InvalidCredentials, InvalidRefreshToken, Refusal
from strongroom.model import User
from strongroom.server.address import counted
from strongroom.server.http import Access, Answer, Call, Endpoint, answer


async def log_in(call: Call) -> Answer:
    """Check a password and open a session. An unknown email costs the same work and gets the same answer."""
    db, address = call.room.db, counted(call)
    await db.read(guessing.admit_address, address)
    given = await call.read(wire.LogIn)
    email = rules.normal_email(given.email)
    account = guessing.account_label(email)
    async with call.room.gate.attempt(f"{address} {account}", lambda: db.read(guessing.room_for, address, account)):
        login = await db.read(accounts.for_login, email) if rules.is_email(email) else None
        phc = None if login is None else login.password_hash
        if not await call.room.password_matches(given.password, phc) or login is None or phc is None:
            await db.write(guessing.failed, address, account)
            raise InvalidCredentials
        now = call.room.clock()
        pair = call.room.mint.pair(login.id, identifiers.new_uid(now), now)
        user = User(login.id, login.email)
        await db.write(sessions.log_in, user, phc, pair, address, account)
    return answer(wire.SignedIn(pair.access_token, pair.refresh_token, user, pair.access_token))


async def refresh(call: Call) -> Answer:
    """Exchange a refresh token for a new pair."""
    room = call.room
    try:
        given = await call.read(wire.Refresh)
    except Refusal:
        await room.db.read(guessing.admit_address, counted(call))  # 429 comes before what is wrong with the body
        raise
    now = room.clock()
    claims = room.tokens.claims(given.refresh_token, "refresh", now)
    if claims is not None:
        pair = room.mint.pair(claims.sub, claims.sid, now)
        if await room.db.write(sessions.refresh, claims, pair):
            return answer(wire.Tokens(pair.access_token, pair.refresh_token))
    await room.db.write(guessing.failed_secret, counted(call))
    raise InvalidRefreshToken


async def log_out(call: Call) -> Answer:
    """End the session of the presented access token."""
    await call.read(wire.LogOut)
    await call.room.db.write(sessions.log_out, call.actor)
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
        refusals=(errors.InvalidCredentials, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/refresh",
        handler=refresh,
        summary="Exchange a refresh token for a new pair of tokens",
        access=Access.PUBLIC,
        takes=wire.Refresh,
        answers=wire.Tokens,
        refusals=(errors.InvalidRefreshToken, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/logout",
        handler=log_out,
        summary="End the session: its access and refresh tokens are refused from now on",
        access=Access.USER,
        takes=wire.LogOut,
        answers=wire.Done,
    ),
)
