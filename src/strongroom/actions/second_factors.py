"""Second factors: one-time codes and recovery codes. Checked in one transaction, used up in that of what they allow.

A check that fails must be counted, so it is a transaction of its own that is committed. It runs under the lock of the
account's codes, so that no more wrong codes are checked than the throttle allows, on however many nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import credentials, one_time_codes, store
from strongroom.actions import events, login_throttle
from strongroom.errors import (
    InvalidCredentials,
    InvalidSecondFactor,
    SecondFactorNotFound,
    SecondFactorRequired,
    Unavailable,
)
from strongroom.model import CodeProof, EventType, PasskeyProof, RecoveryCodeProof, SecondFactors
from strongroom.one_time_codes import SealedSecret
from strongroom.rules import ENROLMENT_LIFETIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strongroom.actions.retention import Sweep
    from strongroom.model import Actor, FactorProof, Login, Origin, Proof
    from strongroom.one_time_codes import SecretBox
    from strongroom.store import Tx
    from strongroom.wire.requests import SecondFactor

RESEALED_AT_ONCE: Final = 64  # secrets in one transaction
_UNREADABLE: Final = (
    "One-time codes cannot be checked at the moment: the server lacks the secret under which yours is stored. Use a "
    "recovery code or a passkey, or ask the operator of this server."
)


async def check(
    tx: Tx, login: Login, given: SecondFactor, box: SecretBox, address: str, origin: Origin
) -> FactorProof | None:
    """The proof that a second factor is right; None if it is not, which counts towards the throttle.

    Recovery codes are not throttled: 80 bits cannot be guessed, and the owner needs them while others guess.
    """
    if given.code is not None:
        return await check_code(tx, login, given.code, box, address, origin, confirmed=True)
    code_hash = credentials.recovery_code_hash(login.id, given.recovery_code or "")
    if code_hash is not None and await store.second_factors.has_recovery_code(tx, login.id, code_hash):
        return RecoveryCodeProof(code_hash)
    await login_throttle.record_failed_secret(tx, address)
    await events.record(tx, login.id, EventType.SECOND_FACTOR_FAILED, origin)
    return None


async def check_code(
    tx: Tx, login: Login, code: str, box: SecretBox, address: str, origin: Origin, *, confirmed: bool
) -> CodeProof | None:
    """The proof that a one-time code is right, or None. If not `confirmed`, it is of an enrolment that has begun."""
    await login_throttle.check_codes(tx, address, login.id)
    stored = await store.second_factors.get(
        tx, login.id, confirmed=confirmed, after=0 if confirmed else tx.now - ENROLMENT_LIFETIME
    )
    if stored is None:
        if not confirmed:
            raise SecondFactorNotFound
    else:
        secret = box.open(login.id, SealedSecret(stored.key_id, stored.sealed))
        if secret is None:
            raise Unavailable(60, _UNREADABLE)
        step = one_time_codes.matching_step(secret, code, tx.now, stored.last_step)
        if step is not None:
            return CodeProof(step, stored.created_at)
    await login_throttle.record_failed_code(tx, address, login.id)
    await events.record(tx, login.id, EventType.SECOND_FACTOR_FAILED, origin)
    return None


async def use(tx: Tx, user_id: str, proof: Proof, origin: Origin) -> str:
    """Use up the second factor of a proof, if the account has one; the password hash that was verified.

    The caller must change something only where this is the stored hash: it changes when a factor is enrolled.
    """
    if credentials.needs_second_factor(proof.password_hash):
        await use_factor(tx, user_id, proof.factor, origin)
    return proof.password_hash


async def use_factor(tx: Tx, user_id: str, factor: FactorProof | None, origin: Origin) -> None:
    """Use up a second factor that was checked; refused if another request has used it meanwhile."""
    if factor is None:
        raise SecondFactorRequired(await methods(tx, user_id))
    await store.accounts.lock(tx, user_id)  # first, whatever is changed then: one lock order prevents deadlocks
    if isinstance(factor, CodeProof):
        if not await store.second_factors.use_step(tx, user_id, factor.step, factor.created_at):
            raise InvalidSecondFactor
        await login_throttle.clear_failed_codes(tx, user_id)
    elif isinstance(factor, PasskeyProof):
        if not await store.passkeys.use(tx, user_id, factor.uid, factor.sign_count):
            raise InvalidSecondFactor
    else:
        if not await store.second_factors.use_recovery_code(tx, user_id, factor.code_hash):
            raise InvalidSecondFactor
        await events.record(tx, user_id, EventType.RECOVERY_CODE_USED, origin)


async def methods(tx: Tx, user_id: str) -> list[str]:
    """The kinds of second factors that an account has."""
    found = await of_account(tx, user_id)
    has = {
        "totp": found.totp_since is not None,
        "recovery_code": found.recovery_codes > 0,
        "passkey": found.passkeys > 0,
    }
    return [method for method, there in has.items() if there]


async def of_account(tx: Tx, user_id: str) -> SecondFactors:
    """The second factors of an account."""
    codes = await store.second_factors.get(tx, user_id, confirmed=True)
    return SecondFactors(
        None if codes is None else codes.created_at,
        await store.passkeys.count(tx, user_id),
        await store.second_factors.count_recovery_codes(tx, user_id),
    )


async def get(tx: Tx, actor: Actor) -> SecondFactors:
    """The second factors of the actor."""
    return await of_account(tx, actor.user_id)


async def begin(tx: Tx, actor: Actor, proof: Proof, sealed: SealedSecret, origin: Origin) -> None:
    """Begin the enrolment of one-time codes; they count once they are confirmed, and replace the ones before."""
    await prove(tx, actor, proof, origin)
    await store.second_factors.begin(tx, actor.user_id, *sealed)


async def confirm(tx: Tx, actor: Actor, proof: CodeProof, hashes: Iterable[str], origin: Origin) -> None:
    """Let the one-time codes count whose enrolment has begun, and replace the recovery codes."""
    await store.accounts.lock(tx, actor.user_id)
    if not await store.second_factors.confirm(tx, actor.user_id, proof.step, proof.created_at):
        raise SecondFactorNotFound
    await login_throttle.clear_failed_codes(tx, actor.user_id)
    await store.second_factors.replace_recovery_codes(tx, actor.user_id, hashes)
    await mark(tx, actor.user_id)
    await events.record(tx, actor.user_id, EventType.SECOND_FACTOR_ENABLED, origin)


async def replace_recovery_codes(tx: Tx, actor: Actor, proof: Proof, hashes: Iterable[str], origin: Origin) -> None:
    """Replace all recovery codes of an account that has a second factor."""
    await prove(tx, actor, proof, origin)
    if not credentials.needs_second_factor(proof.password_hash):
        raise SecondFactorNotFound
    await store.second_factors.replace_recovery_codes(tx, actor.user_id, hashes)
    await events.record(tx, actor.user_id, EventType.RECOVERY_CODES_REPLACED, origin)


async def disable(tx: Tx, actor: Actor, proof: Proof, origin: Origin) -> None:
    """Delete the one-time codes, and an enrolment that has begun; with the last factor, the recovery codes too."""
    await prove(tx, actor, proof, origin)
    await store.second_factors.delete(tx, actor.user_id, confirmed=False)
    if not await store.second_factors.delete(tx, actor.user_id, confirmed=True):
        raise SecondFactorNotFound
    await mark(tx, actor.user_id)
    await events.record(tx, actor.user_id, EventType.SECOND_FACTOR_DISABLED, origin)


async def prove(tx: Tx, actor: Actor, proof: Proof, origin: Origin) -> None:
    """Lock the account, and refuse a proof that is not of its current password and second factors."""
    await store.accounts.lock(tx, actor.user_id)
    if not await store.accounts.is_current(tx, actor.user_id, await use(tx, actor.user_id, proof, origin)):
        raise InvalidCredentials


async def mark(tx: Tx, user_id: str) -> bool:
    """Mark the password hash of an account that has a second factor; whether that changes it. The account is locked."""
    login = await store.accounts.with_hash(tx, user_id)
    if login is None or login.password_hash is None:
        return False
    has = (
        await store.second_factors.get(tx, user_id, confirmed=True) is not None
        or await store.passkeys.count(tx, user_id) > 0
    )
    stored = credentials.marked(login.password_hash, second_factor=has)
    if not has:
        await store.second_factors.replace_recovery_codes(tx, user_id, ())
    await store.tickets.clear(tx, user_id)
    return stored != login.password_hash and await store.accounts.change_hash(tx, user_id, login.password_hash, stored)


async def older_keys(tx: Tx, box: SecretBox) -> dict[str, int]:
    """How many secrets of one-time codes are sealed under other keys than the current one."""
    older = [key_id for key_id in await store.second_factors.keys(tx) if key_id != box.key_id]
    return {key_id: await store.second_factors.count_under(tx, key_id) for key_id in older}


async def reseal_some(tx: Tx, box: SecretBox, key_id: str, after: tuple[str, int]) -> tuple[str, int] | None:
    """Seal some secrets anew that are sealed under another key than the current one; where to go on, or None."""
    found = await store.second_factors.sealed_under(tx, key_id, after, RESEALED_AT_ONCE)
    for one in found:
        secret = box.open(one.user_id, SealedSecret(key_id, one.sealed))
        if secret is not None:
            await store.second_factors.reseal(tx, one, *box.seal(one.user_id, secret))
    return (found[-1].user_id, found[-1].confirmed) if found else None


async def reset(tx: Tx, user_id: str, origin: Origin) -> bool:
    """Delete all second factors of an account, without a proof: for its operator. False if it has none.

    An account that is marked and has none, as after a salvage that lost them, is opened in this way too.
    """
    await store.accounts.lock(tx, user_id)
    had = await store.second_factors.delete(tx, user_id, confirmed=True)
    await store.second_factors.delete(tx, user_id, confirmed=False)
    had = await store.passkeys.delete_all(tx, user_id) > 0 or had
    await store.challenges.clear(tx, user_id)
    await login_throttle.clear_failed_codes(tx, user_id)
    had = await mark(tx, user_id) or had
    if had:
        await events.record(tx, user_id, EventType.SECOND_FACTOR_RESET, origin)
    return had


async def purge_some(tx: Tx, sweep: Sweep) -> bool:
    """Delete some tickets that have expired, and enrolments that were never confirmed; whether there may be more."""
    return await sweep.delete(tx, store.tickets.purge, tx.now) or await sweep.delete(
        tx, store.second_factors.purge, tx.now - ENROLMENT_LIFETIME
    )
