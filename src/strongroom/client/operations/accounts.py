"""Operations on an account: register, log in, change the password, recover, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strongroom.client.errors import (
    CredentialsRolledBack,
    Locked,
    RolledBack,
    Tampered,
    WeakParameters,
    WrongServer,
)
from strongroom.client.format import account, derive, keyring, primitives
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.encoding import to_url
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.net import effects, requests
from strongroom.client.operations import saved_sessions
from strongroom.client.operations.device import EARLIER_KEYRINGS
from strongroom.client.operations.rollback import OLDER_KEYRING, TWO_KEYRINGS
from strongroom.errors import (
    Conflict,
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
    from strongroom.wire.responses import Keyring as Stored
    from strongroom.wire.responses import SignedIn

_NO_LOGIN: Final = "There is no login of strongroom at this address; check the URL, its path included."
_NO_KEYS: Final = "This server stores no keys. Either it is no strongroom server, or it is not to be trusted."
_WENT_ON: Final = (
    "After a restore from a backup the account went on without what this device has seen of it. Nothing was written. "
    "Sync a device first that has seen all; if there is none, export this replica and begin a new one."
)
_LESS_WORK: Final = (
    "The server asked for less work in the derivation of keys than this device has seen; the password was not used. If "
    "the server was restored from a backup of before that was raised, call change_password with restored=True."
)
_WRONG_DESCRIPTOR: Final = "The server's key-derivation descriptor is not the one that the keyring was sealed for."
_PERHAPS_TYPED: Final = (
    "The email or the password is wrong. If the operator of the server made this account and gave you its password, "
    "call `adopt_account` once, with that password and a new one of your own."
)
_UNSAID: Final = (
    "The server's directory of vaults lacks one that this device has seen, and nobody who has the keys said that it "
    "was deleted."
)
_WRONG_VERSION: Final = "The server calls a keyring by another version than its own."


def register(core: Core, email: str, password: str, invitation: str | None = None) -> Effects[User]:
    """Register an account, and open its first session."""
    email = derive.normal_email(email)
    core.lock()
    made = yield from effects.compute(lambda: account.register(email, password))
    call = requests.register(
        email, made.password.password, made.descriptor.spelled(), made.sealed, core.device_name, invitation
    )
    user = yield from _begin_registered(core, email, call, made.password.password)
    try:
        yield from _check_keyring_stored(core, made.sealed, made.keyring.version)
    except BaseException:
        core.lock()
        raise
    core.device.forget_account(email)
    yield from set_keyring(core, email, made.keyring, made.sealed, made.descriptor)
    return user


def _begin_registered(core: Core, email: str, call: requests.Call[SignedIn], password: str) -> Effects[User]:
    opened = yield from core.session.send_or_done(call)
    if opened is None:  # the answer to an earlier sending was lost: the account is ours if our password opens it
        try:
            opened = yield from core.session.send(requests.login(email, password, core.device_name))
        except InvalidCredentials:
            opened = yield from core.session.send(call)  # it is not: refused again, with the reason
    return core.begin(email, opened)


def _check_keyring_stored(core: Core, sealed: str, version: int) -> Effects[None]:
    """Check that the server has stored the keyring, without which the account cannot be opened again."""
    try:
        stored = yield from core.session.send(requests.get_keyring())
    except (NotFound, MethodNotAllowed):
        raise Tampered(_NO_KEYS) from None
    require_stored(stored, sealed, version)


def login(core: Core, email: str, password: str) -> Effects[User]:
    """Log in: open a session, and unlock the keyring."""
    email = derive.normal_email(email)
    core.lock()
    descriptor = yield from get_descriptor(core, email)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    try:
        user = yield from core.open_session(email, keys.password)
    except InvalidCredentials:
        if core.device.account(email) is not None:
            raise
        raise InvalidCredentials(_PERHAPS_TYPED) from None
    try:
        yield from _unlock(core, email, descriptor, lambda sealed: keyring.open_with_password(sealed, keys, descriptor))
        if descriptor.is_below_default:  # more work for whoever guesses, while the password is at hand
            yield from effects.with_lock("keyring", _set_password(core, email, keys.password, password))
    except BaseException:
        core.lock()
        raise
    return user


def recover(core: Core, email: str, printed: str, new_password: str) -> Effects[User]:
    """Log in with the recovery key, and set a new password."""
    email = derive.normal_email(email)
    derive.check_new_password(new_password)
    key = RecoveryKey.read(printed)
    core.lock()
    descriptor = yield from get_descriptor(core, email)
    try:
        secret = account.recovery_password(key, email, descriptor)
    except Tampered:
        raise InvalidCredentials("This recovery key does not open this account, or not any more.") from None
    user = yield from core.open_session(email, secret)
    try:
        yield from _unlock(core, email, descriptor, lambda sealed: keyring.open_with_recovery(sealed, key))
        yield from _set_password(core, email, secret, new_password)
    except BaseException:
        core.lock()
        raise
    return user


def change_password(core: Core, old: str, new: str, *, restored: bool) -> Effects[None]:
    """Another password. Nothing but the keyring is encrypted anew; every other session of the account ends.

    Whoever has had the account's keys still has them; `rotate_keys` ends that. `old` is the password that the server
    knows: after a restore from a backup, that may be an earlier one. `restored`: a person says that this is the case,
    so that the work of before is not taken for an attack.
    """
    email, descriptor = _unlocked(core)
    derive.check_new_password(new)
    stored = yield from get_descriptor(core, email, check=False)
    seen = core.device.account(email)
    if seen is not None and not restored and not stored.reaches(seen.floor):
        raise WeakParameters(_LESS_WORK)
    if stored.salt != descriptor.salt:
        descriptor = stored
    keys = yield from effects.compute(lambda: derive.password_keys(email, old, descriptor))
    if not core.session.is_open:  # unlocked with another password than the one that the server knows, perhaps
        yield from core.open_session(email, keys.password)
    yield from effects.with_lock("keyring", _set_password(core, email, keys.password, new))


def _set_password(core: Core, email: str, secret: str, new: str) -> Effects[None]:
    def prepare(ring: Keyring, descriptor: Descriptor) -> account.Prepared:
        return account.change_password(ring, email, new, descriptor)

    yield from _rewrap(core, email, secret, prepare)


def set_recovery(core: Core, password: str) -> Effects[str]:
    """A new recovery key, to be printed. One from before opens nothing any more."""
    email, descriptor = _unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    _require_password(core, keys)
    made: list[RecoveryKey] = []

    def prepare(ring: Keyring, descriptor: Descriptor) -> account.Prepared:
        key, prepared = account.set_recovery(ring, email, password, descriptor)
        made[:] = [key]
        return prepared

    yield from effects.with_lock("keyring", _rewrap(core, email, keys.password, prepare))
    return made[0].printed()


def remove_recovery(core: Core, password: str) -> Effects[None]:
    """No recovery key any more."""
    email, descriptor = _unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    _require_password(core, keys)

    def prepare(ring: Keyring, descriptor: Descriptor) -> account.Prepared:
        return account.remove_recovery(ring, email, password, descriptor)

    yield from effects.with_lock("keyring", _rewrap(core, email, keys.password, prepare))


def _rewrap(
    core: Core, email: str, secret: str, prepare: Callable[[Keyring, Descriptor], account.Prepared]
) -> Effects[None]:
    """Store another password's keyring, descriptor and auth key in one request.

    The keyring follows on the newest that this device has seen, also where a restored server has an older one.
    """
    stored = yield from _newest_keyring(core)
    ring, descriptor = core.ring, core.descriptor
    if ring is None or descriptor is None:
        raise Locked
    made = yield from effects.compute(lambda: prepare(ring, descriptor))
    call = requests.change_password(
        secret,
        made.password.password,
        made.descriptor.spelled(),
        made.sealed,
        stored.version,
        new_version=made.keyring.version,
    )
    done = yield from core.session.send_or_done(call)
    stored = yield from core.session.send(requests.get_keyring())
    if done is None and stored.keyring != made.sealed:
        raise InvalidCredentials  # the password was wrong each time that this was sent
    require_stored(stored, made.sealed, made.keyring.version)
    yield from set_keyring(core, email, made.keyring, made.sealed, made.descriptor)


def _newest_keyring(core: Core) -> Effects[Stored]:
    """The keyring as the server has it; a newer one than this device's is opened, an older one left alone."""
    stored = yield from core.session.send(requests.get_keyring())
    if core.ring is None or stored.version >= core.ring.version:
        yield from _reload(core, stored)
    else:
        _require_past(core, stored)
    return stored


def _require_past(core: Core, stored: Stored) -> None:
    """Refuse to replace a keyring that this device's does not follow on: a vault's key may be in that one alone."""
    if to_url(primitives.sha256(stored.keyring.encode())) not in core.device.past_keyrings(core.email or ""):
        raise RolledBack(_WENT_ON)


def rotate_keys(core: Core, keys: PasswordKeys, new: str | None) -> Effects[None]:
    """New keys of the next generation for the account and every vault. What is stored is not sealed anew here."""
    yield from effects.with_lock("keyring", _rotate_keys(core, keys, new))


def checked_password(core: Core, password: str) -> Effects[PasswordKeys]:
    """The keys of the password, if it opens the newest keyring."""
    email, descriptor = _unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    yield from reload(core)
    _require_password(core, keys)
    return keys


def _rotate_keys(core: Core, keys: PasswordKeys, new: str | None) -> Effects[None]:
    yield from _reload(core)
    ring, descriptor, email = core.ring, core.descriptor, core.email
    if ring is None or descriptor is None or email is None:
        raise Locked
    _require_password(core, keys)
    if new is not None:  # in one keyring: the keys of before are never sealed for the new password
        yield from _rewrap(core, email, keys.password, lambda ring, old: account.renew(ring, email, new, old))
        return
    made = yield from effects.compute(lambda: account.rotate(ring, keys, descriptor))
    stored = yield from core.session.send(
        requests.put_keyring(made.sealed, ring.version, made.keyring.version, password=keys.password)
    )
    require_stored(stored, made.sealed, made.keyring.version)
    yield from set_keyring(core, email, made.keyring, made.sealed, descriptor)


def update_keyring(core: Core, change: Callable[[Keyring], Keyring | None]) -> Effects[None]:
    """Update the keyring with optimistic concurrency; `change` returns None if there is nothing to change."""
    yield from effects.with_lock("keyring", _update_keyring(core, change))


def _update_keyring(core: Core, change: Callable[[Keyring], Keyring | None]) -> Effects[None]:
    for _ in range(20):
        ring, descriptor, email = core.ring, core.descriptor, core.email
        if ring is None or descriptor is None or email is None:
            raise Locked
        changed = change(ring)
        if changed is None:
            return
        sealed, made = keyring.seal(changed)
        try:
            stored = yield from core.session.send(requests.put_keyring(sealed, ring.version, made.version))
        except Conflict:
            yield from _reload(core)
            continue
        require_stored(stored, sealed, made.version)
        yield from set_keyring(core, email, made, sealed, descriptor)
        return
    raise Tampered("The server refuses every keyring as older than its own, and never shows a newer one.")


def reload(core: Core, stored: Stored | None = None) -> Effects[None]:
    """Reload the keyring, or take one that the server has sent: another device may have changed it."""
    yield from effects.with_lock("keyring", _reload(core, stored))


def _reload(core: Core, stored: Stored | None = None) -> Effects[None]:
    ring, descriptor, email = core.ring, core.descriptor, core.email
    if ring is None or descriptor is None or email is None:
        raise Locked
    if stored is None:
        stored = yield from core.session.send(requests.get_keyring())
    if keyring.account_of(stored.keyring) != ring.account:
        raise Tampered("The server sent the keyring of another account.")
    try:
        yield from _open_stored(core, email, descriptor, stored, lambda sealed: keyring.reopen(sealed, ring.key))
    except Tampered:
        if keyring.generation_of(stored.keyring) < ring.generation and stored.version < ring.version:
            raise RolledBack(OLDER_KEYRING) from None  # of before a rotation
        if keyring.generation_of(stored.keyring) <= ring.generation:
            raise
        raise Locked("The account's keys were rotated on another device; log in again.") from None


def restore_keyring(core: Core) -> Effects[None]:
    """Give a server that was restored from a backup the keyring again that this device has: the identical text.

    Where the server's password or recovery key is one of before, nothing is written.
    """
    yield from effects.with_lock("keyring", _restore_keyring(core))


def _restore_keyring(core: Core) -> Effects[None]:
    mine, sealed, descriptor = core.ring, core.sealed, core.descriptor
    if mine is None or sealed is None or descriptor is None or core.email is None:
        raise Locked
    stored = yield from core.session.send(requests.get_keyring())
    if stored.version >= mine.version:
        yield from _reload(core, stored)
        return
    theirs = yield from get_descriptor(core, core.email, check=False)
    same_slots = keyring.slots_of(stored.keyring) == keyring.slots_of(sealed)
    if keyring.account_of(stored.keyring) != mine.account or not same_slots or theirs != descriptor:
        raise CredentialsRolledBack
    _require_past(core, stored)
    repeated = yield from core.session.send(requests.put_keyring(sealed, stored.version, mine.version))
    require_stored(repeated, sealed, mine.version)


def logout(core: Core, *, everywhere: bool = False) -> Effects[None]:
    """Log out of this session, or of all; every key is forgotten, whatever the server responds."""
    saved = core.session.saved
    try:
        yield from core.session.send_or_done(requests.logout(everywhere=everywhere))
    except (Unauthorized, InvalidRefreshToken, Locked):
        pass  # it has ended already
    finally:
        core.lock()
        if saved is not None:
            yield from saved.delete()


def delete(core: Core, password: str) -> Effects[None]:
    """Delete the account and everything in it."""
    email, descriptor = _unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    yield from core.session.send_or_done(requests.delete_account(keys.password))
    saved = core.session.saved
    core.device.forget_account(email)
    core.lock()
    if saved is not None:
        yield from saved.delete()


def get_descriptor(core: Core, email: str, *, check: bool = True) -> Effects[Descriptor]:
    """The key-derivation descriptor that the server gives for an email."""
    seen = core.device.account(email) if check else None
    try:
        response = yield from core.session.send(requests.prelogin(email))
    except (NotFound, MethodNotAllowed):
        raise WrongServer(_NO_LOGIN) from None
    return Descriptor.read(response.kdf, derive.FLOOR if seen is None else seen.floor)


def _unlock(core: Core, email: str, descriptor: Descriptor, open_: Callable[[str], Keyring]) -> Effects[None]:
    stored = yield from core.session.send(requests.get_keyring())
    yield from _open_stored(core, email, descriptor, stored, open_)


def _open_stored(
    core: Core, email: str, descriptor: Descriptor, stored: Stored, open_: Callable[[str], Keyring]
) -> Effects[None]:
    ring = open_(stored.keyring)
    if ring.version != stored.version:
        raise Tampered(_WRONG_VERSION)
    seen = core.device.account(email)
    if seen is not None:
        yield from require_descent(core, email, ring, seen.version, seen.digest)
    if core.ring is not None:
        require_directory(core.ring, ring)
    if not ring.takes(descriptor):  # the password was changed on another device
        descriptor = yield from get_descriptor(core, email)
        if not ring.takes(descriptor):
            raise Tampered(_WRONG_DESCRIPTOR)
    yield from set_keyring(core, email, ring, stored.keyring, descriptor)


def require_directory(seen: Keyring, ring: Keyring) -> None:
    """Refuse a newer keyring that lacks a vault, or a key of one: only a key holder's word removes it."""
    if ring.version <= seen.version:
        return
    for entry in seen.vaults:
        now = ring.entry(entry.uid)
        if now is None and not ring.is_gone(entry.uid):
            raise RolledBack(_UNSAID)
        if now is not None and not set(entry.keys) <= set(now.keys):
            raise Tampered(TWO_KEYRINGS)


def require_descent(core: Core, email: str, ring: Keyring, seen: int, digest: str) -> Effects[None]:
    """Refuse a newer keyring that was made without knowing of the one of version `seen`, by its digest.

    Those between are read from the server, as far as it has kept them; beyond that there is nothing to compare, and the
    gap is counted.
    """
    previous, passed = ring.previous, []
    for version in range(ring.version - 1, seen, -1):
        try:
            kept = yield from core.session.send(requests.keyring_version(version))
        except NotFound:
            core.keyring_gaps += 1
            break
        if primitives.sha256(kept.keyring.encode()) != previous:
            raise Tampered(TWO_KEYRINGS)
        passed.append(to_url(previous))
        previous = keyring.previous_of(kept.keyring)
    else:
        if ring.version > seen and to_url(previous) != digest:
            raise Tampered(TWO_KEYRINGS)
    core.device.record_past_keyrings(email, [*reversed(passed), digest])


def read_past(core: Core) -> Effects[None]:
    """Remember the keyrings that the newest one follows on, as far as the server has kept them.

    A device that is new needs them after a restore: it replaces no keyring that its own does not follow on.
    """
    ring, email = core.ring, core.email
    if ring is None or email is None:
        raise Locked
    previous, passed = ring.previous, []
    for version in range(ring.version - 1, 0, -1)[:EARLIER_KEYRINGS]:
        passed.append(to_url(previous))
        try:
            kept = yield from core.session.send(requests.keyring_version(version))
        except NotFound:
            break
        if primitives.sha256(kept.keyring.encode()) != previous:
            break
        previous = keyring.previous_of(kept.keyring)
    core.device.record_past_keyrings(email, passed[::-1])


def set_keyring(core: Core, email: str, ring: Keyring, sealed: str, descriptor: Descriptor) -> Effects[None]:
    """Go on with this keyring, and remember it; refused where this device has seen another or a newer one."""
    core.device.record_account(email, ring, descriptor)
    is_new = sealed != core.sealed
    core.ring, core.descriptor, core.sealed = ring, descriptor, sealed
    for keep in core.on_keyring:
        keep()
    if is_new:
        yield from saved_sessions.update(core)


def require_stored(stored: Stored, sealed: str, version: int) -> None:
    """Refuse a keyring that is not the one that the server was given."""
    if stored.keyring != sealed or stored.version != version:
        raise Tampered("The server did not keep the keyring that it was given.")


def _require_password(core: Core, keys: PasswordKeys) -> None:
    """Refuse a wrong password before slots are sealed for it; a server may take any."""
    try:
        keyring.open_with_password(core.sealed or "", keys, _unlocked(core)[1])
    except Tampered:
        raise InvalidCredentials("The password is wrong.") from None


def _unlocked(core: Core) -> tuple[str, Descriptor]:
    if core.email is None or core.descriptor is None:
        raise Locked
    return core.email, core.descriptor
