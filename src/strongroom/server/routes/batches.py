"""Batches of operations on the documents of a vault."""

from __future__ import annotations

from typing import Final

from strongroom import errors, rules, wire
from strongroom.actions import batches
from strongroom.model import Permission
from strongroom.server.request import Endpoint, Request
from strongroom.server.response import Response, json_response

SMALL: Final = 16  # larger batches get a transaction of their own


async def run(request: Request) -> Response:
    """Create, replace and delete many documents in one transaction: all or nothing."""
    rules.require_any(request.actor.key, Permission.WRITE, Permission.DELETE)
    operations = (await request.read_body(wire.requests.Batch)).operations
    write = request.write if len(operations) <= SMALL else request.write_long
    done = await write(batches.run, request.actor, request.context.limits, request.uid("vaultUid"), operations)
    return json_response(
        wire.responses.Results([rules.visible_to(request.actor, *each) for each in zip(done, operations, strict=True)])
    )


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/vaults/{vaultUid}/batch",
        handler=run,
        summary="Create, replace and delete many documents, all or nothing",
        request_type=wire.requests.Batch,
        response_type=wire.responses.Results,
        refusals=(errors.VaultNotFound, errors.BatchConflict, errors.QuotaExceeded, errors.KeyringConflict),
        request_headers=("Keyring-Version",),
    ),
)
