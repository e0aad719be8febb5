"""Key shares of saved sessions: keep one with a session, delete it. A refresh of that session gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import store
from strongroom.errors import Unauthorized

if TYPE_CHECKING:
    from strongroom.model import Actor
    from strongroom.store import Tx


async def put(tx: Tx, actor: Actor, key_share: str, until: int) -> str:
    """Keep a share with the actor's session, in place of an earlier one; the id of the session."""
    if actor.session_id is None or not await store.key_shares.put(
        tx, actor.user_id, actor.session_id, key_share, until
    ):
        raise Unauthorized
    return actor.session_id


async def delete(tx: Tx, actor: Actor) -> None:
    """Delete the share of the actor's session, which stays open."""
    if actor.session_id is not None:
        await store.key_shares.delete(tx, actor.user_id, actor.session_id)
