"""Who is calling: a bearer that is an access token or an API key; and the password, where that is not enough."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from strongroom import credentials, store
from strongroom.actions import accounts, keys, login_throttle, sessions
from strongroom.errors import InvalidCredentials, StorageFull, Unauthorized, Unavailable
from strongroom.model import Actor
from strongroom.rules import MINUTE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from strongroom.server.request import Request


def from_cached_token(request: Request, now: int) -> Actor | None:
    """The one whose token was found good before; that its session is open is proven with what is read or written."""
    claims = request.context.token_signer.cached(request.headers.get(b"authorization", b""), now)
    return None if claims is None else _to_be_proven(request, claims)


def _to_be_proven(request: Request, claims: credentials.Claims) -> Actor:
    """The one whom a good token names; believed once it is proven that its session is open: see settle."""
    request.session_check = sessions.session_check(claims)
    return Actor(claims.sub, claims.sid, until=math.ceil(claims.exp * 1000))


async def authenticate(request: Request) -> Actor:
    """The one who presents the bearer; refused if there is none or it is not good."""
    context, now = request.context, request.context.clock()
    header = request.headers.get(b"authorization", b"")
    claims = context.token_signer.cached(header, now)
    if claims is None:
        token = _bearer(header)
        if token.startswith(credentials.KEY_PREFIX):
            return await _by_key(request, token)
        claims = context.token_signer.claims(token, "access", now)
        if claims is None:
            raise Unauthorized
        context.token_signer.cache(header, claims)
    if request.session_check is None:
        return _to_be_proven(request, claims)
    actor = await context.db.read(sessions.actor, claims)
    if now - actor.last_used_at >= MINUTE:
        await _note(request, store.sessions.touch, actor.user_id, claims.sid, request.origin)
    return actor


def is_signed(request: Request) -> bool:
    """Whether the secret that signed the caller's token is accepted still; an API key depends on none."""
    return request.actor.key is not None or request.context.token_signer.signed(
        _bearer(request.headers.get(b"authorization", b""))
    )


async def require_still(request: Request) -> None:
    """Refuse who has lost the right to go on with what it began."""
    if not is_signed(request):
        raise Unauthorized
    await request.context.db.read(sessions.require_open, request.actor)


async def finish_session_check(request: Request) -> None:
    """Prove the one who called, if nothing that was read has done so, and note the use."""
    check, actor = request.session_check, request.actor
    if check is None or actor.session_id is None:
        return
    if not check.done:
        await request.context.db.read_checked(check, sessions.check_only)
    if check.passed and request.context.clock() - check.found >= MINUTE:
        check.found = request.context.clock()
        await _note(request, store.sessions.touch, actor.user_id, actor.session_id, request.origin)


def _bearer(header: bytes) -> str:
    scheme, _, token = header.decode("latin-1").partition(" ")
    token = token.strip(" ")  # and not what other alphabets call a space
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized
    return token


async def _by_key(request: Request, key: str) -> Actor:
    """A right key always passes, even from an address that failed too often: 256 bits are not found by guessing."""
    context = request.context
    key_hash = credentials.api_key_hash(key) if context.variant.has_documents else None
    actor = await context.db.read(keys.holder, key_hash) if key_hash is not None else None
    if actor is None or actor.key is None:
        await context.db.write(login_throttle.record_failed_secret, request.counted_address)
        raise Unauthorized
    used = actor.key.last_used_at
    if used is None or context.clock() - used >= MINUTE:
        await _note(request, store.keys.touch, actor.user_id, actor.key.uid)
    return actor


async def _note(request: Request, touch: Callable[..., Awaitable[None]], *args: Any) -> None:
    """Note a use, once a minute at most; that it cannot be noted is no reason to refuse what was asked or is done."""
    try:
        await request.context.db.write(touch, *args)
    except (StorageFull, Unavailable):
        return
    except Exception as error:  # noqa: BLE001
        request.context.log.fault(error, request.request_id)


@asynccontextmanager
async def proven(request: Request, password: str) -> AsyncIterator[str]:
    """Check the caller's own password, as slowly as at login; the hash that it matched."""
    address = request.counted_address
    login = await request.read(accounts.for_reauthentication, request.actor)
    account = login_throttle.account_label(login.email)
    async with request.context.attempts.attempt(
        f"{address} {account}", lambda: request.read(login_throttle.remaining_attempts, address, account)
    ):
        if login.password_hash is None or not await request.context.password_matches(password, login.password_hash):
            # In a transaction of its own: it locks the address, which must not happen under the lock of the account.
            await request.context.db.write(
                login_throttle.record_failed_login, address, account, login.id, request.origin
            )
            raise InvalidCredentials("The password is wrong.")
        yield login.password_hash
