"""Passkeys: challenges of ceremonies, registration, login, list, rename, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import store
from strongroom.actions import events, login_throttle, second_factors, sessions
from strongroom.errors import (
    Invalid,
    InvalidPasskey,
    PasskeyNotFound,
    PasskeyTaken,
    RateLimited,
    TooManyPasskeys,
    Unauthorized,
)
from strongroom.model import EventType, Passkey, PasskeyProof, Proof, Purpose, StoredPasskey, User
from strongroom.rules import (
    CHALLENGE_LIFETIME,
    CHALLENGES_PER_ACCOUNT,
    CHALLENGES_PER_ADDRESS,
    PASSKEYS_PER_ACCOUNT,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strongroom.credentials import TokenPair
    from strongroom.model import Actor, Origin
    from strongroom.store import Tx


async def begin_login(tx: Tx, challenge_hash: str, address: str) -> None:
    """Store the challenge of a login of whoever has a passkey; refuses an address that has begun too many."""
    await store.failures.lock_address(tx, address)
    full = await store.challenges.nth_of_address(tx, address, CHALLENGES_PER_ADDRESS)
    if full is not None:
        raise RateLimited(max(1, -(-(full - tx.now) // 1000)), "Too many logins with passkeys have begun; try later.")
    await store.challenges.add(tx, challenge_hash, Purpose.LOGIN, tx.now + CHALLENGE_LIFETIME, address=address)


async def begin_proof(tx: Tx, challenge_hash: str, user_id: str) -> list[Passkey]:
    """Store the challenge of a proof by an account that is known; the passkeys that it has."""
    await _begin(tx, challenge_hash, Purpose.PROOF, user_id)
    return await store.passkeys.of_user(tx, user_id)


async def _begin(tx: Tx, challenge_hash: str, purpose: Purpose, user_id: str) -> None:
    """Store a challenge of an account; the oldest makes room if there are too many."""
    await store.challenges.add(tx, challenge_hash, purpose, tx.now + CHALLENGE_LIFETIME, user_id=user_id)
    await store.challenges.trim(tx, user_id, challenge_hash, CHALLENGES_PER_ACCOUNT)


async def take(
    tx: Tx, challenge_hash: str, purpose: Purpose, user_id: str | None, credential_id: str
) -> StoredPasskey | None:
    """Use a challenge up, and find the passkey that is to be verified with it; None if one of them is not there.

    What follows may fail: the challenge stays used, so this is a transaction of its own.
    """
    if not await store.challenges.take(tx, challenge_hash, purpose, user_id):
        return None
    found = await store.passkeys.by_credential(tx, credential_id)
    return found if found is not None and user_id in {None, found.user_id} else None


async def take_for_registration(tx: Tx, actor: Actor, challenge_hash: str) -> bool:
    """Use the challenge of a registration up; False if it is not there. A transaction of its own, as above."""
    return await store.challenges.take(tx, challenge_hash, Purpose.REGISTRATION, actor.user_id)


def has_risen(passkey: StoredPasskey, sign_count: int) -> bool:
    """Whether the sign counter of an assertion is above the last one; an authenticator that does not count gives 0."""
    return sign_count > passkey.sign_count or sign_count == passkey.sign_count == 0


async def record_failure(tx: Tx, address: str, user_id: str | None, kind: EventType, origin: Origin) -> None:
    """Record a passkey that was refused; refuses with RateLimited once the address has failed too often."""
    await login_throttle.record_failed_secret(tx, address)
    if user_id is not None:
        await events.record(tx, user_id, kind, origin)


async def begin_registration(
    tx: Tx, actor: Actor, proof: Proof | PasskeyProof, challenge_hash: str, origin: Origin
) -> tuple[User, list[Passkey]]:
    """Store the challenge of a registration that was proven; the account, and the passkeys that it has."""
    await _prove(tx, actor, proof, origin)
    found = await store.passkeys.of_user(tx, actor.user_id)
    if len(found) >= PASSKEYS_PER_ACCOUNT:
        raise TooManyPasskeys
    user = await store.accounts.get(tx, actor.user_id)
    if user is None:
        raise Unauthorized
    await _begin(tx, challenge_hash, Purpose.REGISTRATION, actor.user_id)
    return user, found


async def add(
    tx: Tx, actor: Actor, new: StoredPasskey, name: str, codes: Iterable[str], origin: Origin, *, prf: bool
) -> tuple[Passkey, bool]:
    """Add a passkey that was verified; whether it is the first second factor, for which these recovery codes count."""
    await store.accounts.lock(tx, actor.user_id)
    if await store.passkeys.count(tx, actor.user_id) >= PASSKEYS_PER_ACCOUNT:
        raise TooManyPasskeys
    if not await store.passkeys.insert(tx, new, name, prf=prf):
        raise PasskeyTaken
    await events.record(tx, actor.user_id, EventType.PASSKEY_ADDED, origin)
    is_first = await second_factors.mark(tx, actor.user_id)
    if is_first:
        await store.second_factors.replace_recovery_codes(tx, actor.user_id, codes)
        await events.record(tx, actor.user_id, EventType.SECOND_FACTOR_ENABLED, origin)
    return Passkey(new.uid, new.credential_id, name, prf, tx.now, None), is_first


async def log_in(
    tx: Tx, passkey: StoredPasskey, proof: PasskeyProof, pair: TokenPair, origin: Origin, device_name: str | None
) -> User:
    """Open a session for the owner of a passkey that was verified: with the user verified, it is both factors."""
    await store.accounts.lock(tx, passkey.user_id)  # first: one lock order prevents deadlocks
    if not await store.passkeys.use(tx, passkey.user_id, passkey.uid, proof.sign_count):
        raise InvalidPasskey
    login = await store.accounts.with_hash(tx, passkey.user_id)
    if login is None or login.password_hash is None:
        raise InvalidPasskey
    await sessions.open_(tx, login.id, login.password_hash, pair, origin, device_name)
    await events.record(tx, login.id, EventType.LOGIN, origin)
    return User(login.id, login.email)


async def list_(tx: Tx, actor: Actor) -> list[Passkey]:
    """The actor's passkeys, oldest first."""
    return await store.passkeys.of_user(tx, actor.user_id)


async def rename(tx: Tx, actor: Actor, uid: str, name: str, origin: Origin) -> None:
    """Give a passkey another name."""
    if not await store.passkeys.rename(tx, actor.user_id, uid, name):
        raise PasskeyNotFound
    await events.record(tx, actor.user_id, EventType.PASSKEY_RENAMED, origin)


async def delete(tx: Tx, actor: Actor, uid: str, proof: Proof | PasskeyProof, origin: Origin) -> None:
    """Delete a passkey. With the last second factor, the password alone is enough again.

    The last passkey goes only with the password: whoever proves no other way in would lock themselves out.
    """
    await _prove(tx, actor, proof, origin)
    if not await store.passkeys.delete(tx, actor.user_id, uid):
        raise PasskeyNotFound
    if isinstance(proof, PasskeyProof) and not await store.passkeys.count(tx, actor.user_id):
        raise Invalid({"currentPassword": "is required: this is the last passkey, and then only the password is left"})
    await store.challenges.clear(tx, actor.user_id)
    await events.record(tx, actor.user_id, EventType.PASSKEY_DELETED, origin)
    if await second_factors.mark(tx, actor.user_id):
        await events.record(tx, actor.user_id, EventType.SECOND_FACTOR_DISABLED, origin)


async def _prove(tx: Tx, actor: Actor, proof: Proof | PasskeyProof, origin: Origin) -> None:
    """Lock the account, and use the proof up: the password with its second factor, or a passkey, which is both."""
    if isinstance(proof, PasskeyProof):
        await second_factors.use_factor(tx, actor.user_id, proof, origin)
    else:
        await second_factors.prove(tx, actor, proof, origin)
