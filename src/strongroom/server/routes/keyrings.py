"""Keyrings: the key derivation of a password, and the keys that a client wrapped under it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from strongroom import descriptors, errors, rules, wire
from strongroom.actions import keyrings, login_throttle
from strongroom.errors import Invalid
from strongroom.server.authentication import verify_password
from strongroom.server.request import Access, Endpoint, Request, parse_integer
from strongroom.server.response import Response, json_response

if TYPE_CHECKING:
    from strongroom.model import StoredKeyring


def _response(request: Request, keyring: StoredKeyring) -> Response:
    etag = str(keyring.version)
    if request.method != "PUT" and request.not_modified(etag):
        return Response(status=304, etag=etag)
    kdf = None if keyring.kdf is None else descriptors.parse(keyring.kdf)
    return json_response(wire.responses.Keyring(keyring.keyring, keyring.version, keyring.updated_at, kdf), etag=etag)


async def prelogin(request: Request) -> Response:
    """The key derivation of an email's password. An unknown email costs the same work, and gets a decoy."""
    context, address = request.context, request.counted_address
    await request.read(login_throttle.check_address, address)
    email = rules.normalise_email((await request.read_body(wire.requests.Prelogin)).email)
    decoy = context.decoys.of(email)
    found = await request.write(keyrings.prelogin, address, login_throttle.account_label(email), email)
    return json_response(wire.responses.Derivation(descriptors.parse(found or decoy)))


async def get(request: Request) -> Response:
    """The account's wrapped keys."""
    return _response(request, await request.read(keyrings.get, request.actor))


async def put(request: Request) -> Response:
    """Replace the wrapped keys at the version that the client last saw; with the password, the key derivation too."""
    wanted = await request.read_body(wire.requests.PutKeyring)
    expected = request.expected(wanted.version)
    if expected is None:
        raise Invalid({"version": "is required: the version you last saw, 0 if there is none (or send If-Match)"})
    async with AsyncExitStack() as stack:
        proof = None
        if wanted.current_password is not None:
            verified = verify_password(request, wanted.current_password, wanted.second_factor)
            proof = await stack.enter_async_context(verified)
        keyring = await request.write(keyrings.put, request.actor, wanted, expected, proof, request.origin)
    return _response(request, keyring)


async def versions(request: Request) -> Response:
    """The keyrings that were replaced and are retained."""
    return json_response(wire.responses.KeyringVersions(await request.read(keyrings.versions, request.actor)))


async def version(request: Request) -> Response:
    """A keyring that was replaced."""
    number = parse_integer(request.path_params["version"], 1) or 0
    return _response(request, await request.read(keyrings.version, request.actor, min(number, rules.MAX_INTEGER)))


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/auth/keyring/versions",
        handler=versions,
        summary="List the account's wrapped keys that were replaced",
        access=Access.USER,
        response_type=wire.responses.KeyringVersions,
    ),
    Endpoint(
        method="GET",
        path="/auth/keyring/versions/{version}",
        handler=version,
        summary="The account's wrapped keys as they were at a version",
        access=Access.USER,
        response_type=wire.responses.Keyring,
        refusals=(errors.VersionNotFound,),
        request_headers=("If-None-Match",),
    ),
    Endpoint(
        method="POST",
        path="/auth/email/prelogin",
        handler=prelogin,
        summary="The key derivation of an email's password",
        access=Access.PUBLIC,
        request_type=wire.requests.Prelogin,
        response_type=wire.responses.Derivation,
        refusals=(errors.RateLimited,),
    ),
    Endpoint(
        method="GET",
        path="/auth/keyring",
        handler=get,
        summary="The account's wrapped keys",
        access=Access.USER,
        response_type=wire.responses.Keyring,
        refusals=(errors.KeyringNotFound,),
        request_headers=("If-None-Match",),
    ),
    Endpoint(
        method="PUT",
        path="/auth/keyring",
        handler=put,
        summary="Replace the wrapped keys at the version you last saw",
        access=Access.USER,
        request_type=wire.requests.PutKeyring,
        response_type=wire.responses.Keyring,
        refusals=(
            errors.InvalidCredentials,
            errors.SecondFactorRequired,
            errors.InvalidSecondFactor,
            errors.RateLimited,
            errors.KeyringConflict,
        ),
        request_headers=("If-Match",),
    ),
)
