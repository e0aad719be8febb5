"""Sessions: login, refresh, logout, list, end."""

from __future__ import annotations

from typing import Final

from strongroom import credentials, errors, identifiers, rules, wire
from strongroom.actions import accounts, login_throttle, sessions
from strongroom.errors import InvalidCredentials, InvalidRefreshToken, InvalidTicket, Refusal, SecondFactorRequired
from strongroom.model import Login, User
from strongroom.server.authentication import (
    check_second_factor,
    finish_session_check,
    password_attempt,
    password_matches,
)
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response, json_response


async def log_in(request: Request) -> Response:
    """Verify a password and create a session. An unknown email costs the same work and gets the same response.

    Where the account has a second factor, the response to a right password is a refusal with a ticket.
    """
    context, address = request.context, request.counted_address
    await context.passwords.check_room(address)
    await request.read(login_throttle.check_address, address)
    given = await request.read_body(wire.requests.LogIn)
    email = rules.normalise_email(given.email)
    account = login_throttle.account_label(email)
    async with password_attempt(request, account) as place:
        login = await request.read(accounts.for_login, email) if rules.is_email(email) else None
        phc = None if login is None else login.password_hash
        if not await password_matches(request, given.password, phc, place) or login is None or phc is None:
            await request.write(
                login_throttle.record_failed_login, address, account, login.id if login else None, request.origin
            )
            raise InvalidCredentials
        rehashed = await context.hash_password(given.password, place) if credentials.is_outdated(phc) else None
        now, who = context.clock(), (address, account, given.device_name)
        if credentials.needs_second_factor(phc):
            expires_at = now + rules.TICKET_LIFETIME
            ticket, ticket_hash = credentials.new_ticket()
            methods = await request.write(sessions.issue_ticket, login, phc, rehashed, ticket_hash, expires_at, *who)
            raise SecondFactorRequired(methods, ticket, expires_at)
        pair = context.token_issuer.pair(login.id, identifiers.new_uid(now), now)
        await request.write(sessions.log_in, login, phc, rehashed, pair, request.origin, *who)
    return _signed_in(login, pair)


async def finish_login(request: Request) -> Response:
    """Create a session with the ticket of a login and a second factor."""
    context = request.context
    try:
        given = await request.read_body(wire.requests.FinishLogin)
    except Refusal:
        # 429 comes before any fault of the body
        await request.read(login_throttle.check_address, request.counted_address)
        raise
    ticket_hash = credentials.ticket_hash(given.ticket)
    login = await request.read(sessions.ticket_holder, ticket_hash)
    if login is None or ticket_hash is None:
        await request.write(login_throttle.record_failed_secret, request.counted_address)
        raise InvalidTicket
    factor = await check_second_factor(request, login, given.second_factor)
    now = context.clock()
    pair = context.token_issuer.pair(login.id, identifiers.new_uid(now), now)
    await request.write(sessions.finish_login, login, ticket_hash, factor, pair, request.origin)
    return _signed_in(login, pair)


def _signed_in(login: Login, pair: credentials.TokenPair) -> Response:
    user = User(login.id, login.email)
    return json_response(wire.responses.SignedIn(pair.access_token, pair.refresh_token, user, pair.access_token))


async def refresh(request: Request) -> Response:
    """Exchange a refresh token for a new pair."""
    context = request.context
    try:
        given = await request.read_body(wire.requests.Refresh)
    except Refusal:
        # 429 comes before any fault of the body
        await request.read(login_throttle.check_address, request.counted_address)
        raise
    now = context.clock()
    claims = context.token_signer.claims(given.refresh_token, "refresh", now)
    if claims is not None:
        pair = context.token_issuer.pair(claims.sub, claims.sid, now)
        renewal = await request.write(sessions.refresh, claims, pair, request.origin)
        if renewal is not None:
            return json_response(wire.responses.Tokens(pair.access_token, pair.refresh_token, renewal.key_share))
    await request.write(login_throttle.record_failed_secret, request.counted_address)
    raise InvalidRefreshToken


async def log_out(request: Request) -> Response:
    """End the session of the presented access token, or all sessions of the account."""
    wanted = await request.read_body(wire.requests.LogOut)
    await request.write(sessions.log_out, request.actor, request.origin, everywhere=wanted.everywhere)
    return json_response(wire.responses.Done())


async def list_(request: Request) -> Response:
    """The open sessions: when and from where each was last used, and which one this is."""
    await finish_session_check(request)  # so that the list shows this use
    found = await request.read(sessions.list_, request.actor)
    shown = [
        wire.responses.ListedSession(
            session.id,
            session.created_at,
            session.last_used_at,
            session.address,
            session.user_agent,
            session.id == request.actor.session_id,
            session.device_name,
        )
        for session in found
    ]
    return json_response(wire.responses.Sessions(shown))


async def end(request: Request) -> Response:
    """End one session."""
    await request.write(sessions.end, request.actor, request.uid("sid"), request.origin)
    return json_response(wire.responses.Done())


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/email/login",
        handler=log_in,
        summary="Log in with an email and a password",
        access=Access.PUBLIC,
        request_type=wire.requests.LogIn,
        response_type=wire.responses.SignedIn,
        refusals=(
            errors.InvalidCredentials,
            errors.SecondFactorRequired,
            errors.AccountDisabled,
            errors.RateLimited,
        ),
    ),
    Endpoint(
        method="POST",
        path="/auth/email/login/second",
        handler=finish_login,
        summary="Finish a login with a second factor",
        access=Access.PUBLIC,
        request_type=wire.requests.FinishLogin,
        response_type=wire.responses.SignedIn,
        refusals=(errors.InvalidTicket, errors.InvalidSecondFactor, errors.AccountDisabled, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/refresh",
        handler=refresh,
        summary="Exchange a refresh token for a new pair of tokens",
        access=Access.PUBLIC,
        request_type=wire.requests.Refresh,
        response_type=wire.responses.Tokens,
        refusals=(errors.InvalidRefreshToken, errors.AccountDisabled, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/logout",
        handler=log_out,
        summary="End the session, or all of them: their tokens are refused from now on",
        access=Access.USER,
        request_type=wire.requests.LogOut,
        response_type=wire.responses.Done,
    ),
    Endpoint(
        method="GET",
        path="/auth/sessions",
        handler=list_,
        summary="List the open sessions",
        access=Access.USER,
        response_type=wire.responses.Sessions,
    ),
    Endpoint(
        method="DELETE",
        path="/auth/sessions/{sid}",
        handler=end,
        summary="End a session",
        access=Access.USER,
        response_type=wire.responses.Done,
        refusals=(errors.SessionNotFound,),
    ),
)
