"""Collections of a vault: labels of its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import rules, store
from strongroom.errors import VaultNotFound

if TYPE_CHECKING:
    from strongroom.model import Actor
    from strongroom.store import Tx


async def list_(tx: Tx, actor: Actor, vault_uid: str, after: str, limit: int) -> tuple[list[str], bool]:
    """The collections that hold a live document, in order after a name; and whether there are more.

    Of a key limited to collections, those of its scope, all at once.
    """
    rules.require_vault(actor, vault_uid)
    owner = actor.user_id
    if await store.vaults.clock(tx, owner, vault_uid) is None:
        raise VaultNotFound
    scope = rules.collections_of(actor, None)
    if scope is not None:
        return [name for name in scope if await store.collections.is_live(tx, owner, vault_uid, name)], False
    found: list[str] = []
    while (name := await store.collections.after(tx, owner, vault_uid, after)) is not None:
        if len(found) == limit:
            return found, True
        after = name
        if await store.collections.is_live(tx, owner, vault_uid, name):
            found.append(name)
    return found, False
