"""Accounts: registration, the current user, change of password, deletion, the account's log."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

from strongroom import credentials, errors, identifiers, rules, wire
from strongroom.actions import accounts, events, invitations, login_throttle
from strongroom.errors import EmailAlreadyExists, Invalid, InvalidInvitation, SignupsClosed
from strongroom.server.authentication import verify_password
from strongroom.server.fair_queue import Place
from strongroom.server.request import Access, Endpoint, Request, parse_integer
from strongroom.server.response import Response, json_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MOST_EVENTS: Final = 1_000  # in one response


async def register(request: Request) -> Response:
    """Create an account and its first session. An invitation that is given counts, also where none is needed."""
    context = request.context
    await context.passwords.check_room(request.counted_address)
    wanted = await request.read_body(wire.requests.Register)
    email = rules.normalise_email(wanted.email)
    code_hash = None
    if wanted.invitation is not None:
        code_hash = await _check_invitation(request, wanted.invitation, email)
    elif not context.settings.signups:
        raise SignupsClosed
    await request.write(login_throttle.record_signup, request.counted_address, context.settings.signup_limit)
    async with _alone(request, code_hash, email):
        if code_hash is not None and not await request.read(invitations.is_usable, code_hash, email):
            raise InvalidInvitation
        if await request.read(accounts.exists, email):
            if code_hash is not None:
                await request.write(invitations.count_taken_email, code_hash, email)
            raise EmailAlreadyExists
        place = Place(request.counted_address, login_throttle.account_label(email))
        password_hash = await context.hash_password(wanted.password, place)
        now = context.clock()
        user_id = identifiers.new_uid(now)
        pair = context.token_issuer.pair(user_id, identifiers.new_uid(now), now)
        new = user_id, email, password_hash, pair, request.origin, wanted, code_hash
        user = await request.write(accounts.register, *new)
    return json_response(wire.responses.SignedIn(pair.access_token, pair.refresh_token, user, pair.access_token), 201)


@asynccontextmanager
async def _alone(request: Request, code_hash: str | None, email: str) -> AsyncIterator[None]:
    """Wait for other registrations with the code and the email: only one succeeds, so only one is hashed."""
    async with AsyncExitStack() as gates:
        for name in (code_hash, email):
            if name is not None:
                await gates.enter_async_context(request.context.attempts.attempt(f"register {name}", _one))
        yield


async def _one() -> int:
    return 1


async def _check_invitation(request: Request, code: str, email: str) -> str:
    """The hash of a code that this email may register with; a wrong one counts like a wrong API key.

    It comes before anything about the email: who has no invitation learns nothing about it. A good code passes even
    from a throttled address: 125 bits cannot be guessed.
    """
    code_hash = credentials.invitation_hash(code)
    if code_hash is None or not await request.read(invitations.is_usable, code_hash, email):
        await request.write(login_throttle.record_failed_secret, request.counted_address)
        raise InvalidInvitation
    return code_hash


async def me(request: Request) -> Response:
    """The caller's account, the API key if one is used, and the usage and limits of the account."""
    user, usage = await request.read(accounts.me, request.actor)
    key, about = request.actor.key, None
    if key is not None:
        about = wire.responses.KeyAbout(
            key.uid, key.name, key.permissions, key.vault_uids, key.collections, key.expires_at
        )
    limits = (
        None if usage is None else wire.responses.Limits(request.context.limits.documents, request.context.limits.bytes)
    )
    return json_response(wire.responses.Me(user, about, usage, limits))


async def change_password(request: Request) -> Response:
    """Change the password, and the keyring wrapped under it; every other session ends."""
    wanted = await request.read_body(wire.requests.ChangePassword)
    async with verify_password(request, wanted.current_password, wanted.second_factor) as proof:
        place = Place(request.counted_address, request.actor.user_id)
        new_hash = await request.context.hash_password(wanted.new_password, place)
        await request.write(accounts.change_password, request.actor, proof, new_hash, request.origin, wanted)
    return json_response(wire.responses.Done())


async def delete(request: Request) -> Response:
    """Delete the account and all its data permanently; its rows go in the background."""
    given = await request.read_body(wire.requests.DeleteAccount)
    async with verify_password(request, given.password, given.second_factor) as proof:
        await request.write_long(accounts.delete, request.actor, proof, request.origin)
    request.context.deletions.begin()
    return json_response(wire.responses.Done())


async def list_events(request: Request) -> Response:
    """The account's log: registration, logins, failed logins, changes of password, of keys and of sessions."""
    query = request.query()
    limit = parse_integer(query.get("limit", "100"), 1)
    if limit is None:
        raise Invalid({"limit": "must be an integer from 1"})
    before = query.get("before", "g")  # sorts after every id in any collation
    if before != "g" and identifiers.canonical(before) is None:
        raise Invalid({"before": "must be the id of an event"})
    found, more = await request.read(events.list_, request.actor, before.lower(), min(limit, MOST_EVENTS))
    return json_response(wire.responses.Events(found, more))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/email/register",
        handler=register,
        summary="Register with an email and a password",
        access=Access.PUBLIC,
        request_type=wire.requests.Register,
        max_body_bytes=512 * 1024,  # it carries a keyring
        response_type=wire.responses.SignedIn,
        status=201,
        refusals=(errors.EmailAlreadyExists, errors.SignupsClosed, errors.InvalidInvitation, errors.RateLimited),
    ),
    Endpoint(
        method="GET",
        path="/auth/me",
        handler=me,
        summary="The current user, the API key if one is used, and the usage of the account",
        response_type=wire.responses.Me,
    ),
    Endpoint(
        method="DELETE",
        path="/auth/me",
        handler=delete,
        summary="Delete the account and all its data",
        access=Access.USER,
        request_type=wire.requests.DeleteAccount,
        response_type=wire.responses.Done,
        refusals=(
            errors.InvalidCredentials,
            errors.SecondFactorRequired,
            errors.InvalidSecondFactor,
            errors.RateLimited,
        ),
    ),
    Endpoint(
        method="PUT",
        path="/auth/password",
        handler=change_password,
        summary="Change the password; every other session ends",
        access=Access.USER,
        request_type=wire.requests.ChangePassword,
        response_type=wire.responses.Done,
        refusals=(
            errors.InvalidCredentials,
            errors.SecondFactorRequired,
            errors.InvalidSecondFactor,
            errors.RateLimited,
            errors.KeyringConflict,
        ),
    ),
    Endpoint(
        method="GET",
        path="/auth/events",
        handler=list_events,
        summary="The account's log, newest first",
        access=Access.USER,
        response_type=wire.responses.Events,
        query=(
            ("limit", "integer", "At most this many events; 100 if absent"),
            ("before", "string", "Only events older than the one with this id"),
        ),
    ),
)
