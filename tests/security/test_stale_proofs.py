"""What was verified must still be so in the transaction that relies on it: the password, the passkey, its counter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from strongroom import credentials, store
from strongroom.actions import passkeys, second_factors
from strongroom.credentials import TokenPair
from strongroom.errors import InvalidCredentials, InvalidPasskey, InvalidSecondFactor
from strongroom.model import Actor, Origin, PasskeyProof, Proof, RecoveryCodeProof, StoredPasskey
from strongroom.one_time_codes import SealedSecret
from strongroom.store import Database, Tx
from tests.kit.asynchronous import async_test
from tests.kit.clock import START
from tests.kit.servers.populated_database import rows_of

ANN, ORIGIN = Actor("ann"), Origin("192.0.2.1", "tests")
NEW = credentials.marked("new hash", second_factor=True)
RIGHT = RecoveryCodeProof("hash of a recovery code")
STALE = {
    "of the previous password": Proof(credentials.marked("old hash", second_factor=True), RIGHT),
    "of the previous password, before there was a second factor": Proof("old hash", None),
    "of this password, before there was a second factor": Proof("new hash", None),
}


async def begin_codes(tx: Tx, proof: Proof) -> None:
    await second_factors.begin(tx, ANN, proof, SealedSecret("key", "another secret"), ORIGIN)


async def disable_codes(tx: Tx, proof: Proof) -> None:
    await second_factors.disable(tx, ANN, proof, ORIGIN)


async def replace_recovery_codes(tx: Tx, proof: Proof) -> None:
    await second_factors.replace_recovery_codes(tx, ANN, proof, ["hash of another"], ORIGIN)


async def begin_passkey(tx: Tx, proof: Proof) -> None:
    await passkeys.begin_registration(tx, ANN, proof, "hash of a challenge", ORIGIN)


async def delete_passkey(tx: Tx, proof: Proof) -> None:
    await passkeys.delete(tx, ANN, "passkey", proof, ORIGIN)


async def set_up(tx: Tx, sign_count: int = 0) -> StoredPasskey:
    """Add an account with one-time codes, a recovery code and a passkey; the passkey."""
    passkey = StoredPasskey(ANN.user_id, "passkey", "credential", "public key", sign_count)
    await store.accounts.insert(tx, ANN.user_id, "ann@example.com", NEW)
    await store.second_factors.begin(tx, ANN.user_id, "key", "secret")
    assert await store.second_factors.confirm(tx, ANN.user_id, 1, tx.now)
    await store.second_factors.replace_recovery_codes(tx, ANN.user_id, [RIGHT.code_hash])
    assert await store.passkeys.insert(tx, passkey, "a key", prf=False)
    return passkey


@pytest.mark.parametrize("proof", STALE.values(), ids=STALE)
@pytest.mark.parametrize("change", [begin_codes, disable_codes, replace_recovery_codes, begin_passkey, delete_passkey])
@async_test
async def test_a_factor_cannot_outrun_a_change_of_password(
    open_db: Callable[[], Database], where: str, change: Callable[[Tx, Proof], Awaitable[None]], proof: Proof
) -> None:
    """No factor is added or taken away by a password that has changed since it was verified; no code is used up."""
    db = open_db()
    try:
        await db.write(set_up)
        before = await rows_of(where)
        with pytest.raises(InvalidCredentials):
            await db.write(change, proof)
        assert await rows_of(where) == before
        await db.write(change, Proof(NEW, RIGHT))
        assert await rows_of(where) != before
    finally:
        await db.close()


class Meanwhile(NamedTuple):
    """The counter of a passkey that was verified, the counter in its assertion, and what happens to it then."""

    stored: int
    asserted: int
    raised_to: int | None  # None: the passkey is deleted


MEANWHILE = {
    "deleted": Meanwhile(5, 6, None),
    "deleted, without a counter": Meanwhile(0, 0, None),
    "raised to the same": Meanwhile(5, 6, 6),
    "raised beyond": Meanwhile(5, 6, 9),
    "raised from nothing": Meanwhile(0, 0, 3),
}


async def log_in(tx: Tx, passkey: StoredPasskey, proof: PasskeyProof) -> None:
    pair = TokenPair("session", "access token", "refresh token", "jti", 2 * START, 2 * START, 2 * START)
    await passkeys.log_in(tx, passkey, proof, pair, ORIGIN, None)


async def use_as_second_factor(tx: Tx, passkey: StoredPasskey, proof: PasskeyProof) -> None:
    await second_factors.use_factor(tx, passkey.user_id, proof, ORIGIN)


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
@pytest.mark.parametrize(("use", "refusal"), [(log_in, InvalidPasskey), (use_as_second_factor, InvalidSecondFactor)])
@async_test
async def test_a_passkey_that_has_changed_since_it_was_verified(
    open_db: Callable[[], Database], where: str, use: Any, refusal: type[Exception], meanwhile: Meanwhile
) -> None:
    """Deleted, or used with the same counter or a later one: it opens no session, and is no second factor."""
    db, proof = open_db(), PasskeyProof("passkey", meanwhile.asserted)
    try:
        passkey = await db.write(set_up, meanwhile.stored)
        if meanwhile.raised_to is None:
            assert await db.write(store.passkeys.delete, ANN.user_id, "passkey")
        else:
            assert await db.write(store.passkeys.use, ANN.user_id, "passkey", meanwhile.raised_to)
        before = await rows_of(where)
        with pytest.raises(refusal):
            await db.write(use, passkey, proof)
        assert await rows_of(where) == before
    finally:
        await db.close()


@pytest.mark.parametrize(("stored", "asserted"), [(5, 6), (0, 1), (0, 0)])
@pytest.mark.parametrize("use", [log_in, use_as_second_factor])
@async_test
async def test_a_passkey_that_is_as_it_was_verified(
    open_db: Callable[[], Database], where: str, use: Any, stored: int, asserted: int
) -> None:
    """It is used, and its counter is stored."""
    db = open_db()
    try:
        passkey = await db.write(set_up, stored)
        await db.write(use, passkey, PasskeyProof("passkey", asserted))
        kept = await db.read(store.passkeys.by_credential, passkey.credential_id)
        assert kept is not None
        assert kept.sign_count == asserted
        assert len((await rows_of(where))["sessions"]) == (use is log_in)
    finally:
        await db.close()
