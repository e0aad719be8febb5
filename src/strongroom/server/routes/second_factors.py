"""Second factors: one-time codes and recovery codes. For users only: API keys need none."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from strongroom import credentials, errors, one_time_codes, wire
from strongroom.actions import accounts, second_factors
from strongroom.model import SecondFactors
from strongroom.server.authentication import check_enrolment, verify_password
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response, json_response

_PROOF: Final = (
    errors.InvalidCredentials,
    errors.SecondFactorRequired,
    errors.InvalidSecondFactor,
    errors.RateLimited,
)


async def get(request: Request) -> Response:
    """The second factors of the account."""
    return json_response(await request.read(second_factors.get, request.actor))


async def begin(request: Request) -> Response:
    """Begin the enrolment of one-time codes. Until it is confirmed, nothing changes."""
    given = await request.read_body(wire.requests.ChangeSecondFactor)
    context, secret = request.context, one_time_codes.new_secret()
    async with verify_password(request, given.current_password, given.second_factor) as proof:
        sealed = context.secret_box.seal(request.actor.user_id, secret)
        await request.write(second_factors.begin, request.actor, proof, sealed, request.origin)
    user, _ = await request.read(accounts.me, request.actor)
    issuer = urlsplit(context.settings.public_url).hostname or "strongroom"
    uri = one_time_codes.uri(secret, issuer, user.email)
    return json_response(wire.responses.Enrolment(one_time_codes.spelled(secret), uri), 201)


async def confirm(request: Request) -> Response:
    """Confirm an enrolment by its first code: from now on a second factor is required. Open sessions stay open."""
    given = await request.read_body(wire.requests.ConfirmOneTimeCodes)
    proof = await check_enrolment(request, given.code)
    codes = credentials.new_recovery_codes(request.actor.user_id)
    await request.write(second_factors.confirm, request.actor, proof, codes.values(), request.origin)
    return json_response(wire.responses.RecoveryCodes(list(codes)), 201)


async def disable(request: Request) -> Response:
    """Delete the one-time codes of the account."""
    given = await request.read_body(wire.requests.ChangeSecondFactor)
    async with verify_password(request, given.current_password, given.second_factor) as proof:
        await request.write(second_factors.disable, request.actor, proof, request.origin)
    return json_response(wire.responses.Done())


async def replace_recovery_codes(request: Request) -> Response:
    """Replace all recovery codes by new ones."""
    given = await request.read_body(wire.requests.ChangeSecondFactor)
    codes = credentials.new_recovery_codes(request.actor.user_id)
    async with verify_password(request, given.current_password, given.second_factor) as proof:
        change = proof, codes.values(), request.origin
        await request.write(second_factors.replace_recovery_codes, request.actor, *change)
    return json_response(wire.responses.RecoveryCodes(list(codes)), 201)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/auth/second-factor",
        handler=get,
        summary="The second factors of the account",
        access=Access.USER,
        response_type=SecondFactors,
    ),
    Endpoint(
        method="POST",
        path="/auth/second-factor/totp",
        handler=begin,
        summary="Begin the enrolment of one-time codes",
        access=Access.USER,
        request_type=wire.requests.ChangeSecondFactor,
        response_type=wire.responses.Enrolment,
        status=201,
        refusals=_PROOF,
    ),
    Endpoint(
        method="POST",
        path="/auth/second-factor/totp/confirm",
        handler=confirm,
        summary="Confirm the enrolment of one-time codes; recovery codes are shown once",
        access=Access.USER,
        request_type=wire.requests.ConfirmOneTimeCodes,
        response_type=wire.responses.RecoveryCodes,
        status=201,
        refusals=(errors.InvalidSecondFactor, errors.SecondFactorNotFound, errors.RateLimited),
    ),
    Endpoint(
        method="DELETE",
        path="/auth/second-factor/totp",
        handler=disable,
        summary="Delete the one-time codes",
        access=Access.USER,
        request_type=wire.requests.ChangeSecondFactor,
        response_type=wire.responses.Done,
        refusals=(*_PROOF, errors.SecondFactorNotFound),
    ),
    Endpoint(
        method="POST",
        path="/auth/second-factor/recovery-codes",
        handler=replace_recovery_codes,
        summary="Replace the recovery codes; the new ones are shown once",
        access=Access.USER,
        request_type=wire.requests.ChangeSecondFactor,
        response_type=wire.responses.RecoveryCodes,
        status=201,
        refusals=(*_PROOF, errors.SecondFactorNotFound),
    ),
)
