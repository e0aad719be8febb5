"""Operations on an account: register, log in, change the password, recover, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strongroom.client.errors import Locked, Tampered
from strongroom.client.format import account, derive, keyring
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.net import effects, requests
from strongroom.errors import (
    Conflict,
    Invalid,
    InvalidCredentials,
    InvalidRefreshToken,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from strongroom.model import User

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.wire.responses import Keyring as StoredKeyring
    from strongroom.wire.responses import SignedIn

_NO_KEYS: Final = "This server stores no keys. Either it is no strongroom server, or it is not to be trusted."
_WRONG_VERSION: Final = "The server calls a keyring by another version than its own."


def register(core: Core, email: str, password: str) -> Effects[User]:
    """Register an account, and open its first session."""
    email = derive.normal_email(email)
    core.lock()
    made = yield from effects.compute(lambda: account.register(email, password))
    call = requests.register(email, made.password.password, made.descriptor.spelled(), made.sealed)
    opened = yield from core.session.send_or_done(call)
    if opened is None:  # the answer to an earlier sending was lost: the account is ours if our password opens it
        opened = yield from core.session.send(requests.login(email, made.password.password))
    _start_session(core, email, opened)
    try:
        yield from _check_keyring_stored(core, made.sealed, made.keyring.version)
    except BaseException:
        core.lock()
        raise
    core.device.forget_account(email)
    _set_keyring(core, email, made.keyring, made.sealed, made.descriptor)
    return opened.user


def _check_keyring_stored(core: Core, sealed: str, version: int) -> Effects[None]:
    """Check that the server has stored the keyring, without which the account cannot be opened again."""
    try:
        stored = yield from core.session.send(requests.get_keyring())
    except (NotFound, MethodNotAllowed):
        raise Tampered(_NO_KEYS) from None
    _check_stored(stored, sealed, version)


def login(core: Core, email: str, password: str) -> Effects[User]:
    """Log in: open a session, and unlock the keyring."""
    email = derive.normal_email(email)
    core.lock()
    descriptor = yield from _descriptor(core, email)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    opened = yield from core.session.send(requests.login(email, keys.password))
    _start_session(core, email, opened)
    try:
        yield from _unlock(core, email, descriptor, lambda sealed: keyring.open_with_password(sealed, keys, descriptor))
    except BaseException:
        core.lock()
        raise
    return opened.user


def recover(core: Core, email: str, printed: str, new_password: str) -> Effects[User]:
    """Log in with the recovery key, and set a new password."""
    email = derive.normal_email(email)
    derive.check_new_password(new_password)
    key = RecoveryKey.read(printed)
    core.lock()
    descriptor = yield from _descriptor(core, email)
    try:
        secret = account.recovery_password(key, email, descriptor)
    except Tampered:
        raise InvalidCredentials("This recovery key does not open this account, or not any more.") from None
    opened = yield from core.session.send(requests.login(email, secret))
    _start_session(core, email, opened)
    try:
        yield from _unlock(core, email, descriptor, lambda sealed: keyring.open_with_recovery(sealed, key))
        yield from _rewrap(core, email, secret, new_password)
    except BaseException:
        core.lock()
        raise
    return opened.user


def change_password(core: Core, old: str, new: str) -> Effects[None]:
    """Change the password. Only the keyring is re-encrypted; every other session of the account ends."""
    email, descriptor = _unlocked(core)
    derive.check_new_password(new)
    keys = yield from effects.compute(lambda: derive.password_keys(email, old, descriptor))
    yield from effects.with_lock("keyring", _rewrap(core, email, keys.password, new))


def _rewrap(core: Core, email: str, secret: str, new: str) -> Effects[None]:
    yield from _reload(core)
    ring, descriptor = core.ring, core.descriptor
    if ring is None or descriptor is None:
        raise Locked
    made = yield from effects.compute(lambda: account.change_password(ring, email, new, descriptor))
    call = requests.change_password(
        secret, made.password.password, made.descriptor.spelled(), made.sealed, ring.version
    )
    done = yield from core.session.send_or_done(call)
    stored = yield from core.session.send(requests.get_keyring())
    if done is None and stored.keyring != made.sealed:
        raise InvalidCredentials  # the password was wrong each time that this was sent
    _check_stored(stored, made.sealed, made.keyring.version)
    _set_keyring(core, email, made.keyring, made.sealed, made.descriptor)


def set_recovery(core: Core, password: str) -> Effects[str]:
    """Create a recovery key, in its printed form. It replaces an earlier one."""
    email, descriptor = _unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    return (yield from effects.with_lock("keyring", _set_recovery(core, email, keys, descriptor)))


def _set_recovery(core: Core, email: str, keys: PasswordKeys, descriptor: Descriptor) -> Effects[str]:
    yield from _reload(core)
    ring = core.ring
    if ring is None:
        raise Locked
    key, made = account.set_recovery(ring, email, keys, descriptor)
    call = requests.put_keyring(made.sealed, ring.version, made.descriptor.spelled(), keys.password)
    stored = yield from core.session.send(call)
    _check_stored(stored, made.sealed, made.keyring.version)
    _set_keyring(core, email, made.keyring, made.sealed, made.descriptor)
    return key.printed()


def update_keyring(core: Core, change: Callable[[Keyring], Keyring | None]) -> Effects[None]:
    """Update the keyring with optimistic concurrency; `change` returns None if there is nothing to change."""
    yield from effects.with_lock("keyring", _update_keyring(core, change))


def _update_keyring(core: Core, change: Callable[[Keyring], Keyring | None]) -> Effects[None]:
    for _ in range(20):
        ring, descriptor, email = core.ring, core.descriptor, core.email
        if ring is None or descriptor is None or email is None:
            raise Locked
        made = change(ring)
        if made is None:
            return
        sealed = made.sealed()
        try:
            stored = yield from core.session.send(requests.put_keyring(sealed, ring.version))
        except Conflict:
            yield from _reload(core)
            continue
        _check_stored(stored, sealed, made.version)
        _set_keyring(core, email, made, sealed, descriptor)
        return
    raise Tampered("The server refuses every keyring as older than its own, and never shows a newer one.")


def reload(core: Core) -> Effects[None]:
    """Reload the keyring: another device may have changed it."""
    yield from effects.with_lock("keyring", _reload(core))


def _reload(core: Core) -> Effects[None]:
    keys, descriptor, email = core.keys, core.descriptor, core.email
    if keys is None or descriptor is None or email is None:
        raise Locked
    yield from _unlock(core, email, descriptor, lambda sealed: keyring.reopen(sealed, keys))


def restore_keyring(core: Core) -> Effects[None]:
    """Upload the directory of vaults to a server that was restored from a backup, above every version that was seen.

    What it has kept of the keyring itself stays: that is wrapped under the password that it knows.
    """
    yield from effects.with_lock("keyring", _restore_keyring(core))


def _restore_keyring(core: Core) -> Effects[None]:
    mine, descriptor, email = core.ring, core.descriptor, core.email
    if mine is None or descriptor is None or email is None:
        raise Locked
    stored = yield from core.session.send(requests.get_keyring())
    ring = keyring.reopen(stored.keyring, mine.keys)
    if ring.version != stored.version:
        raise Tampered(_WRONG_VERSION)
    sealed = stored.keyring
    while ring.version <= mine.version:
        made = ring.together(mine)
        sealed = made.sealed()
        stored = yield from core.session.send(requests.put_keyring(sealed, ring.version))
        _check_stored(stored, sealed, made.version)
        ring = made
    _set_keyring(core, email, ring, sealed, descriptor)


def logout(core: Core, *, everywhere: bool = False) -> Effects[None]:
    """Log out of this session, or of all; every key is forgotten, whatever the server responds."""
    try:
        yield from core.session.send_or_done(requests.logout(everywhere=everywhere))
    except (Unauthorized, InvalidRefreshToken, Locked):
        pass  # it has ended already
    finally:
        core.lock()


def delete(core: Core, password: str) -> Effects[None]:
    """Delete the account and everything in it."""
    email, descriptor = _unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    yield from core.session.send_or_done(requests.delete_account(keys.password))
    core.device.forget_account(email)
    core.lock()


def _descriptor(core: Core, email: str) -> Effects[Descriptor]:
    seen = core.device.account(email)
    try:
        response = yield from core.session.send(requests.prelogin(email))
    except (NotFound, MethodNotAllowed):
        raise Tampered(_NO_KEYS) from None
    return Descriptor.read(response.kdf, derive.FLOOR if seen is None else seen.floor)


def _start_session(core: Core, email: str, opened: SignedIn) -> None:
    try:
        theirs = derive.normal_email(opened.user.email)
    except Invalid:
        theirs = ""
    if theirs != email:
        raise Tampered("The server opened a session of another account.")
    core.session.begin(opened)
    core.email = email


def _unlock(core: Core, email: str, descriptor: Descriptor, open_: Callable[[str], Keyring]) -> Effects[None]:
    stored = yield from core.session.send(requests.get_keyring())
    ring = open_(stored.keyring)
    if ring.version != stored.version:
        raise Tampered(_WRONG_VERSION)
    _set_keyring(core, email, ring, stored.keyring, descriptor)


def _set_keyring(core: Core, email: str, ring: Keyring, sealed: str, descriptor: Descriptor) -> None:
    core.device.record_account(email, ring, sealed, descriptor)
    core.ring, core.keys, core.descriptor, core.sealed = ring, ring.keys, descriptor, sealed


def _check_stored(stored: StoredKeyring, sealed: str, version: int) -> None:
    if stored.keyring != sealed or stored.version != version:
        raise Tampered("The server did not keep the keyring that it was given.")


def _unlocked(core: Core) -> tuple[str, Descriptor]:
    if core.email is None or core.descriptor is None:
        raise Locked
    return core.email, core.descriptor
