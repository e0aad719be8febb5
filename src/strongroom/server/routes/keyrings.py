"""What clients keep here for themselves: how a password is derived, and the keys that are wrapped under it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from strongroom import descriptors, errors, rules, wire
from strongroom.actions import keyrings, login_throttle
from strongroom.errors import Invalid
from strongroom.server.authentication import proven
from strongroom.server.request import Access, Call, Endpoint
from strongroom.server.response import Answer, answer

if TYPE_CHECKING:
    from strongroom.model import Keyring


def _answer(call: Call, keyring: Keyring) -> Answer:
    etag = str(keyring.version)
    if call.method != "PUT" and call.unchanged(etag):
        return Answer(status=304, etag=etag)
    kdf = None if keyring.kdf is None else descriptors.read(keyring.kdf)
    return answer(wire.Keyring(keyring.keyring, keyring.version, keyring.updated_at, kdf), etag=etag)


async def prelogin(call: Call) -> Answer:
    """How the password of an email is derived. An email without an account costs the same work, and gets a decoy."""
    room, address = call.room, call.counted_address
    await call.read(login_throttle.admit_address, address)
    email = rules.normal_email((await call.read_body(wire.Prelogin)).email)
    decoy = room.decoys.of(email)
    found = await call.write(keyrings.ask, address, login_throttle.account_label(email), email)
    return answer(wire.Derivation(descriptors.read(found or decoy)))


async def get(call: Call) -> Answer:
    """The wrapped keys."""
    return _answer(call, await call.read(keyrings.get, call.actor))


async def put(call: Call) -> Answer:
    """Replace the wrapped keys at the version that the client saw; with the password as proof, its descriptor too."""
    wanted = await call.read_body(wire.PutKeyring)
    expected = call.expected(wanted.version)
    if expected is None:
        raise Invalid({"version": "is required: the version you last saw, 0 if there is none (or send If-Match)"})
    async with AsyncExitStack() as stack:
        checked = None
        if wanted.kdf is not None:
            checked = await stack.enter_async_context(proven(call, wanted.current_password or ""))
        keyring = await call.write(keyrings.put, call.actor, wanted, expected, checked, call.origin)
    return _answer(call, keyring)


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/auth/email/prelogin",
        handler=prelogin,
        summary="How the password of an email is derived",
        access=Access.PUBLIC,
        takes=wire.Prelogin,
        answers=wire.Derivation,
        refusals=(errors.RateLimited,),
    ),
    Endpoint(
        method="GET",
        path="/auth/keyring",
        handler=get,
        summary="The account's wrapped keys",
        access=Access.USER,
        answers=wire.Keyring,
        refusals=(errors.KeyringNotFound,),
        conditional=("If-None-Match",),
    ),
    Endpoint(
        method="PUT",
        path="/auth/keyring",
        handler=put,
        summary="Replace the wrapped keys at the version you last saw",
        access=Access.USER,
        takes=wire.PutKeyring,
        answers=wire.Keyring,
        refusals=(errors.InvalidCredentials, errors.RateLimited, errors.KeyringConflict),
        conditional=("If-Match",),
    ),
)
