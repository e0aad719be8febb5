"""Faults of sync to plant, one at a time, in a server or in a device. The model must notice each (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strongroom import store
from strongroom.actions import account_write, batches, document_operations
from strongroom.errors import Refusal, UidTaken
from strongroom.model import Document, Expected
from strongroom.server.routes import documents as routes
from strongroom.store.statement import Sql
from tests.sync.device import Entry, ReferenceDevice

Plant = Callable[[pytest.MonkeyPatch], None]


def replaced(module: Any, name: str, planted: Callable[..., Any]) -> Plant:
    """Another function in the place of this one."""
    return lambda patch: patch.setattr(module, name, planted)


def respelled(module: Any, name: str, said: str, says: str) -> Plant:
    """A statement that says something else."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        text: str = getattr(module, name).sqlite
        assert said in text, f"{name} does not say {said!r}: {text}"
        patch.setattr(module, name, Sql(text.replace(said, says)))

    return plant


def listed(said: str, says: str) -> Plant:
    """A list that says something else."""
    real = store.documents._list

    def spelled(collections: int, *how: Any, **more: Any) -> Sql:
        return Sql(real(collections, *how, **more).sqlite.replace(said, says))

    return lambda patch: patch.setattr(store.documents, "_list", spelled)


def without_tombstones(patch: pytest.MonkeyPatch) -> None:
    """A list that never shows what was deleted."""
    real = store.documents.after

    def after(*args: Any, **how: Any) -> Any:
        return real(*args, **{**how, "show": store.documents.Show.LIVE})

    patch.setattr(store.documents, "after", after)


async def created_again(made: account_write.AccountWrite, _new: Document) -> Document | UidTaken:
    """Do not recognise a create that was sent before."""
    del made
    return UidTaken()


async def half_done(tx: Any, actor: Any, limits: Any, vault_uid: str, wanted: Any) -> list[Document]:
    """Do what can be done of a batch, and answer as if nothing was."""
    for operation in wanted:
        try:
            await _run_batch(tx, actor, limits, vault_uid, [operation])
        except (Refusal, store.RollbackWith):
            continue
    return await _run_batch(tx, actor, limits, vault_uid, wanted)


def next_too_far(last: int, *, more: bool, synced: bool) -> bytes:
    """A `next` that is one too high."""
    return _tail(last + 1, more=more, synced=synced)


async def from_the_last_page(device: ReferenceDevice, vault: str, limit: int | None) -> bool:
    """Follow from the end of the first download, not from its beginning."""
    following = device.vaults[vault]
    first = following.since is None
    page = following.page
    more = await _pull(device, vault, limit)
    if first and following.since is not None:
        newest = [entry.base["updatedAt"] for entry in device.entries.values() if entry.base and entry.vault == vault]
        following.since = max([page or 0, *newest], default=0) or following.begun
    return more


def forgets_what_was_sent(entry: Entry, current: Any) -> None:
    """Take what is stored for the outcome of what was sent."""
    entry.sent, entry.doubt, entry.base = None, False, current


_run_batch, _tail, _pull = batches.run, routes._tail, ReferenceDevice.pull
_NEXT = "CASE WHEN ledgers.clock < :now THEN :last ELSE ledgers.clock + :timestamps END"

FAULTS: dict[str, Plant] = {
    "the cursor shows its own timestamp again": listed("updated_at > max(:since", "updated_at >= max(:since"),
    "the cursor skips a timestamp": listed("updated_at > max(:since", "updated_at > max(:since + 1"),
    "next is one too high": replaced(routes, "_tail", next_too_far),
    "a list forgets its collection": listed(" AND collection = :collection_0", ""),
    "tombstones are left out": without_tombstones,
    "a create that is sent again is refused": replaced(document_operations, "_created_before", created_again),
    "the clock follows the machine's": respelled(store.ledgers, "_ADVANCE", _NEXT, ":last"),
    "a batch is half written": replaced(batches, "run", half_done),
    "a put does not look at the version": replaced(Expected, "allows", lambda _expected, _version: True),
    "a vault counts no deletion": respelled(store.vaults, "_ADD_USAGE", "documents + :documents", "documents"),
    "history keeps what is there now": respelled(
        store.versions, "_RETAIN_DOCUMENT", ":timestamp FROM", "updated_at FROM"
    ),
    "a purge moves the timestamp": respelled(
        store.documents, "_PURGE", "SET data = ''", "SET updated_at = -updated_at, data = ''"
    ),
    "the trash keeps its history": respelled(store.versions, "_DROP_OF", "AND uid = :uid", "AND uid = :uid AND 0 = 1"),
    "a device follows from the end of its first download": replaced(ReferenceDevice, "pull", from_the_last_page),
    "a device forgets what it sent": replaced(Entry, "resolve", forgets_what_was_sent),
    "a device does not look at the epoch": replaced(ReferenceDevice, "_reconcile", lambda _device: None),
}
# Rarely met: for these, many examples are played.
AT_LENGTH = {name for name in FAULTS if name.startswith(("a device", "the trash", "history"))}
AFTER_A_RESTORE = {"a device does not look at the epoch"}
