"""The keyring: the account key, sealed for each way in, and the directory of vaults with their keys.

    keyring = head ‖ body, a box under the keyring key whose associated data is the head
    head    = format (1) ‖ kind (1) ‖ account id (16) ‖ version (8) ‖ generation (4) ‖ previous (32)
              ‖ number of slots (1) ‖ bytes of a slot (2) ‖ eight slots

The server cannot join the parts of two keyrings, cannot tell used slots from unused ones, and cannot show one vault
under another's name, nor hide one.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.client.errors import Locked, Tampered, Unsupported
from strongroom.client.format import box, keyring_body, padding, primitives, public_box
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.encoding import (
    FORMAT,
    PARENT,
    check_format,
    checked_name,
    checked_uid,
    checked_version,
    from_base64,
    generation_bytes,
    is_generation,
    is_version,
    items,
    label,
    number,
    to_base64,
    to_url,
)
from strongroom.client.format.keyring_body import (
    FLOOR,
    MOST_GONE,
    MOST_PAST,
    PASSKEY,
    PASSWORD,
    RECOVERY,
    SLOT_ID,
    SLOTS,
    UNREADABLE,
    Body,
    Gone,
    Identity,
    Slot,
    StorageSeed,
    VaultEntry,
)
from strongroom.client.format.keys import ACCOUNT, VaultKeys, derive, keyring_key
from strongroom.client.format.passkey import PasskeyId, PasskeySecret
from strongroom.client.format.primitives import KEY, Random
from strongroom.client.format.public_box import KeyPair
from strongroom.client.format.recovery import RecoveryKey
from strongroom.errors import Invalid, VaultAlreadyExists

KIND: Final = 4
MOST: Final = 262_144  # characters of a keyring
_SLOT: Final = 4 + KEY + public_box.OVERHEAD
_ID: Final = slice(2, 2 + ACCOUNT)
_VERSION: Final = slice(_ID.stop, _ID.stop + 8)
_GENERATION: Final = slice(_VERSION.stop, _VERSION.stop + 4)
_PREVIOUS: Final = slice(_GENERATION.stop, _GENERATION.stop + KEY)
_COUNT: Final = _PREVIOUS.stop
_SIZE: Final = slice(_COUNT + 1, _COUNT + 3)
_SLOTS: Final = slice(_SIZE.stop, _SIZE.stop + SLOTS * _SLOT)
_HEAD: Final = _SLOTS.stop
_NO_PREVIOUS: Final = bytes(KEY)
_UNKNOWN: Final = "The server's keyring has a format that this client does not know."
_AGAIN: Final = "What was sealed does not open again; nothing was sent."


class Keyring(Body, frozen=True, kw_only=True):
    """An opened keyring. Changing it gives the next version of it; `seal` gives what the server is to store."""

    key: bytes
    generation: int
    version: int
    previous: bytes  # SHA-256 of the keyring before
    sealed_slots: bytes  # as they are stored; empty where they are to be made anew
    digest: bytes  # SHA-256 of this keyring; empty until it is sealed

    @classmethod
    def new(cls, password: PasswordKeys, descriptor: Descriptor, random: Random = primitives.random) -> Keyring:
        """The first version, for a new account."""
        account = random(ACCOUNT)
        ring = cls(
            account=account,
            key=primitives.SecretBytes(random(KEY)),
            generation=1,
            version=1,
            previous=_NO_PREVIOUS,
            sealed_slots=b"",
            digest=b"",
            slots=(),
            recovery=None,
            identity=(Identity(generation=1, sign=random(KEY), agree=random(KEY)),),
            storage=(_storage_seed(1, random),),
            vaults=(),
            gone=(),
            past=(),
            merged=(),
        )
        return ring._with_slot(PASSWORD, password.wrap, password_slot(account, descriptor), random)

    # The directory

    def vault(self, name: str) -> VaultEntry | None:
        """Open the vault of this name."""
        return next((entry for entry in self.vaults if entry.name == name), None)

    def entry(self, uid: str) -> VaultEntry | None:
        """The vault with this uid."""
        return next((entry for entry in self.vaults if entry.uid == uid), None)

    def is_gone(self, uid: str) -> bool:
        """Whether a key holder deleted this vault."""
        return any(gone.uid == uid for gone in self.gone)

    def identity_checks(self) -> list[str]:
        """What a device remembers an identity by, of each generation: a newer keyring must hold it still."""
        parts = [(number(one.generation), one.sign, one.agree) for one in self.identity]
        return [to_url(primitives.sha256(items(label("identity-check"), self.account, *each))) for each in parts]

    def follows_on(self, version: int, digest: bytes) -> bool | None:
        """Whether this keyring was made knowing of an earlier one, by its version and SHA-256; None: too long ago."""
        before = self.version - version
        if before > len(self.past):
            return None
        if any(one.version == version and one.digest == digest[:PARENT] for one in self.merged):
            return True
        return before > 0 and self.past[-before] == digest[:PARENT]

    def storage_key(self, purpose: str, *parts: bytes, generation: int | None = None) -> bytes:
        """The key that seals what a device stores for a purpose: of the newest generation, or of an earlier one."""
        wanted = self.generation if generation is None else generation
        for one in self.storage:
            if one.generation == wanted:
                return derive(one.seed, purpose, *parts)
        raise Tampered(UNREADABLE)

    def vault_keys(self, entry: VaultEntry) -> VaultKeys:
        """The keys of a vault, of all generations."""
        return VaultKeys.build(self.account, entry.uid, list(entry.keys), keyring=self.version, floor=entry.floor)

    def with_vault(self, uid: str, name: str, *, sealed: bool, random: Random = primitives.random) -> Keyring:
        """The next version, with a new vault that is not made on the server yet."""
        entry = VaultEntry(
            uid=checked_uid(uid),
            name=checked_name(name, "name"),
            sealed=sealed,
            made=False,
            floor=1,
            keys=((1, primitives.SecretBytes(random(KEY))),),
        )
        if self.vault(name) is not None or self.entry(entry.uid) is not None:
            raise VaultAlreadyExists
        return self._next(
            vaults=_sorted([*self.vaults, entry]), gone=tuple(gone for gone in self.gone if gone.uid != entry.uid)
        )

    def with_entry(self, uid: str, **changes: Any) -> Keyring:
        """The next version, with another name of this vault, or with its being made."""
        entry = self.entry(checked_uid(uid))
        if entry is None:
            raise Invalid({"uid": "must be a vault of the directory"})
        changed = msgspec.structs.replace(entry, **changes)
        if any(other.name == checked_name(changed.name, "name") and other.uid != entry.uid for other in self.vaults):
            raise VaultAlreadyExists
        return self._next(vaults=_sorted([changed, *(other for other in self.vaults if other is not entry)]))

    def with_directory(self, vaults: list[VaultEntry]) -> Keyring:
        """The next version, with these vaults and no others."""
        uids = {entry.uid for entry in vaults}
        return self._next(vaults=_sorted(vaults), gone=tuple(gone for gone in self.gone if gone.uid not in uids))

    def without_vault(self, uid: str) -> Keyring:
        """The next version, in which this vault is gone and its keys with it."""
        uid = checked_uid(uid)
        return self._next(
            vaults=tuple(entry for entry in self.vaults if entry.uid != uid),
            gone=latest_gone([*self.gone, Gone(uid=uid, version=self._next_version)]),
        )

    # The ways in

    def with_password(
        self, password: PasswordKeys, descriptor: Descriptor, random: Random = primitives.random
    ) -> Keyring:
        """The next version, for another password. Nothing else is encrypted anew."""
        return self._with_slot(PASSWORD, password.wrap, password_slot(self.account, descriptor), random)

    def with_recovery(self, recovery: RecoveryKey, random: Random = primitives.random) -> Keyring:
        """The next version, which this recovery key opens, and no other. `seal_auth` belongs with it."""
        ring = self._with_slot(RECOVERY, recovery.wrap(), recovery_slot(self.account), random)
        return msgspec.structs.replace(ring, recovery=recovery.auth().public)

    def without_recovery(self) -> Keyring:
        """The next version, which no recovery key opens."""
        others = tuple(slot for slot in self.slots if slot.type != RECOVERY)
        return self._next(slots=others, recovery=None, sealed_slots=b"")

    def passkeys(self) -> tuple[PasskeyId, ...]:
        """The passkeys that open this keyring."""
        return tuple(PasskeyId.of_slot(slot.associated, self.account) for slot in self.slots if slot.type == PASSKEY)

    def with_passkey(self, secret: PasskeySecret, random: Random = primitives.random) -> Keyring:
        """The next version, which this passkey opens too."""
        return self._with_slot(PASSKEY, secret.wrap(self.account), secret.passkey.slot(self.account), random)

    def without_passkey(self, passkey: PasskeyId) -> Keyring:
        """The next version, which this passkey does not open."""
        associated = passkey.slot(self.account)
        others = tuple(slot for slot in self.slots if slot.type != PASSKEY or slot.associated != associated)
        return self._next(slots=others, sealed_slots=b"")

    def takes(self, descriptor: Descriptor) -> bool:
        """Whether the password's slot was sealed for this descriptor."""
        associated = password_slot(self.account, descriptor)
        return any(slot.type == PASSWORD and slot.associated == associated for slot in self.slots)

    def _with_slot(self, kind: str, secret: bytes, associated: bytes, random: Random) -> Keyring:
        many = kind == PASSKEY  # one for each credential; of the other types there is one
        others = [slot for slot in self.slots if slot.type != kind or (many and slot.associated != associated)]
        free = [place for place in range(SLOTS) if place not in {slot.slot for slot in others}]
        if not free:
            raise Invalid({"slot": "cannot be added: all eight ways into this account are taken; remove one first"})
        place = free[int.from_bytes(random(4), "big") % len(free)]
        public = None if kind == PASSWORD else KeyPair.of(secret).public
        made = Slot(slot=place, type=kind, id=random(SLOT_ID), public=public, associated=associated)
        slots = tuple(sorted([*others, made], key=lambda slot: slot.slot))
        return self._next(slots=slots, sealed_slots=b"")

    # Rotation

    def rotated(self, random: Random = primitives.random) -> Keyring:
        """The next version, with keys of the next generation for the account, its identity, storage and each vault.

        No passkey opens it: its slot could be sealed without the authenticator, and by whoever has read this keyring.
        """
        last = self.identity[-1].generation
        identity = Identity(generation=last + 1, sign=random(KEY), agree=random(KEY))
        storage = _storage_seed(last + 1, random)
        return self._next(
            key=primitives.SecretBytes(random(KEY)),
            generation=self.generation + 1,
            sealed_slots=b"",
            slots=tuple(slot for slot in self.slots if slot.type != PASSKEY),
            identity=(*self.identity, identity),
            storage=(*self.storage, storage),
            vaults=tuple(_rotated(entry, random) for entry in self.vaults),
        )

    def with_rotated_vault(self, uid: str, random: Random = primitives.random) -> Keyring:
        """The next version, with a key of the next generation for one vault."""
        entry = self.entry(checked_uid(uid))
        if entry is None:
            raise Invalid({"uid": "must be a vault of the directory"})
        return self.with_entry(uid, keys=_rotated(entry, random).keys)

    def with_floors(self, floors: dict[str, int]) -> Keyring | None:
        """The next version, with these floors of vaults by uid; none is ever lowered. None: nothing changes."""
        raised = tuple(_with_floor(entry, floors.get(entry.uid, 1)) for entry in self.vaults)
        if raised == self.vaults:
            return None
        return self._next(vaults=raised, must=self.must if FLOOR in self.must else (*self.must, FLOOR))

    @property
    def _next_version(self) -> int:
        """The version after a change: changes of what is not sealed yet are one."""
        return self.version + bool(self.digest)

    def _next(self, **changes: Any) -> Keyring:
        version, previous, past = self._next_version, self.previous, self.past
        if self.digest:
            previous, past = self.digest, (*past, self.digest[:PARENT])[-MOST_PAST:]
        merged = tuple(one for one in self.merged if one.version >= version - MOST_PAST)
        next_ = {"version": version, "previous": previous, "past": past, "merged": merged, "digest": b""}
        return msgspec.structs.replace(self, **(next_ | changes))

    def __repr__(self) -> str:
        return f"Keyring(version={self.version}, ...)"


def latest_gone(gone: list[Gone]) -> tuple[Gone, ...]:
    """The vaults that were deleted last, as many as a keyring names, in ascending order of uid."""
    latest = sorted(gone, key=lambda one: (one.version, one.uid))[-MOST_GONE:]
    return tuple(sorted(latest, key=lambda one: one.uid))


def password_slot(account: bytes, descriptor: Descriptor) -> bytes:
    """The associated data of the password's slot."""
    return items(label("slot-password"), account, *descriptor.bound())


def recovery_slot(account: bytes) -> bytes:
    """The associated data of the recovery key's slot."""
    return items(label("slot-recovery"), account)


def seal(
    ring: Keyring, random: Random = primitives.random, *, password: PasswordKeys | None = None
) -> tuple[str, Keyring]:
    """What the server is to store for this version, and the keyring as it opens again.

    Send these same bytes again when a response is lost. Where slots are made anew, that takes the password.
    """
    slots = ring.sealed_slots or _seal_slots(ring, random, password)
    head = bytes([FORMAT, KIND]) + ring.account + number(checked_version(ring.version))
    head += generation_bytes(ring.generation) + ring.previous + bytes([SLOTS]) + _SLOT.to_bytes(2, "big") + slots
    body = padding.pad(keyring_body.encode(ring))
    sealed = to_base64(head + box.seal(keyring_key(ring.key), random(KEY), body, _whole(head)))
    if len(sealed) > MOST:
        raise Invalid({"name": "does not fit: the directory of vaults is full; use fewer vaults or shorter names"})
    again = reopen(sealed, ring.key)
    if again != msgspec.structs.replace(ring, sealed_slots=slots, digest=digest_of(sealed)):
        raise Tampered(_AGAIN)
    return sealed, again


def open_with_password(sealed: str, password: PasswordKeys, descriptor: Descriptor) -> Keyring:
    """The keyring, opened with the keys of a password. The descriptor is the one that these were derived with."""
    account = account_of(sealed)
    return _open_slot(sealed, KeyPair.of(password.wrap), password_slot(account, descriptor))


def open_with_recovery(sealed: str, recovery: RecoveryKey) -> Keyring:
    """The keyring, opened with the recovery key."""
    return _open_slot(sealed, KeyPair.of(recovery.wrap()), recovery_slot(account_of(sealed)))


def open_with_passkey(sealed: str, secret: PasskeySecret) -> Keyring:
    """The keyring, opened with what a passkey's authenticator gave."""
    account = account_of(sealed)
    return _open_slot(sealed, KeyPair.of(secret.wrap(account)), secret.passkey.slot(account))


def reopen(sealed: str, key: bytes) -> Keyring:
    """The keyring, opened with the account key."""
    head, body = _parts(sealed)
    generation = int.from_bytes(head[_GENERATION], "big")
    version = int.from_bytes(head[_VERSION], "big")
    is_first = head[_PREVIOUS] == _NO_PREVIOUS
    if not is_version(version) or not is_generation(generation) or is_first != (version == 1):
        raise Tampered(UNREADABLE)
    content = padding.unpad(box.open_(keyring_key(key), body, _whole(head)))
    decoded = keyring_body.decode(content, head[_ID], version, generation, head[_PREVIOUS])
    return Keyring(
        **msgspec.structs.asdict(decoded),
        key=key,
        generation=generation,
        version=version,
        previous=head[_PREVIOUS],
        sealed_slots=head[_SLOTS],
        digest=digest_of(sealed),
    )


def digest_of(sealed: str) -> bytes:
    """SHA-256 of a keyring's bytes: what the next one, and a device, knows it by."""
    return primitives.sha256(from_base64(sealed))


def account_of(sealed: str) -> bytes:
    """The account id in a keyring's head."""
    return _parts(sealed)[0][_ID]


def generation_of(sealed: str) -> int:
    """The generation of the account key, by a keyring's head."""
    return int.from_bytes(_parts(sealed)[0][_GENERATION], "big")


def slots_of(sealed: str) -> bytes:
    """The eight slots and the generation, as they are stored: what changes only with the password."""
    head = _parts(sealed)[0]
    return head[_GENERATION] + head[_SLOTS]


def version_of(sealed: str) -> int:
    """The version of a keyring, by its head."""
    return int.from_bytes(_parts(sealed)[0][_VERSION], "big")


def previous_of(sealed: str) -> bytes:
    """SHA-256 of the keyring before this one, by its head."""
    return _parts(sealed)[0][_PREVIOUS]


def _seal_slots(ring: Keyring, random: Random, password: PasswordKeys | None) -> bytes:
    if password is None:
        raise Locked("The ways into an account change only with its password.")
    payload = primitives.SecretBytes(generation_bytes(ring.generation) + ring.key)
    public = KeyPair.of(password.wrap).public
    used = {slot.slot: slot for slot in ring.slots}
    made = []
    for place in range(SLOTS):
        slot = used.get(place)
        if slot is None:
            made.append(public_box.filler(_SLOT, random))
        else:
            made.append(public_box.seal(slot.public or public, payload, slot.associated, random))
    return b"".join(made)


def _open_slot(sealed: str, pair: KeyPair, associated: bytes) -> Keyring:
    head, _ = _parts(sealed)
    for start in range(_SLOTS.start, _SLOTS.stop, _SLOT):
        try:
            payload = primitives.SecretBytes(public_box.open_(pair, head[start : start + _SLOT], associated))
        except Tampered:
            continue
        if payload[:4] != head[_GENERATION]:
            raise Tampered(UNREADABLE)
        return reopen(sealed, payload[4:])
    raise Tampered(UNREADABLE)


def _parts(sealed: str) -> tuple[bytes, bytes]:
    if len(sealed) > MOST:
        raise Tampered(UNREADABLE)
    raw = from_base64(sealed)
    check_format(raw[0] if raw else 0, _UNKNOWN)
    if len(raw) < _SLOTS.start or raw[:2] != bytes([FORMAT, KIND]):
        raise Tampered(_UNKNOWN)
    count, size = raw[_COUNT], int.from_bytes(raw[_SIZE], "big")
    if (count, size) != (SLOTS, _SLOT):  # before the length, which follows from them
        raise Unsupported(
            f"This account's keyring has {count} slots of {size} bytes, which this client does not know; "
            "update the client."
        )
    if len(raw) < _HEAD + box.OVERHEAD:
        raise Tampered(_UNKNOWN)
    return raw[:_HEAD], raw[_HEAD:]


def _whole(head: bytes) -> bytes:
    return items(label("keyring"), head)


def _storage_seed(generation: int, random: Random) -> StorageSeed:
    return StorageSeed(generation=generation, seed=primitives.SecretBytes(random(KEY)))


def _rotated(entry: VaultEntry, random: Random) -> VaultEntry:
    key = primitives.SecretBytes(random(KEY))
    return msgspec.structs.replace(entry, keys=(*entry.keys, (entry.keys[-1][0] + 1, key)))


def _with_floor(entry: VaultEntry, floor: int) -> VaultEntry:
    return entry if floor <= entry.floor else msgspec.structs.replace(entry, floor=min(floor, entry.keys[-1][0]))


def _sorted(entries: list[VaultEntry]) -> tuple[VaultEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.uid))
