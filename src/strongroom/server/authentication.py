"""Authentication: access tokens and API keys as bearer tokens, and the password where a token is not enough."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from strongroom import credentials, store
from strongroom.actions import accounts, keys, login_throttle, second_factors, sessions
from strongroom.errors import (
    InvalidCredentials,
    InvalidPasskey,
    InvalidSecondFactor,
    PasskeysUnavailable,
    SecondFactorRequired,
    StorageFull,
    Unauthorized,
    Unavailable,
)
from strongroom.model import Actor, Proof, Purpose
from strongroom.rules import MINUTE
from strongroom.server import ceremonies
from strongroom.server.fair_queue import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from strongroom.model import CodeProof, FactorProof, Login
    from strongroom.server.request import Request
    from strongroom.wire.requests import SecondFactor


def from_cached_token(request: Request, now: int) -> Actor | None:
    """The actor of an access token in the cache; its session is checked together with the first query."""
    claims = request.context.token_signer.cached(request.headers.get(b"authorization", b""), now)
    return None if claims is None else _with_session_check(request, claims)


def _with_session_check(request: Request, claims: credentials.Claims) -> Actor:
    """The actor of a valid token, with a deferred check of its session; see `finish_session_check`."""
    request.session_check = sessions.session_check(claims)
    until = math.ceil(claims.exp * 1000)
    return Actor(claims.sub, claims.sid, until=until, keyring_version=request.keyring_version)


async def authenticate(request: Request) -> Actor:
    """The actor of the bearer token; refused if the token is missing or invalid."""
    context, now = request.context, request.context.clock()
    header = request.headers.get(b"authorization", b"")
    claims = context.token_signer.cached(header, now)
    if claims is None:
        token = _bearer(header)
        if token.startswith(credentials.KEY_PREFIX):
            return await _authenticate_key(request, token)
        claims = context.token_signer.claims(token, "access", now)
        if claims is None:
            raise Unauthorized
        context.token_signer.cache(header, claims)
    if request.session_check is None:
        return _with_session_check(request, claims)
    actor = await context.db.read(sessions.actor, claims)
    if now - actor.last_used_at >= MINUTE:
        await _touch(request, store.sessions.touch, actor.user_id, claims.sid, request.origin)
    return actor


def has_valid_signature(request: Request) -> bool:
    """Whether the secret that signed the caller's token is still accepted; an API key is not signed."""
    return request.actor.key is not None or request.context.token_signer.signed(
        _bearer(request.headers.get(b"authorization", b""))
    )


async def recheck_credentials(request: Request) -> None:
    """Refuse a caller whose token, session or API key has become invalid during a long request."""
    if not has_valid_signature(request):
        raise Unauthorized
    await request.context.db.read(sessions.require_open, request.actor)


async def finish_session_check(request: Request) -> None:
    """Check the caller's session if no query has done so, and record the use of the session."""
    check, actor = request.session_check, request.actor
    if check is None or actor.session_id is None:
        return
    if not check.done:
        await request.context.db.read_checked(check, sessions.check_only)
    if check.passed and request.context.clock() - check.found >= MINUTE:
        check.found = request.context.clock()
        await _touch(request, store.sessions.touch, actor.user_id, actor.session_id, request.origin)


def _bearer(header: bytes) -> str:
    scheme, _, token = header.decode("latin-1").partition(" ")
    token = token.strip(" ")  # not other whitespace of Unicode
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized
    return token


async def _authenticate_key(request: Request, key: str) -> Actor:
    """The actor of an API key. A valid key passes even from a throttled address: 256 bits cannot be guessed."""
    context = request.context
    key_hash = credentials.api_key_hash(key) if context.variant.has_documents else None
    actor = await context.db.read(keys.holder, key_hash) if key_hash is not None else None
    if actor is None or actor.key is None:
        await context.db.write(login_throttle.record_failed_secret, request.counted_address)
        raise Unauthorized
    used = actor.key.last_used_at
    if used is None or context.clock() - used >= MINUTE:
        await _touch(request, store.keys.touch, actor.user_id, actor.key.uid)
    return actor


async def _touch(request: Request, touch: Callable[..., Awaitable[None]], *args: Any) -> None:
    """Record a use, once a minute at most. Best effort: a failure is logged and never fails the request."""
    try:
        await request.context.db.write(touch, *args)
    except (StorageFull, Unavailable):
        return
    except Exception as error:  # noqa: BLE001
        request.context.log.fault(error, request.request_id)


@asynccontextmanager
async def password_attempt(request: Request, account: str) -> AsyncIterator[Place]:
    """One attempt at the password of an account, once its limits and those of the address admit it.

    Yields the place at which the password waits to be hashed.
    """
    context, address = request.context, request.counted_address
    context.login_limit.check(account, address, context.clock())
    async with context.attempts.attempt(
        f"{address} {account}", lambda: request.read(login_throttle.remaining_attempts, address, account)
    ):
        yield Place(address, account)


async def password_matches(request: Request, password: str, stored: str | None, place: Place) -> bool:
    """Whether a password matches the stored hash; a right one counts against the limit of its account."""
    context = request.context
    if not await context.password_matches(password, stored, place):
        return False
    context.login_limit.count(place.account, place.address, context.clock())
    return True


@asynccontextmanager
async def verify_password(request: Request, password: str, second_factor: SecondFactor | None) -> AsyncIterator[Proof]:
    """Verify the caller's own password, under the throttle of logins, and the second factor if the account has one.

    Yields a proof, which the action that it allows must use up in its transaction.
    """
    login = await request.read(accounts.for_reauthentication, request.actor)
    async with password_attempt(request, login_throttle.account_label(login.email)) as place:
        if login.password_hash is None or not await password_matches(request, password, login.password_hash, place):
            # In a transaction of its own: it locks the address, which must not happen under the lock of the account.
            await request.context.db.write(
                login_throttle.record_failed_login, place.address, place.account, login.id, request.origin
            )
            raise InvalidCredentials("The password is wrong.")
        factor = None
        if credentials.needs_second_factor(login.password_hash):
            factor = await check_second_factor(request, login, second_factor)
        yield Proof(login.password_hash, factor)


async def check_second_factor(request: Request, login: Login, given: SecondFactor | None) -> FactorProof:
    """Check the second factor of an account that has one; a wrong one is counted, in a transaction of its own."""
    context = request.context
    if given is None:
        raise SecondFactorRequired(await context.db.read(second_factors.methods, login.id))
    if given.passkey is not None:
        try:
            _, proof = await ceremonies.verify_assertion(request, given.passkey, Purpose.PROOF, login.id)
        except InvalidPasskey:
            raise InvalidSecondFactor from None
        except PasskeysUnavailable as unavailable:
            raise InvalidSecondFactor(unavailable.message) from None
        return proof
    attempt = login, given, context.secret_box, request.counted_address, request.origin
    factor = await context.db.write(second_factors.check, *attempt)
    if factor is None:
        raise InvalidSecondFactor
    return factor


async def check_enrolment(request: Request, code: str) -> CodeProof:
    """Check the first code of an enrolment; a wrong one is counted, in a transaction of its own."""
    login = await request.read(accounts.for_reauthentication, request.actor)
    attempt = login, code, request.context.secret_box, request.counted_address, request.origin
    proof = await request.context.db.write(second_factors.check_code, *attempt, confirmed=False)
    if proof is None:
        raise InvalidSecondFactor
    return proof
