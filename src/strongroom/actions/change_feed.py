"""The change feed of a vault or an account: changes in order, filtered by what the subscriber may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from strongroom import rules, store
from strongroom.errors import VaultNotFound
from strongroom.model import Change

if TYPE_CHECKING:
    from strongroom.model import Actor
    from strongroom.store import Tx
    from strongroom.store.queries.vaults import VaultSummary

_DOCUMENT, _BLOB, _RENAMED = "", "blob", "renamed"


class View(Struct, frozen=True):
    """The filter of a subscriber: what its key reaches. Subscribers with equal filters get the same bytes."""

    vault_uids: frozenset[str] | None
    collections: frozenset[str] | None
    documents: bool  # False on a server of blob vaults

    def shown(self, change: Change) -> Change | None:
        """A change as this subscriber sees it, or None.

        A blob belongs to no collection: a key limited to collections learns that the vault changed, not that it has
        a blob.
        """
        if self.vault_uids is not None and change.vault_uid not in self.vault_uids:
            return None
        if change.kind == _DOCUMENT:
            hidden = self.collections is not None and change.name not in self.collections
            return None if hidden or not self.documents else change
        if change.kind == _BLOB and self.collections is not None:
            return msgspec.structs.replace(change, kind=_RENAMED)
        return change


def view(actor: Actor, *, documents: bool) -> View:
    """The filter of an actor."""
    key = actor.key
    return View(
        None if key is None or key.vault_uids is None else frozenset(key.vault_uids),
        None if key is None or key.collections is None else frozenset(key.collections),
        documents,
    )


async def open_vault(tx: Tx, actor: Actor, vault_uid: str) -> VaultSummary:
    """The summary of a vault that the actor may follow."""
    rules.require_vault(actor, vault_uid)
    vault = await store.vaults.summary(tx, actor.user_id, vault_uid)
    if vault is None:
        raise VaultNotFound
    return vault


class ChangePage(Struct, frozen=True):
    """Changes in order. It is complete up to `reached`; with `more`, the next page is ready."""

    changes: list[Change]
    reached: int
    more: bool = False


async def page(tx: Tx, user_id: str, vault_uid: str, created_at: int, since: int, limit: int) -> ChangePage | None:
    """The next changes of a vault's documents; None if this vault was deleted, even if another has its uid now.

    The vault's clock is read first: the query after it sees every change up to that time.
    """
    vault = await store.vaults.summary(tx, user_id, vault_uid)
    if vault is None or vault.created_at != created_at:
        return None
    if vault.updated_at <= since:
        return ChangePage([], vault.updated_at)
    changes = await store.change_feed.of_vault(tx, user_id, vault_uid, since, rules.MAX_INTEGER, limit)
    if len(changes) == limit:
        return ChangePage(changes, changes[-1].updated_at, more=True)
    return ChangePage(changes, max(vault.updated_at, changes[-1].updated_at) if changes else vault.updated_at)
