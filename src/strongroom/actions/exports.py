"""Exports: all keyrings, vaults, documents and versions of an account, as the rows of one file."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from strongroom import descriptors, store
from strongroom.actions import events
from strongroom.errors import RateLimited
from strongroom.export_rows import ExportedKeyring, ExportedKeyringVersion
from strongroom.model import EventType

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from strongroom.descriptors import Kdf
    from strongroom.export_rows import ExportRow, KeyringRow
    from strongroom.model import Actor, Origin
    from strongroom.store import Tx


RETRY_AFTER: Final = 5  # seconds


async def record(tx: Tx, actor: Actor, origin: Origin) -> None:
    """Record an export in the account's log."""
    await events.record(tx, actor.user_id, EventType.EXPORTED, origin)


def already_running() -> RateLimited:
    """The refusal of an export while another one of the account is being read."""
    return RateLimited(
        RETRY_AFTER, "Another export of your account is being read; let it end, or end it, and try again."
    )


async def begin(tx: Tx, actor: Actor) -> None:
    """Refuse an export of an account that another node exports, for as long as the snapshot is open."""
    if not await store.exports.claim(tx, actor.user_id):
        raise already_running()


async def clock(tx: Tx, actor: Actor) -> int:
    """The account's clock: no row of the file is later."""
    return await store.ledgers.clock(tx, actor.user_id)


async def kdf(tx: Tx, actor: Actor) -> Kdf | None:
    """The account's key derivation descriptor."""
    return _parsed(await store.exports.kdf(tx, actor.user_id))


async def pages(tx: Tx, actor: Actor) -> AsyncGenerator[Sequence[ExportRow | KeyringRow], None]:
    """The keyrings; each vault, then its documents, their replaced versions, and the replaced versions of its blob."""
    current = await store.keyrings.get(tx, actor.user_id)
    if current is not None:
        yield [ExportedKeyring(current.keyring, current.version, current.updated_at)]
        async with aclosing(store.exports.keyrings(tx, actor.user_id)) as replaced:
            async for some in replaced:
                yield [
                    ExportedKeyringVersion(one.data, one.version, one.updated_at, one.replaced_at, _parsed(one.kdf))
                    for one in some
                ]
    parts: tuple[Any, ...] = (store.exports.documents, store.exports.versions, store.exports.blobs)
    async with aclosing(store.exports.vaults(tx, actor.user_id)) as vaults:
        async for found in vaults:
            for vault in found:
                yield [vault]
                for part in parts:
                    async with aclosing(part(tx, actor.user_id, vault.uid)) as rest:
                        async for page in rest:
                            yield page


def _parsed(kdf: str | None) -> Kdf | None:
    return None if kdf is None else descriptors.parse(kdf)
