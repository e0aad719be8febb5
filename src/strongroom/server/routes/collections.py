"""Collections of a vault."""

from __future__ import annotations

from typing import Final

from strongroom import errors, wire
from strongroom.actions import collections
from strongroom.model import Permission
from strongroom.server.request import Endpoint, Request
from strongroom.server.response import Response, json_response

MOST_COLLECTIONS: Final = 100  # in one response


async def list_(request: Request) -> Response:
    """The collections that hold a document which is not deleted."""
    after = request.query().get("after", "")
    where = request.uid("vaultUid"), after.replace("\0", ""), MOST_COLLECTIONS
    return json_response(wire.responses.Collections(*await request.read(collections.list_, request.actor, *where)))


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/vaults/{vaultUid}/collections",
        handler=list_,
        summary="List the collections of a vault that hold documents",
        permission=Permission.READ,
        response_type=wire.responses.Collections,
        query=(("after", "string", "Only collections after this one: the last of the previous page"),),
        refusals=(errors.VaultNotFound,),
    ),
)
