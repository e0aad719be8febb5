"""Register, and ask who one is."""

from __future__ import annotations

from typing import Final

from strongroom import errors, identifiers, rules, wire
from strongroom.actions import accounts
from strongroom.server.http import Access, Answer, Call, Endpoint, answer


async def register(call: Call) -> Answer:
    """Make an account and open its first session."""
    wanted = await call.read(wire.Register)
    room = call.room
    email = rules.normal_email(wanted.email)
    await room.db.read(accounts.require_free, email)
    password_hash = await room.hash_password(wanted.password)
    now = room.clock()
    user_id = identifiers.new_uid(now)
    pair = room.mint.pair(user_id, identifiers.new_uid(now), now)
    user = await room.db.write(accounts.register, user_id, email, password_hash, pair)
    return answer(wire.SignedIn(pair.access_token, pair.refresh_token, user, pair.access_token), 201)


async def me(call: Call) -> Answer:
    """Who is calling, and with which key."""
    user = await call.room.db.read(accounts.me, call.actor)
    key, about = call.actor.key, None
    if key is not None:
        about = wire.KeyAbout(key.uid, key.name, key.permissions, key.vault_uids, key.collections, key.expires_at)
    return answer(wire.Me(user, about))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/email/register",
        handler=register,
        summary="Register with an email and a password",
        access=Access.PUBLIC,
        takes=wire.Register,
        answers=wire.SignedIn,
        status=201,
        refusals=(errors.EmailAlreadyExists,),
    ),
    Endpoint(
        method="GET",
        path="/auth/me",
        handler=me,
        summary="The current user, and the API key if one is presented",
        answers=wire.Me,
    ),
)
