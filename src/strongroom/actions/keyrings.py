"""Keyrings and key derivation descriptors of clients: stored here, never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import descriptors, keyring_head, store
from strongroom.actions import events, login_throttle, second_factors
from strongroom.errors import Invalid, InvalidCredentials, KeyringConflict, KeyringNotFound, VersionNotFound
from strongroom.model import EventType, Expected, StoredKeyring

if TYPE_CHECKING:
    from strongroom.descriptors import Kdf
    from strongroom.model import Actor, KeyringVersion, Origin, Proof
    from strongroom.store import Tx
    from strongroom.wire.requests import ChangePassword, PutKeyring


async def prelogin(tx: Tx, address: str, account: str, email: str) -> str | None:
    """The descriptor of an email, if there is one. Each request counts towards the throttle, whatever it returns."""
    await login_throttle.record_prelogin(tx, address, account)
    return await store.accounts.kdf_of(tx, email)


async def get(tx: Tx, actor: Actor) -> StoredKeyring:
    """The actor's keyring."""
    keyring = await store.keyrings.get(tx, actor.user_id)
    if keyring is None:
        raise KeyringNotFound
    return keyring


async def require_newest(tx: Tx, actor: Actor, version: int) -> None:
    """Refuse a write that was sealed with an older keyring than the stored one, which stays until commit."""
    stored = await store.keyrings.hold(tx, actor.user_id)
    if stored is not None and stored.version > version:
        raise KeyringConflict(stored.version, stored.updated_at)


async def put(
    tx: Tx, actor: Actor, wanted: PutKeyring, expected: Expected, proof: Proof | None, origin: Origin
) -> StoredKeyring:
    """Replace the keyring that the client saw; with a descriptor, also that of the password that was verified.

    `proof` is that of the password, if one was given. What opens the account changes only with it.
    """
    kdf = await store.accounts.lock(tx, actor.user_id)
    stored = await store.keyrings.get(tx, actor.user_id)
    new_kdf = kdf if wanted.kdf is None else descriptors.canonical_json(wanted.kdf)
    is_stored = stored is not None and (wanted.keyring, new_kdf) == (stored.keyring, kdf)
    if stored is not None and is_stored and expected.precedes(stored.version, wanted.new_version):
        return stored
    checked = None if proof is None else await second_factors.use(tx, actor.user_id, proof, origin)
    if checked is None and (stored is None or not _has_same_slots(stored.keyring, wanted.keyring)):
        if stored is not None and not expected.allows(stored.version):  # it is the client that has the older slots
            raise KeyringConflict(stored.version, stored.updated_at, precondition=expected.by_header)
        raise Invalid({"currentPassword": "is required: what opens the account changes"})
    if checked is not None and not await store.accounts.is_current(tx, actor.user_id, checked):
        raise InvalidCredentials
    version = await _replace(tx, actor.user_id, stored, wanted.keyring, expected, wanted.new_version)
    if wanted.kdf is not None and new_kdf is not None:
        if checked is None or not await store.accounts.change_kdf(tx, actor.user_id, checked, new_kdf):
            raise InvalidCredentials
        await events.record(tx, actor.user_id, EventType.KDF_CHANGED, origin)
    else:
        await events.record(tx, actor.user_id, EventType.KEYRING_CHANGED, origin)
    return StoredKeyring(wanted.keyring, version, tx.now, new_kdf)


async def rewrap(tx: Tx, actor: Actor, new_hash: str, wanted: ChangePassword) -> None:
    """Replace descriptor and keyring together with the password, in one transaction.

    An account that has them needs new ones: the old ones belong to the old password and would open nothing.
    """
    kdf = await store.accounts.lock(tx, actor.user_id)
    stored = await store.keyrings.get(tx, actor.user_id)
    missing: dict[str, str] = {}
    if wanted.kdf is None and kdf is not None:
        missing["kdf"] = "is required: this account has one, and it belongs to the password"
    if wanted.keyring is None and stored is not None:
        missing["keyring"] = "is required: this account has one, and it is wrapped under the password"
    if missing:
        raise Invalid(missing)
    if wanted.keyring is not None and wanted.keyring_version is not None:  # first: the descriptor is retained with it
        expected = Expected((wanted.keyring_version,))
        await _replace(tx, actor.user_id, stored, wanted.keyring, expected, wanted.keyring_new_version)
    if wanted.kdf is not None:
        await store.accounts.change_kdf(tx, actor.user_id, new_hash, descriptors.canonical_json(wanted.kdf))


async def store_first(tx: Tx, user_id: str, password_hash: str, kdf: Kdf | None, keyring: str | None) -> None:
    """Store the descriptor and the keyring of a new account."""
    if kdf is not None:
        await store.accounts.change_kdf(tx, user_id, password_hash, descriptors.canonical_json(kdf))
    if keyring is not None:
        await store.keyrings.insert(tx, user_id, keyring, 1)


async def versions(tx: Tx, actor: Actor) -> list[KeyringVersion]:
    """The keyrings that were replaced and are retained, newest first."""
    return await store.keyrings.versions(tx, actor.user_id)


async def version(tx: Tx, actor: Actor, number: int) -> StoredKeyring:
    """A keyring that was replaced."""
    found = await store.keyrings.version(tx, actor.user_id, number)
    if found is None:
        raise VersionNotFound
    return found


async def _replace(
    tx: Tx, user_id: str, stored: StoredKeyring | None, keyring: str, expected: Expected, new_version: int | None
) -> int:
    """Replace the stored keyring; its new version. Version 0 stands for no keyring yet."""
    if stored is None:
        new_version = new_version or 1
        if (
            expected.versions is not None
            and 0 in expected.versions
            and await store.keyrings.insert(tx, user_id, keyring, new_version)
        ):
            return new_version
        raise KeyringConflict(0, 0, precondition=expected.by_header)
    if not _has_same_account(stored.keyring, keyring):
        raise Invalid({"keyring": "must be of the same account as the stored one: the account id in it never changes"})
    new_version = new_version or stored.version + 1
    if (
        expected.allows(stored.version)
        and new_version > stored.version
        and await store.keyrings.replace(tx, user_id, stored.version, new_version, keyring)
    ):
        return new_version
    raise KeyringConflict(stored.version, stored.updated_at, precondition=expected.by_header)


def _has_same_account(stored: str, wanted: str) -> bool:
    before, after = keyring_head.read(stored), keyring_head.read(wanted)
    return before is None or (after is not None and before.account == after.account)


def _has_same_slots(stored: str, wanted: str) -> bool:
    """Whether what opens the account stays; of a keyring of another format nobody can tell."""
    before, after = keyring_head.read(stored), keyring_head.read(wanted)
    return before is not None and before == after
