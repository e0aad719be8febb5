"""The event log of an account, for its owner to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, store
from strongroom.rules import EVENTS_PER_TYPE

if TYPE_CHECKING:
    from strongroom.model import Actor, Event, EventType, Origin
    from strongroom.store import Tx


async def record(tx: Tx, user_id: str, kind: EventType, origin: Origin) -> None:
    """Add an event to the account's log."""
    await store.events.add(tx, user_id, identifiers.new_uid(tx.now), kind.value, origin, EVENTS_PER_TYPE)


async def list_(tx: Tx, actor: Actor, before: str, limit: int) -> tuple[list[Event], bool]:
    """The newest events before this id, and whether there are older ones."""
    found = await store.events.newest(tx, actor.user_id, before, limit + 1)
    return found[:limit], len(found) > limit
