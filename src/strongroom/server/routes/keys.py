"""API keys: make, list, revoke. Only a user may; a key cannot make keys."""

from __future__ import annotations

from typing import Final

from strongroom import credentials, errors, wire
from strongroom.actions import keys
from strongroom.server.request import Access, Call, Endpoint
from strongroom.server.response import Answer, answer


async def create(call: Call) -> Answer:
    """Make a key; its secret is in this answer and nowhere else."""
    wanted = await call.read_body(wire.CreateApiKey)
    secret = credentials.new_api_key()
    key_hash = credentials.api_key_hash(secret)
    assert key_hash is not None  # noqa: S101 - a key of our own making has the right form
    key = await call.write(keys.create, call.actor, wanted, key_hash, call.origin)
    made = wire.NewApiKey(
        uid=key.uid,
        name=key.name,
        key=secret,
        permissions=key.permissions,
        vault_uids=key.vault_uids,
        collections=key.collections,
        expires_at=key.expires_at,
        created_at=key.created_at,
    )
    return answer(made, 201)


async def list_(call: Call) -> Answer:
    """The keys, without their secrets."""
    return answer(wire.ApiKeys(await call.read(keys.list_, call.actor)))


async def revoke(call: Call) -> Answer:
    """Revoke a key."""
    await call.write(keys.revoke, call.actor, call.uid("uid"), call.origin)
    return answer(wire.Done())


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/api-keys",
        handler=create,
        summary="Make an API key; its secret is shown once",
        access=Access.USER,
        takes=wire.CreateApiKey,
        answers=wire.NewApiKey,
        status=201,
        refusals=(errors.VaultNotFound,),
    ),
    Endpoint(
        method="GET",
        path="/auth/api-keys",
        handler=list_,
        summary="List the API keys",
        access=Access.USER,
        answers=wire.ApiKeys,
    ),
    Endpoint(
        method="DELETE",
        path="/auth/api-keys/{uid}",
        handler=revoke,
        summary="Revoke an API key",
        access=Access.USER,
        answers=wire.Done,
        refusals=(errors.ApiKeyNotFound,),
    ),
)
