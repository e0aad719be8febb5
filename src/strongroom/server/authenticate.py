"""Who is calling: a bearer that is an access token or an API key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import credentials
from strongroom.actions import guessing, keys, sessions
from strongroom.errors import StorageFull, Unauthorized, Unavailable
from strongroom.rules import MINUTE
from strongroom.server.address import counted

if TYPE_CHECKING:
    from strongroom.model import Actor, ApiKey
    from strongroom.server.http import Call


async def authenticate(call: Call) -> Actor:
    """The one who presents the bearer; refused if there is none or it is not good."""
    scheme, _, token = (call.header(b"authorization") or "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized
    if token.startswith(credentials.KEY_PREFIX):
        return await _by_key(call, token)
    claims = call.room.tokens.claims(token, "access", call.room.clock())
    if claims is None:
        raise Unauthorized
    return await call.room.db.read(sessions.actor, claims)


async def _by_key(call: Call, key: str) -> Actor:
    """A right key always passes, even from an address that failed too often: 256 bits are not found by guessing."""
    room = call.room
    key_hash = credentials.api_key_hash(key) if room.variant.has_documents else None
    actor = await room.db.read(keys.holder, key_hash) if key_hash is not None else None
    if actor is None or actor.key is None:
        await room.db.write(guessing.failed_secret, counted(call))
        raise Unauthorized
    await _note_use(call, actor.user_id, actor.key)
    return actor


async def _note_use(call: Call, user_id: str, key: ApiKey) -> None:
    """Note the use, once a minute at most; a disk that is full is no reason to refuse a read."""
    if key.last_used_at is not None and call.room.clock() - key.last_used_at < MINUTE:
        return
    try:
        await call.room.db.write(keys.touch, user_id, key.uid)
    except (StorageFull, Unavailable):
        return
