"""The keyring: opened, replaced with optimistic concurrency, and compared with what this device has seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from strongroom.client.errors import CredentialsRolledBack, Locked, RolledBack, Tampered, WrongServer
from strongroom.client.format import account, derive, keyring, keyring_merge
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.encoding import from_url
from strongroom.client.net import effects, requests
from strongroom.client.operations import factors, rollback, saved_sessions
from strongroom.client.operations.rollback import OLDER_KEYRING, TWO_KEYRINGS
from strongroom.errors import (
    Conflict,
    InvalidCredentials,
    InvalidSecondFactor,
    KeyringConflict,
    MethodNotAllowed,
    NotFound,
)

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.net.call import Factor
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.factors import FactorSource
    from strongroom.wire.responses import Keyring as Stored

R = TypeVar("R")
Prepare: TypeAlias = "Callable[[Keyring, Descriptor], account.Prepared]"
_NO_LOGIN: Final = "There is no login of strongroom at this address; check the URL, its path included."
_WENT_ON: Final = (
    "After a restore from a backup the account went on without what this device has seen of it. Nothing was written. "
    "Sync a device first that has seen all; if there is none, call replica.export and begin a new replica."
)
_WRONG_DESCRIPTOR: Final = "The server's key-derivation descriptor is not the one that the keyring was sealed for."
_UNSAID: Final = (
    "The server's directory of vaults lacks one that this device has seen, and nobody who has the keys said that it "
    "was deleted."
)
NO_NEWER: Final = "The server refuses every keyring as older than its own, and never shows a newer one."
_WRONG_VERSION: Final = "The server calls a keyring by another version than its own."


def get_descriptor(core: Core, email: str, *, check: bool = True) -> Effects[Descriptor]:
    """The key-derivation descriptor that the server gives for an email."""
    seen = core.device.account(email) if check else None
    try:
        response = yield from core.session.send(requests.accounts.prelogin(email))
    except (NotFound, MethodNotAllowed):
        raise WrongServer(_NO_LOGIN) from None
    return Descriptor.read(response.kdf, derive.FLOOR if seen is None else seen.floor)


def unlocked(core: Core) -> tuple[str, Descriptor]:
    """The email and the descriptor of the account, if somebody has logged in."""
    if core.email is None or core.descriptor is None:
        raise Locked
    return core.email, core.descriptor


def require_password(core: Core, keys: PasswordKeys) -> None:
    """Refuse a wrong password before slots are sealed for it; a server may take any."""
    try:
        keyring.open_with_password(core.sealed or "", keys, unlocked(core)[1])
    except Tampered:
        raise InvalidCredentials("The password is wrong.") from None


def checked_password(core: Core, password: str) -> Effects[PasswordKeys]:
    """The keys of the password, if it opens the newest keyring. A wrong one is not sent."""
    email, descriptor = unlocked(core)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    yield from reload(core)
    require_password(core, keys)
    return keys


def unlock(core: Core, email: str, descriptor: Descriptor, open_: Callable[[str], Keyring]) -> Effects[None]:
    """Get the keyring, and open it with the password or the recovery key."""
    stored = yield from core.session.send(requests.keyrings.get())
    yield from _open_stored(core, email, descriptor, stored, open_)


def reload(core: Core, stored: Stored | None = None) -> Effects[None]:
    """Reload the keyring, or take one that the server has sent: another device may have changed it."""
    yield from effects.with_lock("keyring", _reload(core, stored))


def _reload(core: Core, stored: Stored | None = None) -> Effects[None]:
    ring, descriptor, email = core.ring, core.descriptor, core.email
    if ring is None or descriptor is None or email is None:
        raise Locked
    if stored is None:
        stored = yield from core.session.send(requests.keyrings.get())
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


def _open_stored(
    core: Core, email: str, descriptor: Descriptor, stored: Stored, open_: Callable[[str], Keyring]
) -> Effects[None]:
    ring = open_(stored.keyring)
    if ring.version != stored.version:
        raise Tampered(_WRONG_VERSION)
    seen = core.device.account(email)
    if seen is not None:
        count_gap(core, ring, seen.version, from_url(seen.digest))
    if core.ring is not None:
        require_directory(core.ring, ring)
    if not ring.takes(descriptor):  # the password was changed on another device
        descriptor = yield from get_descriptor(core, email)
        if not ring.takes(descriptor):
            raise Tampered(_WRONG_DESCRIPTOR)
    yield from use(core, email, ring, stored.keyring, descriptor)


def require_one(core: Core) -> None:
    """Refuse to go on where the server has shown a keyring that does not follow on the one in use."""
    if core.forked:
        raise Tampered(TWO_KEYRINGS)


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
        if now is not None and now.floor < entry.floor:
            raise Tampered(TWO_KEYRINGS)


def count_gap(core: Core, ring: Keyring, seen: int, digest: bytes) -> None:
    """Count a keyring that does not say whether it follows on the one of version `seen`; refuse one that does not."""
    if ring.version > seen and rollback.is_gap(ring, seen, digest):
        core.gaps.add(ring.version)


def with_newest(core: Core, write: Callable[[], Effects[R]]) -> Effects[R]:
    """Write something that is sealed; anew, where the server has a newer keyring than the one that it was sealed with.

    A key may have been rotated: nothing is stored under the one of before, however late it arrives.
    """
    for _ in range(20):
        try:
            return (yield from write())
        except KeyringConflict:
            yield from reload(core)
    raise Tampered(NO_NEWER)


def use(core: Core, email: str, ring: Keyring, sealed: str, descriptor: Descriptor) -> Effects[None]:
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


def update(core: Core, change: Callable[[Keyring], Keyring | None]) -> Effects[None]:
    """Update the keyring with optimistic concurrency; `change` returns None if there is nothing to change."""
    yield from effects.with_lock("keyring", _update(core, change))


def _update(core: Core, change: Callable[[Keyring], Keyring | None]) -> Effects[None]:
    for _ in range(20):
        ring, descriptor, email = core.ring, core.descriptor, core.email
        if ring is None or descriptor is None or email is None:
            raise Locked
        changed = change(ring)
        if changed is None:
            return
        sealed, made = keyring.seal(changed)
        try:
            stored = yield from core.session.send(requests.keyrings.put(sealed, ring.version, made.version))
        except Conflict:
            yield from _reload(core)
            continue
        require_stored(stored, sealed, made.version)
        yield from use(core, email, made, sealed, descriptor)
        return
    raise Tampered(NO_NEWER)


def rewrap(core: Core, email: str, secret: str, prepare: Prepare, source: FactorSource) -> Effects[None]:
    """Store another password's keyring, descriptor and auth key in one request.

    The keyring follows on the newest that this device has seen, also where a restored server has an older one.
    """
    yield from effects.with_lock("keyring", _rewrap(core, email, secret, prepare, source))


def _rewrap(core: Core, email: str, secret: str, prepare: Prepare, source: FactorSource) -> Effects[None]:
    stored = yield from _newest(core)
    ring, descriptor = core.ring, core.descriptor
    if ring is None or descriptor is None:
        raise Locked
    made = yield from effects.compute(lambda: prepare(ring, descriptor))
    replaced = stored.version

    def send(factor: Factor | None) -> Effects[Any]:
        call = requests.accounts.change_password(
            secret,
            made.password.password,
            made.descriptor.spelled(),
            made.sealed,
            replaced,
            new_version=made.keyring.version,
            factor=factor,
        )
        return core.session.send_or_done(call)

    done = yield from factors.prove(core.session, source, send)
    stored = yield from core.session.send(requests.keyrings.get())
    if done is None and stored.keyring != made.sealed:
        raise InvalidCredentials  # the password was wrong each time that this was sent
    require_stored(stored, made.sealed, made.keyring.version)
    yield from use(core, email, made.keyring, made.sealed, made.descriptor)


def _newest(core: Core) -> Effects[Stored]:
    """The keyring as the server has it; a newer one than this device's is opened, an older one left alone."""
    stored = yield from core.session.send(requests.keyrings.get())
    if core.ring is None or stored.version >= core.ring.version:
        yield from _reload(core, stored)
    else:
        _require_past(core, stored)
    return stored


def _require_past(core: Core, stored: Stored) -> None:
    """Refuse to replace a keyring that this device's does not follow on: a vault's key may be in that one alone."""
    if not core.keyring().follows_on(stored.version, keyring.digest_of(stored.keyring)):
        raise RolledBack(_WENT_ON)


def rotate(core: Core, keys: PasswordKeys, new: str | None, source: FactorSource) -> Effects[None]:
    """New keys of the next generation for the account and every vault. What is stored is not sealed anew here."""
    yield from effects.with_lock("keyring", _rotate(core, keys, new, source))


def _rotate(core: Core, keys: PasswordKeys, new: str | None, source: FactorSource) -> Effects[None]:
    yield from _reload(core)
    ring, descriptor, email = core.ring, core.descriptor, core.email
    if ring is None or descriptor is None or email is None:
        raise Locked
    require_password(core, keys)
    if new is not None:  # in one keyring: the keys of before are never sealed for the new password
        yield from _rewrap(core, email, keys.password, lambda ring, old: account.renew(ring, email, new, old), source)
        return
    made = yield from effects.compute(lambda: account.rotate(ring, keys, descriptor))
    yield from _put_slots(core, made, ring.version, source)


def _put_slots(core: Core, made: account.Prepared, replaced: int, source: FactorSource) -> Effects[None]:
    """Store a keyring with other slots for the same password."""
    version, password = made.keyring.version, made.password.password

    def send(factor: Factor | None) -> Effects[Stored | None]:
        call = requests.keyrings.put(made.sealed, replaced, version, password=password, factor=factor)
        return core.session.send_or_done(call)

    stored = yield from factors.prove(core.session, source, send)
    if stored is None:  # an earlier attempt, whose response was lost, has used the second factor up
        stored = yield from core.session.send(requests.keyrings.get())
        if stored.keyring != made.sealed:
            raise InvalidSecondFactor
    require_stored(stored, made.sealed, version)
    yield from use(core, core.email or "", made.keyring, made.sealed, made.descriptor)


def change_slots(core: Core, keys: PasswordKeys, prepare: Prepare, source: FactorSource) -> Effects[None]:
    """Store another set of ways into the account; the password, whose keys these are, stays."""
    yield from effects.with_lock("keyring", _change_slots(core, keys, prepare, source))


def _change_slots(core: Core, keys: PasswordKeys, prepare: Prepare, source: FactorSource) -> Effects[None]:
    yield from _reload(core)
    ring, descriptor = core.ring, core.descriptor
    if ring is None or descriptor is None:
        raise Locked
    require_password(core, keys)
    made = yield from effects.compute(lambda: prepare(ring, descriptor))
    yield from _put_slots(core, made, ring.version, source)


def restore(core: Core) -> Effects[None]:
    """Give a server that was restored from a backup the keyring again that this device has: the identical text.

    Where another device went on after the restore, both keyrings are merged. Where the server's password or recovery
    key is one of before, nothing is written.
    """
    for _ in range(20):
        try:
            yield from effects.with_lock("keyring", _restore(core))
        except Conflict:  # another device was quicker
            continue
        return
    raise Tampered(NO_NEWER)


def _restore(core: Core) -> Effects[None]:
    mine, sealed, descriptor = core.ring, core.sealed, core.descriptor
    if mine is None or sealed is None or descriptor is None or core.email is None:
        raise Locked
    stored = yield from core.session.send(requests.keyrings.get())
    theirs = yield from get_descriptor(core, core.email, check=False)
    same_slots = keyring.slots_of(stored.keyring) == keyring.slots_of(sealed)
    same = keyring.account_of(stored.keyring) == mine.account and same_slots and theirs == descriptor
    forked = keyring.reopen(stored.keyring, mine.key) if same else None
    if forked is not None and not _are_forked(mine, forked):
        forked = None
    if forked is None and stored.version >= mine.version:
        yield from _reload(core, stored)
        core.forked = False
        return
    if not same:
        raise CredentialsRolledBack
    if forked is not None:
        yield from _merge(core, core.email, mine, forked, descriptor)
        return
    _require_past(core, stored)
    repeated = yield from core.session.send(requests.keyrings.put(sealed, stored.version, mine.version))
    require_stored(repeated, sealed, mine.version)


def _are_forked(one: Keyring, other: Keyring) -> bool:
    older, newer = sorted([one, other], key=lambda ring: ring.version)
    if older.version == newer.version:
        return older.digest != newer.digest
    return newer.follows_on(older.version, older.digest) is False


def _merge(core: Core, email: str, mine: Keyring, theirs: Keyring, descriptor: Descriptor) -> Effects[None]:
    """Store a keyring that follows on both: of two that were made without knowing of each other after a restore."""
    try:
        merged = keyring_merge.merge(mine, theirs)
    except Tampered:
        raise RolledBack(_WENT_ON) from None
    sealed, made = keyring.seal(merged)
    stored = yield from core.session.send(requests.keyrings.put(sealed, theirs.version, made.version))
    require_stored(stored, sealed, made.version)
    core.forked = False
    yield from use(core, email, made, sealed, descriptor)
