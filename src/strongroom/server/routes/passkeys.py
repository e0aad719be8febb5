"""Passkeys: registration, login, list, rename, delete. A passkey whose user was verified counts as both factors."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from strongroom import credentials, errors, identifiers, wire
from strongroom.actions import login_throttle, passkeys, sessions
from strongroom.errors import InvalidTicket
from strongroom.model import PasskeyProof, Proof, Purpose, StoredPasskey
from strongroom.server import ceremonies
from strongroom.server.authentication import verify_password
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response, json_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PROOF: Final = (
    errors.InvalidCredentials,
    errors.SecondFactorRequired,
    errors.InvalidSecondFactor,
    errors.InvalidPasskey,
    errors.PasskeysUnavailable,
    errors.RateLimited,
)


@asynccontextmanager
async def _proven(request: Request, given: wire.requests.ProvePasskeyChange) -> AsyncIterator[Proof | PasskeyProof]:
    """Verify the password and its second factor, or a passkey, whichever was given."""
    if given.passkey is not None:
        _, proof = await ceremonies.verify_assertion(request, given.passkey, Purpose.PROOF, request.actor.user_id)
        yield proof
    else:
        async with verify_password(request, given.current_password or "", given.second_factor) as password:
            yield password


async def begin_registration(request: Request) -> Response:
    """The options with which a browser makes a passkey, after the password or a passkey was proven."""
    party = request.context.relying_party
    given = await request.read_body(wire.requests.ProvePasskeyChange)
    challenge, challenge_hash = party.new_challenge()
    async with _proven(request, given) as proof:
        begun = proof, challenge_hash, request.origin
        user, existing = await request.write(passkeys.begin_registration, request.actor, *begun)
    return json_response(ceremonies.creation_options(party, challenge, user, existing))


async def add(request: Request) -> Response:
    """Add a passkey. The first second factor of an account comes with recovery codes, shown once."""
    wanted = await request.read_body(wire.requests.AddPasskey)
    made = await ceremonies.verify_registration(request, wanted.credential)
    user_id = request.actor.user_id
    new = StoredPasskey(user_id, identifiers.new_uid(request.context.clock()), *made)
    codes = credentials.new_recovery_codes(user_id)
    passkey, is_first = await request.write(
        passkeys.add, request.actor, new, wanted.name, codes.values(), request.origin, prf=wanted.prf
    )
    return json_response(wire.responses.AddedPasskey(passkey, list(codes) if is_first else None), 201)


async def list_(request: Request) -> Response:
    """The passkeys of the account."""
    return json_response(wire.responses.Passkeys(await request.read(passkeys.list_, request.actor)))


async def rename(request: Request) -> Response:
    """Give a passkey another name."""
    wanted = await request.read_body(wire.requests.RenamePasskey)
    await request.write(passkeys.rename, request.actor, request.uid("uid"), wanted.name, request.origin)
    return json_response(wire.responses.Done())


async def delete(request: Request) -> Response:
    """Delete a passkey; the last one only with the password."""
    given = await request.read_body(wire.requests.ProvePasskeyChange)
    async with _proven(request, given) as proof:
        await request.write(passkeys.delete, request.actor, request.uid("uid"), proof, request.origin)
    return json_response(wire.responses.Done())


async def begin_proof(request: Request) -> Response:
    """The options with which the caller proves a passkey of the account, where a second factor is asked for."""
    party = request.context.relying_party
    challenge, challenge_hash = party.new_challenge()
    allowed = await request.write(passkeys.begin_proof, challenge_hash, request.actor.user_id)
    return json_response(ceremonies.request_options(party, challenge, allowed))


async def begin_login(request: Request) -> Response:
    """The options of a login: with any passkey, or as the second factor of the login with this ticket."""
    party = request.context.relying_party
    given = await request.read_body(wire.requests.BeginPasskeyLogin)
    challenge, challenge_hash = party.new_challenge()
    address = request.counted_address
    if given.ticket is None:
        await request.write(passkeys.begin_login, challenge_hash, address)
        return json_response(ceremonies.request_options(party, challenge))
    login = await request.read(sessions.ticket_holder, credentials.ticket_hash(given.ticket))
    if login is None:
        await request.write(login_throttle.record_failed_secret, address)
        raise InvalidTicket
    allowed = await request.write(passkeys.begin_proof, challenge_hash, login.id)
    return json_response(ceremonies.request_options(party, challenge, allowed))


async def log_in(request: Request) -> Response:
    """Verify a passkey and create a session. Which account it is, the authenticator says."""
    given = await request.read_body(wire.requests.PasskeyLogIn)
    passkey, proof = await ceremonies.verify_assertion(request, given.credential, Purpose.LOGIN, None)
    context, now = request.context, request.context.clock()
    pair = context.token_issuer.pair(passkey.user_id, identifiers.new_uid(now), now)
    user = await request.write(passkeys.log_in, passkey, proof, pair, request.origin, given.device_name)
    return json_response(wire.responses.SignedIn(pair.access_token, pair.refresh_token, user, pair.access_token))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/passkeys/registration/options",
        handler=begin_registration,
        summary="Begin the registration of a passkey",
        access=Access.USER,
        request_type=wire.requests.ProvePasskeyChange,
        response_type=wire.responses.PasskeyCreation,
        refusals=(*_PROOF, errors.TooManyPasskeys),
    ),
    Endpoint(
        method="POST",
        path="/auth/passkeys",
        handler=add,
        summary="Register a passkey",
        access=Access.USER,
        request_type=wire.requests.AddPasskey,
        response_type=wire.responses.AddedPasskey,
        status=201,
        refusals=(errors.InvalidPasskey, errors.PasskeysUnavailable, errors.PasskeyTaken, errors.TooManyPasskeys),
    ),
    Endpoint(
        method="GET",
        path="/auth/passkeys",
        handler=list_,
        summary="List the passkeys",
        access=Access.USER,
        response_type=wire.responses.Passkeys,
    ),
    Endpoint(
        method="PUT",
        path="/auth/passkeys/{uid}",
        handler=rename,
        summary="Rename a passkey",
        access=Access.USER,
        request_type=wire.requests.RenamePasskey,
        response_type=wire.responses.Done,
        refusals=(errors.PasskeyNotFound,),
    ),
    Endpoint(
        method="DELETE",
        path="/auth/passkeys/{uid}",
        handler=delete,
        summary="Delete a passkey",
        access=Access.USER,
        request_type=wire.requests.ProvePasskeyChange,
        response_type=wire.responses.Done,
        refusals=(*_PROOF, errors.PasskeyNotFound),
    ),
    Endpoint(
        method="POST",
        path="/auth/passkeys/proof/options",
        handler=begin_proof,
        summary="Begin the proof of a passkey, as a second factor",
        access=Access.USER,
        response_type=wire.responses.PasskeyRequest,
        refusals=(errors.PasskeysUnavailable,),
    ),
    Endpoint(
        method="POST",
        path="/auth/passkeys/login/options",
        handler=begin_login,
        summary="Begin a login with a passkey",
        access=Access.PUBLIC,
        request_type=wire.requests.BeginPasskeyLogin,
        response_type=wire.responses.PasskeyRequest,
        refusals=(errors.InvalidTicket, errors.PasskeysUnavailable, errors.RateLimited),
    ),
    Endpoint(
        method="POST",
        path="/auth/passkeys/login",
        handler=log_in,
        summary="Log in with a passkey",
        access=Access.PUBLIC,
        request_type=wire.requests.PasskeyLogIn,
        response_type=wire.responses.SignedIn,
        refusals=(errors.InvalidPasskey, errors.PasskeysUnavailable, errors.AccountDisabled, errors.RateLimited),
    ),
)
