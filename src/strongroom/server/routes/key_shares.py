"""Key shares: what the server keeps of the key of a saved session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import rules, wire
from strongroom.actions import key_shares
from strongroom.server.request import Access, Endpoint
from strongroom.server.response import json_response

if TYPE_CHECKING:
    from strongroom.server.request import Request
    from strongroom.server.response import Response


async def put(request: Request) -> Response:
    """Keep a share of a key with this session, in place of an earlier one."""
    given = await request.read_body(wire.requests.PutKeyShare)
    now = request.context.clock()
    until = max(now, request.actor.until or 0) + rules.KEY_SHARE_GRACE
    session_id = await request.write(key_shares.put, request.actor, given.key_share, until)
    return json_response(wire.responses.KeptKeyShare(session_id, until))


async def delete(request: Request) -> Response:
    """Delete the share of this session, which stays open."""
    await request.write(key_shares.delete, request.actor)
    return json_response(wire.responses.Done())


ENDPOINTS: Final = (
    Endpoint(
        method="PUT",
        path="/auth/key-share",
        handler=put,
        summary="Keep a share of a key with this session",
        access=Access.USER,
        request_type=wire.requests.PutKeyShare,
        response_type=wire.responses.KeptKeyShare,
    ),
    Endpoint(
        method="DELETE",
        path="/auth/key-share",
        handler=delete,
        summary="Delete the share that is kept with this session",
        access=Access.USER,
        response_type=wire.responses.Done,
    ),
)
