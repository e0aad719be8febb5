"""Batches: many operations on the documents of a vault, applied atomically."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from strongroom import rules
from strongroom.actions import document_forms, document_operations
from strongroom.actions.account_write import AccountWrite, begin
from strongroom.errors import BatchConflict, DocumentConflict, DocumentNotFound, Refusal, UidTaken
from strongroom.model import Document, Expected, Permission
from strongroom.wire.requests import CreateOperation, DeleteOperation, PutOperation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from strongroom.model import AccountLimits, Actor
    from strongroom.store import Tx
    from strongroom.store.write_forms import NewDocument, Replacement
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
    if (forms := _forms(tx.now, actor, limits, vault_uid, wanted)) is not None:
        written = await tx.combine(actor.user_id, forms)
        if written is not None:
            tx.notify(actor.user_id, vault_uid)
            return [document for group in written for document in group]
    creates = [one for one in wanted if isinstance(one, CreateOperation)]
    write = await begin(
        tx,
        actor,
        limits,
        timestamps=len(wanted),
        documents=len(creates),
        size=sum(rules.octets(one.data, one.hmac) for one in creates),
        row_bytes=sum(rules.row_bytes(one.collection) for one in creates),
    )
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


def _forms(
    now: int, actor: Actor, limits: AccountLimits, vault_uid: str, wanted: Sequence[Operation]
) -> list[list[NewDocument] | list[Replacement]] | None:
    """The operations in a form that the engine combines, those of one kind that follow on each other in one group.

    None if they cannot be combined: there is a deletion among them, two concern one document, or one is out of scope.
    """
    forms: list[NewDocument | Replacement] = []
    for one in wanted:
        if isinstance(one, DeleteOperation):
            return None
        if isinstance(one, CreateOperation):
            form: NewDocument | Replacement | None = document_forms.new_document(now, actor, limits, vault_uid, one)
        else:
            expected = Expected((one.version,))
            form = document_forms.replacement(now, actor, limits, vault_uid, one.uid.lower(), one, expected)
        if form is None:
            return None
        forms.append(form)
    if len({form.uid for form in forms}) < len(forms):
        return None
    groups: list[Any] = [list(group) for _, group in groupby(forms, type)]
    return groups


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
