"""Batches of operations on the documents of a vault."""

from __future__ import annotations

from typing import Final

from strongroom import errors, rules, wire
from strongroom.actions import batches
from strongroom.model import Permission
from strongroom.server.request import Endpoint, Request
from strongroom.server.response import Response, json_response

SMALL: Final = 16  # operations that may share a commit with other writes; more have one to themselves


async def run(request: Request) -> Response:
    """Create, replace and delete many documents at once: all of it is done, or nothing."""
    rules.require_any(request.actor.key, Permission.WRITE, Permission.DELETE)
    wanted = (await request.read_body(wire.requests.Batch)).operations
    write = request.write if len(wanted) <= SMALL else request.write_long
    done = await write(batches.run, request.actor, request.context.limits, request.uid("vaultUid"), wanted)
    return json_response(
        wire.responses.Results([rules.visible_to(request.actor, *each) for each in zip(done, wanted, strict=True)])
    )


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/vaults/{vaultUid}/batch",
        aliases=("/vault/{vaultUid}/batch",),
        handler=run,
        summary="Create, replace and delete many documents, all or nothing",
        request_type=wire.requests.Batch,
        response_type=wire.responses.Results,
        refusals=(errors.VaultNotFound, errors.BatchConflict, errors.QuotaExceeded),
    ),
)
