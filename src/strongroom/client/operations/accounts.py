"""Operations on an account: register, log in, change the password, recover, delete."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from strongroom.client.errors import Locked, Tampered, WeakParameters
from strongroom.client.format import account, derive, keyring
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.net import effects, requests
from strongroom.client.operations import factors, keyrings
from strongroom.client.operations.factors import FactorSource
from strongroom.errors import (
    InvalidCredentials,
    InvalidRefreshToken,
    MethodNotAllowed,
    NotFound,
    SecondFactorRequired,
    Unauthorized,
)
from strongroom.model import User

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.net.call import Call, Factor
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.wire.responses import SignedIn

_NO_KEYS: Final = "This server stores no keys. Either it is no strongroom server, or it is not to be trusted."
_LESS_WORK: Final = (
    "The server asked for less work in the derivation of keys than this device has seen; the password was not used. If "
    "the server was restored from a backup of before that was raised, call change_password with restored=True."
)
_PERHAPS_TYPED: Final = (
    "The email or the password is wrong. (If the operator of the server made this account, see `adopt_account`.)"
)


def register(core: Core, email: str, password: str, invitation: str | None = None) -> Effects[User]:
    """Register an account, and open its first session."""
    email = derive.normal_email(email)
    core.lock()
    made = yield from effects.compute(lambda: account.register(email, password))
    call = requests.accounts.register(
        email, made.password.password, made.descriptor.spelled(), made.sealed, core.device_name, invitation
    )
    user = yield from _begin_registered(core, email, call, made.password.password)
    try:
        yield from _check_keyring_stored(core, made.sealed, made.keyring.version)
    except BaseException:
        core.lock()
        raise
    core.device.forget_account(email)
    yield from keyrings.use(core, email, made.keyring, made.sealed, made.descriptor)
    return user


def _begin_registered(core: Core, email: str, call: Call[SignedIn], password: str) -> Effects[User]:
    opened = yield from core.session.send_or_done(call)
    if opened is None:  # the answer to an earlier sending was lost: the account is ours if our password opens it
        try:
            opened = yield from core.session.send(requests.accounts.login(email, password, core.device_name))
        except InvalidCredentials:
            opened = yield from core.session.send(call)  # it is not: refused again, with the reason
    return core.begin(email, opened)


def _check_keyring_stored(core: Core, sealed: str, version: int) -> Effects[None]:
    """Check that the server has stored the keyring, without which the account cannot be opened again."""
    try:
        stored = yield from core.session.send(requests.keyrings.get())
    except (NotFound, MethodNotAllowed):
        raise Tampered(_NO_KEYS) from None
    keyrings.require_stored(stored, sealed, version)


def login(core: Core, email: str, password: str, source: FactorSource) -> Effects[User]:
    """Log in: open a session, and unlock the keyring."""
    email = derive.normal_email(email)
    core.lock()
    is_known = core.device.account(email) is not None
    descriptor = yield from keyrings.get_descriptor(core, email)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    try:
        user = yield from core.open_session(email, keys.password, source)
    except InvalidCredentials:
        if is_known:
            raise
        raise InvalidCredentials(_PERHAPS_TYPED) from None
    try:
        yield from keyrings.unlock(
            core, email, descriptor, lambda sealed: keyring.open_with_password(sealed, keys, descriptor)
        )
        # More work for whoever guesses, while the password is at hand. A device that has not seen the account before
        # cannot know whether the server was restored just now: a change of slots would part it from the other devices.
        if is_known and descriptor.is_below_default:
            with suppress(SecondFactorRequired):  # nobody is asked for another code for this
                yield from _set_password(core, email, keys.password, password, FactorSource(None))
    except BaseException:
        core.lock()
        raise
    return user


def recover(core: Core, email: str, printed: str, new_password: str, source: FactorSource) -> Effects[User]:
    """Log in with the recovery key, and set a new password."""
    email = derive.normal_email(email)
    derive.check_new_password(new_password)
    key = RecoveryKey.read(printed)
    core.lock()
    descriptor = yield from keyrings.get_descriptor(core, email)
    try:
        secret = account.recovery_password(key, email, descriptor)
    except Tampered:
        raise InvalidCredentials("This recovery key does not open this account, or not any more.") from None
    user = yield from core.open_session(email, secret, source)
    try:
        yield from keyrings.unlock(core, email, descriptor, lambda sealed: keyring.open_with_recovery(sealed, key))
        yield from _set_password(core, email, secret, new_password, source)
    except BaseException:
        core.lock()
        raise
    return user


def change_password(core: Core, old: str, new: str, source: FactorSource, *, restored: bool) -> Effects[None]:
    """Another password. Nothing but the keyring is encrypted anew; every other session of the account ends.

    Whoever has had the account's keys still has them; `rotate_keys` ends that. `old` is the password that the server
    knows: after a restore from a backup, that may be an earlier one. `restored`: a person says that this is the case,
    so that the work of before is not taken for an attack.
    """
    email, descriptor = keyrings.unlocked(core)
    derive.check_new_password(new)
    stored = yield from keyrings.get_descriptor(core, email, check=False)
    seen = core.device.account(email)
    if seen is not None and not restored and not stored.reaches(seen.floor):
        raise WeakParameters(_LESS_WORK)
    if stored.salt != descriptor.salt:
        descriptor = stored
    keys = yield from effects.compute(lambda: derive.password_keys(email, old, descriptor))
    if not core.session.is_open:  # unlocked with another password than the one that the server knows, perhaps
        yield from core.open_session(email, keys.password, source)
    yield from _set_password(core, email, keys.password, new, source)


def _set_password(core: Core, email: str, secret: str, new: str, source: FactorSource) -> Effects[None]:
    def prepare(ring: Keyring, descriptor: Descriptor) -> account.Prepared:
        return account.change_password(ring, email, new, descriptor)

    yield from keyrings.rewrap(core, email, secret, prepare, source)


def set_recovery(core: Core, password: str, source: FactorSource) -> Effects[str]:
    """A new recovery key, to be printed. One from before opens nothing any more."""
    email, descriptor = keyrings.unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    keyrings.require_password(core, keys)
    made: list[RecoveryKey] = []

    def prepare(ring: Keyring, descriptor: Descriptor) -> account.Prepared:
        key, prepared = account.set_recovery(ring, email, password, descriptor)
        made[:] = [key]
        return prepared

    yield from keyrings.rewrap(core, email, keys.password, prepare, source)
    return made[0].printed()


def remove_recovery(core: Core, password: str, source: FactorSource) -> Effects[None]:
    """No recovery key any more."""
    email, descriptor = keyrings.unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    keyrings.require_password(core, keys)

    def prepare(ring: Keyring, descriptor: Descriptor) -> account.Prepared:
        return account.remove_recovery(ring, email, password, descriptor)

    yield from keyrings.rewrap(core, email, keys.password, prepare, source)


def logout(core: Core, *, everywhere: bool = False) -> Effects[None]:
    """Log out of this session, or of all; every key is forgotten, whatever the server responds."""
    saved = core.session.saved
    try:
        yield from core.session.send_or_done(requests.accounts.logout(everywhere=everywhere))
    except (Unauthorized, InvalidRefreshToken, Locked):
        pass  # it has ended already
    finally:
        core.lock()
        if saved is not None:
            yield from saved.delete()


def delete(core: Core, password: str, source: FactorSource) -> Effects[None]:
    """Delete the account and everything in it."""
    email, descriptor = keyrings.unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))

    def send(factor: Factor | None) -> Effects[Any]:
        return core.session.send_or_done(requests.accounts.delete(keys.password, factor))

    yield from factors.prove(core.session, source, send)
    saved = core.session.saved
    core.device.forget_account(email)
    core.lock()
    if saved is not None:
        yield from saved.delete()
