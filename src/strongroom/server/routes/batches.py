"""Batches of operations on the documents of a vault."""

from __future__ import annotations

from typing import Final

from strongroom import errors, rules, wire
from strongroom.actions import batches
from strongroom.model import Permission
from strongroom.server.request import Call, Endpoint
from strongroom.server.response import Answer, answer

SMALL: Final = 16  # operations that may share a commit with other writes; more have one to themselves


async def run(call: Call) -> Answer:
    """Create, replace and delete many documents at once: all of it is done, or nothing."""
    rules.require_any(call.actor.key, Permission.WRITE, Permission.DELETE)
    wanted = (await call.read_body(wire.Batch)).operations
    write = call.write if len(wanted) <= SMALL else call.write_long
    done = await write(batches.run, call.actor, call.room.terms, call.uid("vaultUid"), wanted)
    return answer(wire.Results([rules.seen_by(call.actor, *each) for each in zip(done, wanted, strict=True)]))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/vaults/{vaultUid}/batch",
        also=("/vault/{vaultUid}/batch",),
        handler=run,
        summary="Create, replace and delete many documents, all or nothing",
        takes=wire.Batch,
        answers=wire.Results,
        refusals=(errors.VaultNotFound, errors.BatchConflict, errors.QuotaExceeded),
    ),
)
