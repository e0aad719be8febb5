"""The trash of a vault: purge one deleted document, or all."""

from __future__ import annotations

from typing import Final

from strongroom import errors, rules, wire
from strongroom.actions import trash
from strongroom.errors import Invalid
from strongroom.model import Document
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response, json_response

MOST_STEPS: Final = 32  # transactions of one request


async def empty(request: Request) -> Response:
    """Purge deleted documents of a vault, or of one collection; some of them, where there are many."""
    collection = request.query().get("collection")
    if collection is not None and (not 1 <= len(collection) <= 255 or rules.has_control(collection)):
        raise Invalid({"collection": wire.says(wire.requests.Name)})
    vault_uid = request.uid("vaultUid")
    purged, reached = 0, 0
    for _ in range(MOST_STEPS):
        some, next_time = await request.write_long(trash.empty_some, request.actor, vault_uid, collection, reached)
        purged += some
        if next_time is None:
            break
        reached = next_time
    await request.truncate_log()
    return json_response(wire.responses.Purged(purged, next_time is not None))


async def purge(request: Request) -> Response:
    """Purge a deleted document: its content and its history; the tombstone stays."""
    wanted = await request.read_body(wire.requests.DeleteDocument)
    where, expected = (request.uid("vaultUid"), request.uid("uid")), request.expected(wanted.version)
    more = True
    while more:
        tombstone, more = await request.write_long(trash.purge_some, request.actor, *where, expected)
    await request.truncate_log()
    return json_response(tombstone, etag=str(tombstone.version))


_TRASH: Final = "/vaults/{vaultUid}/trash"

# Not for API keys: the trash is what protects documents from a key that may delete them.
ENDPOINTS: Final = (
    Endpoint(
        method="DELETE",
        path=_TRASH,
        handler=empty,
        summary="Purge the deleted documents of a vault, and their history",
        access=Access.USER,
        response_type=wire.responses.Purged,
        query=(("collection", "string", "Only documents of this collection"),),
        refusals=(errors.VaultNotFound, errors.ImportUnfinished),
    ),
    Endpoint(
        method="DELETE",
        path=_TRASH + "/{uid}",
        handler=purge,
        summary="Purge a deleted document, and its history",
        access=Access.USER,
        request_type=wire.requests.DeleteDocument,
        response_type=Document,
        refusals=(errors.VaultNotFound, errors.DocumentNotFound, errors.DocumentConflict, errors.ImportUnfinished),
        request_headers=("If-Match",),
    ),
)
