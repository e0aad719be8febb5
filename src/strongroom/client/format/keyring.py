"""The keyring: the account key, wrapped under the password and under the recovery key, and the directory of vaults.

    keyring = format (1) ‖ kind (1) ‖ account id (16) ‖ version (8) ‖ wrapped for password (112)
              ‖ wrapped for recovery (112) ‖ body, a box under the keyring key

The body's associated data is everything before it, so the server cannot join the parts of two keyrings. The directory
says which vault has which name: the server cannot show one vault under another's name, nor hide one.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import box, padding, primitives
from strongroom.client.format.derive import SEALED_KEY, Descriptor, PasswordKeys
from strongroom.client.format.encoding import (
    FORMAT,
    checked_name,
    checked_uid,
    checked_version,
    from_base64,
    is_version,
    items,
    label,
    number,
    to_base64,
)
from strongroom.client.format.keys import ACCOUNT, AccountKey
from strongroom.client.format.padding import Content
from strongroom.client.format.recovery import RecoveryKey
from strongroom.errors import Invalid, VaultAlreadyExists

KIND: Final = 4
MOST: Final = 262_144  # characters of a keyring
_HEAD: Final = 2 + ACCOUNT + 8 + 2 * SEALED_KEY
_UNREADABLE: Final = "The server's keyring was not made with your keys."


class VaultEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A vault in the directory: its uid, the name that people use, and whether that name is sealed on the wire."""

    uid: str
    name: str
    sealed: bool

    def __repr__(self) -> str:
        return f"VaultEntry(uid={self.uid!r}, ...)"


class _Body(Struct, frozen=True, forbid_unknown_fields=True):
    recovery: str | None
    vaults: list[VaultEntry]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Body).decode


class Keyring(Struct, frozen=True, kw_only=True):
    """An opened keyring. Changing it gives the next version of it; `sealed` gives what the server is to keep."""

    keys: AccountKey
    version: int
    for_password: bytes
    for_recovery: bytes
    recovery_auth: bytes | None
    vaults: tuple[VaultEntry, ...]

    @classmethod
    def new(
        cls,
        keys: AccountKey,
        password: PasswordKeys,
        descriptor: Descriptor,
        random: primitives.Random = primitives.random,
    ) -> Keyring:
        """The first version, for a new account."""
        return cls(
            keys=keys,
            version=1,
            for_password=_wrap(password.wrap, keys, _for_password(keys.account, descriptor), random),
            for_recovery=random(SEALED_KEY),  # looks like a wrapped key: the server cannot tell who has a recovery key
            recovery_auth=None,
            vaults=(),
        )

    def vault(self, name: str) -> VaultEntry | None:
        """Open the vault of this name."""
        return next((entry for entry in self.vaults if entry.name == name), None)

    def with_vault(self, uid: str, name: str, *, sealed: bool) -> Keyring:
        """The next version, in which this vault has this name."""
        uid = checked_uid(uid)
        others = [entry for entry in self.vaults if entry.uid != uid]
        if any(entry.name == name for entry in others):
            raise VaultAlreadyExists
        entry = VaultEntry(uid=uid, name=checked_name(name, "name"), sealed=sealed)
        return self._next(vaults=tuple(sorted([*others, entry], key=lambda entry: entry.uid)))

    def without_vault(self, uid: str) -> Keyring:
        """The next version, without this vault."""
        uid = checked_uid(uid)
        return self._next(vaults=tuple(entry for entry in self.vaults if entry.uid != uid))

    def together(self, other: Keyring) -> Keyring:
        """The next version, with the vaults of both. Of two vaults of one name, this one's gets another."""
        found = {entry.uid: entry for entry in other.vaults}
        taken = {entry.name for entry in other.vaults}
        for entry in self.vaults:
            if entry.uid not in found:
                name = entry.name
                while name in taken:
                    name = f"{name[:200]} (restored)"
                taken.add(name)
                found[entry.uid] = VaultEntry(uid=entry.uid, name=name, sealed=entry.sealed)
        return self._next(vaults=tuple(sorted(found.values(), key=lambda entry: entry.uid)))

    def with_password(
        self, password: PasswordKeys, descriptor: Descriptor, random: primitives.Random = primitives.random
    ) -> Keyring:
        """The next version, wrapped under another password. Nothing else is encrypted anew."""
        associated = _for_password(self.keys.account, descriptor)
        return self._next(for_password=_wrap(password.wrap, self.keys, associated, random))

    def with_recovery(self, recovery: RecoveryKey, random: primitives.Random = primitives.random) -> Keyring:
        """The next version, which this recovery key opens, and no other. `seal_auth` belongs with it."""
        wrapped = _wrap(recovery.wrap(), self.keys, _for_recovery(self.keys.account), random)
        return self._next(for_recovery=wrapped, recovery_auth=recovery.auth())

    def without_recovery(self, random: primitives.Random = primitives.random) -> Keyring:
        """The next version, which no recovery key opens."""
        return self._next(for_recovery=random(SEALED_KEY), recovery_auth=None)

    def sealed(self, random: primitives.Random = primitives.random) -> str:
        """What the server is to keep for this version. Send these same bytes again when an answer is lost."""
        kept = None if self.recovery_auth is None else to_base64(self.recovery_auth)
        body = padding.pad(Content(padding.JSON, _encode(_Body(recovery=kept, vaults=list(self.vaults)))))
        head = bytes([FORMAT, KIND]) + self.keys.account + number(checked_version(self.version))
        head += self.for_password + self.for_recovery
        sealed = to_base64(head + box.seal(self.keys.keyring(), random(primitives.KEY), body, _whole(head)))
        if len(sealed) > MOST:
            raise Invalid({"name": "the directory of vaults is full; use fewer vaults or shorter names"})
        if reopen(sealed, self.keys) != self:
            raise Tampered("What was sealed does not open again; nothing was sent.")
        return sealed

    def _next(self, **changes: object) -> Keyring:
        return msgspec.structs.replace(self, version=self.version + 1, **changes)

    def __repr__(self) -> str:
        return f"Keyring(version={self.version}, ...)"


def open_with_password(sealed: str, password: PasswordKeys, descriptor: Descriptor) -> Keyring:
    """The keyring, opened with the keys of a password. The descriptor is the one that these were derived with."""
    head, _ = _parts(sealed)
    account = head[2 : 2 + ACCOUNT]
    wrapped = head[-2 * SEALED_KEY : -SEALED_KEY]
    return reopen(sealed, _unwrap(password.wrap, wrapped, _for_password(account, descriptor)))


def open_with_recovery(sealed: str, recovery: RecoveryKey) -> Keyring:
    """The keyring, opened with the recovery key."""
    head, _ = _parts(sealed)
    account = head[2 : 2 + ACCOUNT]
    return reopen(sealed, _unwrap(recovery.wrap(), head[-SEALED_KEY:], _for_recovery(account)))


def reopen(sealed: str, keys: AccountKey) -> Keyring:
    """Open the keyring with the account key; raises Tampered if it is of another account."""
    head, body = _parts(sealed)
    version = int.from_bytes(head[2 + ACCOUNT : 10 + ACCOUNT], "big")
    if not primitives.equal(head[2 : 2 + ACCOUNT], keys.account) or not is_version(version):
        raise Tampered(_UNREADABLE)
    content = padding.unpad(box.open_(keys.keyring(), body, _whole(head)))
    kept, vaults = _directory(content)
    return Keyring(
        keys=keys,
        version=version,
        for_password=head[-2 * SEALED_KEY : -SEALED_KEY],
        for_recovery=head[-SEALED_KEY:],
        recovery_auth=kept,
        vaults=vaults,
    )


def _parts(sealed: str) -> tuple[bytes, bytes]:
    if len(sealed) > MOST:
        raise Tampered(_UNREADABLE)
    raw = from_base64(sealed)
    if len(raw) < _HEAD + box.OVERHEAD or raw[:2] != bytes([FORMAT, KIND]):
        raise Tampered("The server's keyring has a format that this client does not know.")
    return raw[:_HEAD], raw[_HEAD:]


def _directory(content: Content) -> tuple[bytes | None, tuple[VaultEntry, ...]]:
    try:
        body = _decode(content.data)
        for entry in body.vaults:
            if checked_uid(entry.uid) != entry.uid:
                raise Tampered(_UNREADABLE)
            checked_name(entry.name, "name")
    except (msgspec.MsgspecError, ValueError, RecursionError, Invalid):
        raise Tampered(_UNREADABLE) from None
    kept = None if body.recovery is None else from_base64(body.recovery)
    uids = [entry.uid for entry in body.vaults]
    names = {entry.name for entry in body.vaults}
    if content.kind != padding.JSON or uids != sorted(set(uids)) or len(names) != len(uids):
        raise Tampered(_UNREADABLE)
    if kept is not None and len(kept) != primitives.KEY:
        raise Tampered(_UNREADABLE)
    return kept, tuple(body.vaults)


def _whole(head: bytes) -> bytes:
    return items(label("keyring"), head)


def _for_password(account: bytes, descriptor: Descriptor) -> bytes:
    return items(label("wrap-password"), account, *descriptor.bound())


def _for_recovery(account: bytes) -> bytes:
    return items(label("wrap-recovery"), account)


def _wrap(key: bytes, keys: AccountKey, associated: bytes, random: primitives.Random) -> bytes:
    wrapped = box.seal(key, random(primitives.KEY), keys.key, associated)
    if _unwrap(key, wrapped, associated) != keys:
        raise Tampered("What was sealed does not open again; nothing was sent.")
    return wrapped


def _unwrap(key: bytes, wrapped: bytes, associated: bytes) -> AccountKey:
    return AccountKey.of(box.open_(key, wrapped, associated))  # 112 bytes of box hold 32
