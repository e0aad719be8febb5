"""An export: everything that the account keeps, as the lines of one file."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from strongroom import store
from strongroom.actions import events
from strongroom.model import EventType

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from strongroom.export_rows import ExportRow
    from strongroom.model import Actor, Origin
    from strongroom.store import Tx


async def record(tx: Tx, actor: Actor, origin: Origin) -> None:
    """Tell the owner that somebody has asked for everything."""
    await events.record(tx, actor.user_id, EventType.EXPORTED, origin)


async def clock(tx: Tx, actor: Actor) -> int:
    """The account's time: nothing in the file is later."""
    return await store.ledgers.clock(tx, actor.user_id)


async def pages(tx: Tx, actor: Actor) -> AsyncGenerator[Sequence[ExportRow], None]:
    """Each vault, then its documents, then what those were before, then what its blob was before."""
    parts: tuple[Any, ...] = (store.exports.documents, store.exports.versions, store.exports.blobs)
    async with aclosing(store.exports.vaults(tx, actor.user_id)) as vaults:
        async for found in vaults:
            for vault in found:
                yield [vault]
                for part in parts:
                    async with aclosing(part(tx, actor.user_id, vault.uid)) as rest:
                        async for page in rest:
                            yield page
