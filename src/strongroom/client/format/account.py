"""What an account stores in one request: at registration, at a change of password, for recovery."""

from __future__ import annotations

from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import derive, keyring, primitives, recovery
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.passkey import PasskeyId, PasskeySecret
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
    """A new account: a fresh account key, sealed for the password."""
    derive.check_new_password(password)
    descriptor = Descriptor.new(random)
    keys = derive.password_keys(email, password, descriptor)
    return _opened(_prepared(Keyring.new(keys, descriptor, random), keys, descriptor, random))


def change_password(ring: Keyring, email: str, password: str, old: Descriptor, random: Random = system) -> Prepared:
    """Another password for the same account key. A recovery key goes on working, and the work is never made less."""
    derive.check_new_password(password)
    return _set_password(ring, email, password, old, random)


def rewrap(ring: Keyring, keys: PasswordKeys, descriptor: Descriptor, random: Random = system) -> Prepared:
    """The next keyring for the keys of a password that a server has stored already, with this descriptor."""
    return _opened(_prepared(ring.with_password(keys, descriptor, random), keys, descriptor, random))


def set_recovery(
    ring: Keyring, email: str, password: str, old: Descriptor, random: Random = system
) -> tuple[RecoveryKey, Prepared]:
    """A new recovery key. The password is set anew with it: one that was there before must not log in any more."""
    key = RecoveryKey.new(random)
    made = _set_password(ring.with_recovery(key, random), email, password, old, random)
    _require_open(keyring.open_with_recovery(made.sealed, key) == made.keyring)
    _require_open(primitives.equal(recovery.open_auth(key, email, made.descriptor), made.password.auth))
    return key, made


def remove_recovery(ring: Keyring, email: str, password: str, old: Descriptor, random: Random = system) -> Prepared:
    """No recovery key any more; the password is set anew, as for a new one."""
    return _set_password(ring.without_recovery(), email, password, old, random)


def add_passkey(
    ring: Keyring, keys: PasswordKeys, descriptor: Descriptor, secret: PasskeySecret, random: Random = system
) -> Prepared:
    """A passkey that opens the account besides; the password stays."""
    made = _opened(_prepared(ring.with_passkey(secret, random), keys, descriptor, random))
    _require_open(keyring.open_with_passkey(made.sealed, secret) == made.keyring)
    return made


def remove_passkey(
    ring: Keyring, keys: PasswordKeys, descriptor: Descriptor, passkey: PasskeyId, random: Random = system
) -> Prepared:
    """A passkey opens the account no more; the password stays."""
    return _opened(_prepared(ring.without_passkey(passkey), keys, descriptor, random))


def rotate(ring: Keyring, keys: PasswordKeys, descriptor: Descriptor, random: Random = system) -> Prepared:
    """New keys of the next generation for the account and every vault; the password stays."""
    return _opened(_prepared(ring.rotated(random), keys, descriptor, random))


def renew(ring: Keyring, email: str, password: str, old: Descriptor, random: Random = system) -> Prepared:
    """New keys of the next generation, and another password, in one keyring."""
    derive.check_new_password(password)
    return _set_password(ring.rotated(random), email, password, old, random)


def recovery_password(key: RecoveryKey, email: str, descriptor: Descriptor) -> str:
    """What to send as `password` when the password is lost; then open the keyring, and change the password."""
    return derive.spelled_auth(recovery.open_auth(key, email, descriptor))


def _set_password(ring: Keyring, email: str, password: str, old: Descriptor, random: Random) -> Prepared:
    descriptor = Descriptor.new(random, least=old.work)
    keys = derive.password_keys(email, password, descriptor)
    if ring.recovery is not None:
        descriptor = recovery.seal_auth(ring.recovery, email, descriptor, keys, random)
    return _opened(_prepared(ring.with_password(keys, descriptor, random), keys, descriptor, random))


def _opened(made: Prepared) -> Prepared:
    """The same, once its password has opened it: a slot that was sealed wrongly would shut its owner out."""
    _require_open(keyring.open_with_password(made.sealed, made.password, made.descriptor) == made.keyring)
    return made


def _require_open(is_open: bool) -> None:  # noqa: FBT001
    if not is_open:
        raise Tampered("What was sealed does not open again; nothing was sent.")


def _prepared(ring: Keyring, keys: PasswordKeys, descriptor: Descriptor, random: Random) -> Prepared:
    sealed, again = keyring.seal(ring, random, password=keys)
    return Prepared(password=keys, descriptor=descriptor, keyring=again, sealed=sealed)
