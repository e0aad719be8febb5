"""Batches: many operations on the documents of a vault, applied atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strongroom import rules
from strongroom.actions import document_operations
from strongroom.actions.account_write import AccountWrite, begin
from strongroom.errors import BatchConflict, DocumentConflict, DocumentNotFound, Refusal, UidTaken
from strongroom.model import Document, Expected, Permission
from strongroom.wire.requests import CreateOperation, DeleteOperation, PutOperation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from strongroom.model import AccountLimits, Actor
    from strongroom.store import Tx
    from strongroom.wire.requests import Operation


def _authorise(actor: Actor, wanted: Sequence[Operation]) -> None:
    """Refuse an API key that lacks a permission for one of the operations, or the scope of its collection."""
    for operation in wanted:
        permission = Permission.DELETE if isinstance(operation, DeleteOperation) else Permission.WRITE
        rules.require(actor.key, permission)
    for operation in wanted:
        if isinstance(operation, CreateOperation):
            rules.require_collection(actor, operation.collection)


async def run(
    tx: Tx, actor: Actor, limits: AccountLimits, vault_uid: str, wanted: Sequence[Operation]
) -> list[Document]:
    """Apply all operations in order; if any fails, report every failure and apply none."""
    _authorise(actor, wanted)
    rules.require_vault(actor, vault_uid)
    sizes = [rules.octets(one.data, one.hmac) for one in wanted if isinstance(one, CreateOperation)]
    write = await begin(tx, actor, limits, timestamps=len(wanted), documents=len(sizes), size=sum(sizes))
    outcomes: list[Document | Refusal] = []
    for group in _groups(wanted):
        if isinstance(group, list):
            outcomes += await document_operations.create(write, vault_uid, group)
        else:
            outcomes.append(await _apply(write, vault_uid, group))
    if failures := [
        _failure(write, index, wanted[index], outcome)
        for index, outcome in enumerate(outcomes)
        if isinstance(outcome, Refusal)
    ]:
        raise BatchConflict(failures)
    return await write.finish([outcome for outcome in outcomes if isinstance(outcome, Document)], vault_uid)


def _groups(wanted: Sequence[Operation]) -> Iterator[list[CreateOperation] | PutOperation | DeleteOperation]:
    """The operations in order; consecutive creates are one group, for one round trip to the database."""
    creates: list[CreateOperation] = []
    for operation in wanted:
        if isinstance(operation, CreateOperation):
            creates.append(operation)
            continue
        if creates:
            yield creates
            creates = []
        yield operation
    if creates:
        yield creates


async def _apply(write: AccountWrite, vault_uid: str, operation: PutOperation | DeleteOperation) -> Document | Refusal:
    """Apply a put or a delete; a failure that the batch reports is returned, not raised."""
    uid = operation.uid.lower()
    try:
        if isinstance(operation, PutOperation):
            return await document_operations.put(write, vault_uid, uid, operation, Expected((operation.version,)))
        expected = None if operation.version is None else Expected((operation.version,))
        return await document_operations.delete(write, vault_uid, uid, expected)
    except (DocumentConflict, DocumentNotFound) as refusal:
        return refusal


def _failure(write: AccountWrite, index: int, operation: Operation, refusal: Refusal) -> dict[str, Any]:
    """The report of a failed operation, with the version that was stored before the batch, which is rolled back."""
    uid = None if operation.uid is None else operation.uid.lower()
    stored = refusal if isinstance(refusal, UidTaken) else write.originals.get(uid or "")
    return {
        "index": index,
        "op": operation.__struct_config__.tag,
        "uid": uid,
        "code": refusal.code,
        "message": refusal.message,
        "version": None if stored is None else stored.version,
        "updatedAt": None if stored is None else stored.updated_at,
    }
