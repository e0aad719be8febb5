"""API keys: create, list, revoke. For users only: a key cannot create keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import credentials, errors, wire
from strongroom.actions import keys
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import CHUNK, Response, json_items, json_response, streaming_response

if TYPE_CHECKING:
    from strongroom.server.response import Chunks, Pieces

PAGE: Final = 8  # keys that are read and encoded at a time, each with a scope of 16 KiB at the most


async def create(request: Request) -> Response:
    """Create an API key; its secret is in this response only."""
    wanted = await request.read_body(wire.requests.CreateApiKey)
    secret = credentials.new_api_key()
    key_hash = credentials.api_key_hash(secret)
    assert key_hash is not None  # noqa: S101 - a new key has the right form
    key = await request.write(keys.create, request.actor, wanted, key_hash, request.origin)
    created = wire.responses.NewApiKey(
        uid=key.uid,
        name=key.name,
        key=secret,
        permissions=key.permissions,
        vault_uids=key.vault_uids,
        collections=key.collections,
        expires_at=key.expires_at,
        created_at=key.created_at,
    )
    return json_response(created, 201)


async def list_(request: Request) -> Response:
    """The API keys, without their secrets."""
    return await streaming_response(_chunks(request))


async def _chunks(request: Request) -> Chunks:
    """The list in chunks, read a few keys at a time: an account may have more keys than can be made today."""
    out: Pieces = [b'{"keys":[']
    after, size, steps = "", 0, request.steps()
    while page := await request.read(keys.page, request.actor, after, PAGE):
        out += json_items(page, first=not after)
        after, size = page[-1].uid, size + len(out[-1])
        if len(page) < PAGE:
            break
        if size > CHUNK:
            yield out
            out, size = [], 0
        await steps.give_way()
    out.append(b"]}")
    yield out


async def revoke(request: Request) -> Response:
    """Revoke an API key."""
    await request.write(keys.revoke, request.actor, request.uid("uid"), request.origin)
    return json_response(wire.responses.Done())


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/api-keys",
        handler=create,
        summary="Create an API key; its secret is shown once",
        access=Access.USER,
        request_type=wire.requests.CreateApiKey,
        response_type=wire.responses.NewApiKey,
        status=201,
        refusals=(errors.VaultNotFound, errors.TooManyApiKeys),
    ),
    Endpoint(
        method="GET",
        path="/auth/api-keys",
        handler=list_,
        summary="List the API keys",
        access=Access.USER,
        response_type=wire.responses.ApiKeys,
    ),
    Endpoint(
        method="DELETE",
        path="/auth/api-keys/{uid}",
        handler=revoke,
        summary="Revoke an API key",
        access=Access.USER,
        response_type=wire.responses.Done,
        refusals=(errors.ApiKeyNotFound,),
    ),
)
