"""Following a vault or an account: what changed, in order, and which of it the one who follows may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from strongroom import rules, store
from strongroom.errors import VaultNotFound
from strongroom.model import Change

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from strongroom.model import Actor
    from strongroom.store import Tx
    from strongroom.store.queries.access_status import AccessStatus, Credential
    from strongroom.store.queries.following import Latest, Span

_DOCUMENT, _BLOB, _RENAMED = "", "blob", "renamed"


class View(Struct, frozen=True):
    """What a follower may see: all that its key reaches. Those with equal views get the same bytes."""

    vault_uids: frozenset[str] | None
    collections: frozenset[str] | None
    documents: bool  # a server of blob vaults shows none

    def shown(self, change: Change) -> Change | None:
        """A change as this follower sees it, or None.

        A blob lies in no collection: who is limited to some learns that the vault changed, not that it has a blob.
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
    """What the actor may see."""
    key = actor.key
    return View(
        None if key is None or key.vault_uids is None else frozenset(key.vault_uids),
        None if key is None or key.collections is None else frozenset(key.collections),
        documents,
    )


async def open_vault(tx: Tx, actor: Actor, vault_uid: str) -> Span:
    """The vault that is to be followed: when it was made, and its time now."""
    rules.require_vault(actor, vault_uid)
    span = await store.following.span(tx, actor.user_id, vault_uid)
    if span is None:
        raise VaultNotFound
    return span


async def clock(tx: Tx, user_id: str) -> int:
    """The account's time."""
    return await store.following.clock(tx, user_id)


class Page(Struct, frozen=True):
    """Changes in order. All up to `reached` are known now; `more` may follow at once."""

    changes: list[Change]
    reached: int
    more: bool = False


async def page(tx: Tx, user_id: str, vault_uid: str, born: int, since: int, limit: int) -> Page | None:
    """The next changes of a vault's documents; None if this vault is gone, whatever has its uid now.

    The clock is read first: all up to it is seen by what is read afterwards.
    """
    span = await store.following.span(tx, user_id, vault_uid)
    if span is None or span.born != born:
        return None
    if span.clock <= since:
        return Page([], span.clock)
    changes = await store.following.of_vault(tx, user_id, vault_uid, since, rules.LARGEST, limit)
    if len(changes) == limit:
        return Page(changes, changes[-1].updated_at, more=True)
    return Page(changes, max(span.clock, changes[-1].updated_at) if changes else span.clock)


async def of_vault(tx: Tx, user_id: str, vault_uid: str, since: int, until: int, limit: int) -> list[Change]:
    """The first changes of a vault's documents in this span of time."""
    return await store.following.of_vault(tx, user_id, vault_uid, since, until, limit)


async def of_vaults(tx: Tx, user_id: str, since: int, until: int, limit: int) -> list[Change]:
    """The first changes of the account's vaults themselves in this span of time."""
    return await store.following.of_vaults(tx, user_id, since, until, limit)


async def latest(tx: Tx, user_id: str, beyond: str, limit: int) -> list[Latest]:
    """The next vaults, by uid, and when a document in each last changed."""
    return await store.following.latest(tx, user_id, beyond, limit)


async def access_status(tx: Tx, user_id: str) -> AccessStatus:
    """Who may still call for this account. To be read after the changes that are to be shown: never before."""
    return await store.access_status.of_account(tx, user_id)


async def moved(tx: Tx, seen: Mapping[str, int]) -> dict[str, int]:
    """The clocks of those accounts that are beyond what was seen."""
    return dict(await store.access_status.moved(tx, seen))


async def gone(tx: Tx, sessions: Collection[Credential], keys: Collection[Credential]) -> set[str]:
    """The accounts of those sessions and keys that are there no more."""
    return await store.access_status.gone(tx, sessions, keys)
