"""Faults of the replica to plant, one at a time. The model of convergence must notice each (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom.client.replica import after_restore, conflicts, incoming, outgoing
from strongroom.client.replica.store.file import File
from strongroom.client.replica.store.outbox import Outbox

Plant = Callable[[pytest.MonkeyPatch], None]


def replaced(owner: Any, name: str, planted: Callable[..., Any]) -> Plant:
    """Another function in the place of this one."""
    return lambda patch: patch.setattr(owner, name, planted)


def sends_and_forgets(patch: pytest.MonkeyPatch) -> None:
    """What is sent leaves the outbox before its answer has come."""
    real = outgoing.next_batch

    def bundle(local: Any, at: Any, after: int) -> Any:
        parcels = real(local, at, after)
        for parcel in parcels:
            local.file.outbox.drop(parcel.entry.vault, parcel.entry.uid)
        return parcels

    patch.setattr(outgoing, "next_batch", bundle)


def leaves_one_out(patch: pytest.MonkeyPatch) -> None:
    """The last row of a page is not kept, and the cursor goes on."""
    real = incoming.store_page
    patch.setattr(incoming, "store_page", lambda local, at, kept, rows, *more: real(local, at, kept, rows[:-1], *more))


def changed_again_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """What came through is taken for all that waits, though it was changed again since it was sent."""
    patch.setattr(incoming, "_confirm_sent", lambda file, _entry, row: file.outbox.drop(row.vault_uid, row.uid))


def base_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A change that meets another is laid upon it, unasked."""

    def meet(file: File, row: Any, _stored: Any, *, deleted: bool) -> None:
        entry = file.outbox.get(row.vault_uid, row.uid)
        if entry is not None and not deleted:
            file.outbox.put(msgspec.structs.replace(entry, base=row.version, before=row))

    patch.setattr(incoming, "match_outbox", meet)


def theirs_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """A conflict is decided for this device, whatever was said."""
    real = conflicts._apply

    def settle(local: Any, at: Any, entry: Any, row: Any, resolution: Any, conflict: Any) -> None:
        kind = "mine" if resolution.kind == "merged" else resolution.kind
        real(local, at, entry, row, msgspec.structs.replace(resolution, kind=kind), conflict)

    patch.setattr(conflicts, "_apply", settle)


FAULTS: dict[str, Plant] = {
    "the outbox forgets what it sends": sends_and_forgets,
    "the last row of a page is left out": leaves_one_out,
    "a change made after sending is dropped": changed_again_is_dropped,
    "a change is laid upon another unasked": base_is_forgotten,
    "a merge keeps one side": theirs_is_dropped,
    "a deletion of what was sent leaves no trace": replaced(
        Outbox, "was_sent", lambda _o, _v, _u, proof="": bool(proof)
    ),
    "a restored server is believed": replaced(after_restore.RestoreReconciliation, "_queue_forgotten", lambda *_: None),
}
AFTER_A_RESTORE = {"a restored server is believed"}
