"""What an account stores in one request: at registration, at a change of password, for recovery."""

from __future__ import annotations

from msgspec import Struct

from strongroom.client.format import derive, recovery
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import AccountKey
from strongroom.client.format.primitives import Random
from strongroom.client.format.primitives import random as system
from strongroom.client.format.recovery import RecoveryKey


class Prepared(Struct, frozen=True, kw_only=True):
    """What a server is to store in one request, and the keys that go with it.

    `password.password`, `descriptor.spelled()` and `sealed` are sent; nothing else is.
    """

    password: PasswordKeys
    descriptor: Descriptor
    keyring: Keyring
    sealed: str

    def __repr__(self) -> str:
        return f"Prepared(version={self.keyring.version}, ...)"


def register(email: str, password: str, random: Random = system) -> Prepared:
    """A new account: a fresh account key, wrapped under the password."""
    derive.check_new_password(password)
    descriptor = Descriptor.new(random)
    keys = derive.password_keys(email, password, descriptor)
    ring = Keyring.new(AccountKey.new(random), keys, descriptor, random)
    return Prepared(password=keys, descriptor=descriptor, keyring=ring, sealed=ring.sealed(random))


def change_password(ring: Keyring, email: str, password: str, old: Descriptor, random: Random = system) -> Prepared:
    """Another password for the same account key. A recovery key goes on working, and the work is never made less."""
    derive.check_new_password(password)
    descriptor = Descriptor.new(random, memory=old.memory, passes=old.passes)
    keys = derive.password_keys(email, password, descriptor)
    if ring.recovery_auth is not None:
        descriptor = recovery.seal_auth(ring.recovery_auth, email, descriptor, keys, random)
    changed = ring.with_password(keys, descriptor, random)
    return Prepared(password=keys, descriptor=descriptor, keyring=changed, sealed=changed.sealed(random))


def set_recovery(
    ring: Keyring, email: str, keys: PasswordKeys, descriptor: Descriptor, random: Random = system
) -> tuple[RecoveryKey, Prepared]:
    """A new recovery key; one that was there before opens nothing that is stored from now on."""
    key = RecoveryKey.new(random)
    changed = ring.with_recovery(key, random)
    descriptor = recovery.seal_auth(key.auth(), email, descriptor, keys, random)
    return key, Prepared(password=keys, descriptor=descriptor, keyring=changed, sealed=changed.sealed(random))


def recovery_password(key: RecoveryKey, email: str, descriptor: Descriptor) -> str:
    """What to send as `password` when the password is lost; then open the keyring, and change the password."""
    return derive.spelled_auth(recovery.open_auth(key, email, descriptor))
