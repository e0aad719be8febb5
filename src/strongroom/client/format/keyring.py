"""The keyring: the account key, sealed for each way in, and the directory of vaults with their keys.

    keyring = head ‖ body, a box under the keyring key whose associated data is the head
    head    = format (1) ‖ kind (1) ‖ account id (16) ‖ version (8) ‖ generation (4) ‖ previous (32) ‖ eight slots

The server cannot join the parts of two keyrings, cannot tell used slots from unused ones, and cannot show one vault
under another's name, nor hide one.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import Locked, Tampered, Unsupported
from strongroom.client.format import box, padding, primitives, public_box
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.encoding import (
    FORMAT,
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
    text,
    to_base64,
    to_url,
)
from strongroom.client.format.keys import ACCOUNT, VaultKeys, keyring_key
from strongroom.client.format.padding import Content
from strongroom.client.format.primitives import KEY, Random
from strongroom.client.format.public_box import KeyPair
from strongroom.client.format.recovery import RecoveryKey
from strongroom.errors import Invalid, VaultAlreadyExists

KIND: Final = 4
MOST: Final = 262_144  # characters of a keyring
SLOTS: Final = 8
MOST_GONE: Final = 1000
PASSWORD: Final = "password"  # noqa: S105 - the type of a slot
RECOVERY: Final = "recovery"
_SLOT: Final = 4 + KEY + public_box.OVERHEAD
_FIXED: Final = 2 + ACCOUNT + 8 + 4 + KEY
_HEAD: Final = _FIXED + SLOTS * _SLOT
_ID: Final = 16
_NO_PREVIOUS: Final = bytes(KEY)
_UNREADABLE: Final = "The server's keyring was not made with your keys."
_UNKNOWN: Final = "The server's keyring has a format that this client does not know."
_AGAIN: Final = "What was sealed does not open again; nothing was sent."
_UNDERSTOOD: Final = frozenset({"account", "slots", "recovery", "identity", "vaults", "gone", "must"})

Extra = dict[str, Any]  # members that this client does not know; they are written again as they were read


class Slot(Struct, frozen=True, kw_only=True):
    """A used slot: the public key that it is sealed to, and its associated data.

    The password's public key is in no keyring: who has had a keyring's keys could seal others for it. A writer that
    makes the slots anew has the password at hand.
    """

    slot: int
    type: str
    id: bytes
    public: bytes | None
    associated: bytes
    extra: Extra = {}


class Identity(Struct, frozen=True, kw_only=True):
    """The account's own key pairs of one generation: an Ed25519 seed and an X25519 private key."""

    generation: int
    sign: bytes
    agree: bytes
    extra: Extra = {}

    def __repr__(self) -> str:
        return f"Identity(generation={self.generation}, ...)"


class VaultEntry(Struct, frozen=True, kw_only=True):
    """A vault in the directory: its name, whether names are sealed on the wire, whether it was made, and its keys."""

    uid: str
    name: str
    sealed: bool
    made: bool
    keys: tuple[tuple[int, bytes], ...]  # generation and key, ascending
    extra: Extra = {}
    key_extras: dict[int, Extra] = {}  # of the keys, by generation

    def __repr__(self) -> str:
        return f"VaultEntry(uid={self.uid!r}, ...)"


class Gone(Struct, frozen=True, kw_only=True):
    """A vault that was deleted, and the keyring's version at which it was."""

    uid: str
    version: int
    extra: Extra = {}


class Keyring(Struct, frozen=True, kw_only=True):
    """An opened keyring. Changing it gives the next version of it; `seal` gives what the server is to store."""

    account: bytes
    key: bytes
    generation: int
    version: int
    previous: bytes  # SHA-256 of the keyring before
    sealed_slots: bytes  # as they are stored; empty where they are to be made anew
    digest: bytes  # SHA-256 of this keyring's text; empty until it is sealed
    slots: tuple[Slot, ...]
    recovery: bytes | None  # the public key of the recovery key's auth secret
    identity: tuple[Identity, ...]
    vaults: tuple[VaultEntry, ...]
    gone: tuple[Gone, ...]
    must: tuple[str, ...] = ()
    extra: Extra = {}

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
            vaults=(),
            gone=(),
        )
        return ring._with_slot(PASSWORD, password.wrap, password_slot(account, descriptor), random, version=1)

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

    def vault_keys(self, entry: VaultEntry) -> VaultKeys:
        """The keys of a vault, of all generations."""
        return VaultKeys.build(self.account, entry.uid, list(entry.keys))

    def with_vault(self, uid: str, name: str, *, sealed: bool, random: Random = primitives.random) -> Keyring:
        """The next version, with a new vault that is not made on the server yet."""
        entry = VaultEntry(
            uid=checked_uid(uid),
            name=checked_name(name, "name"),
            sealed=sealed,
            made=False,
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

    def without_vault(self, uid: str) -> Keyring:
        """The next version, in which this vault is gone and its keys with it."""
        uid = checked_uid(uid)
        gone = sorted([*self.gone, Gone(uid=uid, version=self.version + 1)], key=lambda one: one.version)[-MOST_GONE:]
        return self._next(
            vaults=tuple(entry for entry in self.vaults if entry.uid != uid),
            gone=tuple(sorted(gone, key=lambda one: one.uid)),
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

    def takes(self, descriptor: Descriptor) -> bool:
        """Whether the password's slot was sealed for this descriptor."""
        associated = password_slot(self.account, descriptor)
        return any(slot.type == PASSWORD and slot.associated == associated for slot in self.slots)

    def _with_slot(
        self, kind: str, secret: bytes, associated: bytes, random: Random, version: int | None = None
    ) -> Keyring:
        others = [slot for slot in self.slots if slot.type != kind]
        free = [place for place in range(SLOTS) if place not in {slot.slot for slot in others}]
        if not free:
            raise Invalid({"slot": "all eight ways into this account are taken; remove one first"})
        place = free[int.from_bytes(random(4), "big") % len(free)]
        public = None if kind == PASSWORD else KeyPair.of(secret).public
        made = Slot(slot=place, type=kind, id=random(_ID), public=public, associated=associated)
        slots = tuple(sorted([*others, made], key=lambda slot: slot.slot))
        ring = self._next(slots=slots, sealed_slots=b"")
        return ring if version is None else msgspec.structs.replace(ring, version=version, previous=self.previous)

    # Rotation

    def rotated(self, random: Random = primitives.random) -> Keyring:
        """The next version, with a key of the next generation for the account, each vault and the identity."""
        last = self.identity[-1].generation
        identity = Identity(generation=last + 1, sign=random(KEY), agree=random(KEY))
        return self._next(
            key=primitives.SecretBytes(random(KEY)),
            generation=self.generation + 1,
            sealed_slots=b"",
            identity=(*self.identity, identity),
            vaults=tuple(_rotated(entry, random) for entry in self.vaults),
        )

    def with_rotated_vault(self, uid: str, random: Random = primitives.random) -> Keyring:
        """The next version, with a key of the next generation for one vault."""
        entry = self.entry(checked_uid(uid))
        if entry is None:
            raise Invalid({"uid": "must be a vault of the directory"})
        return self.with_entry(uid, keys=_rotated(entry, random).keys)

    def at(self, version: int) -> Keyring:
        """The same changes, counted as one."""
        return msgspec.structs.replace(self, version=version)

    def _next(self, **changes: Any) -> Keyring:
        return msgspec.structs.replace(
            self, version=self.version + 1, previous=self.digest or self.previous, digest=b"", **changes
        )

    def __repr__(self) -> str:
        return f"Keyring(version={self.version}, ...)"


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
    head += generation_bytes(ring.generation) + ring.previous + slots
    body = padding.pad(Content(padding.JSON, _encode(_to_json(ring))))
    sealed = to_base64(head + box.seal(keyring_key(ring.key), random(KEY), body, _whole(head)))
    if len(sealed) > MOST:
        raise Invalid({"name": "the directory of vaults is full; use fewer vaults or shorter names"})
    again = reopen(sealed, ring.key)
    if again != msgspec.structs.replace(ring, sealed_slots=slots, digest=primitives.sha256(sealed.encode("ascii"))):
        raise Tampered(_AGAIN)
    return sealed, again


def open_with_password(sealed: str, password: PasswordKeys, descriptor: Descriptor) -> Keyring:
    """The keyring, opened with the keys of a password. The descriptor is the one that these were derived with."""
    account = account_of(sealed)
    return _open_slot(sealed, KeyPair.of(password.wrap), password_slot(account, descriptor))


def open_with_recovery(sealed: str, recovery: RecoveryKey) -> Keyring:
    """The keyring, opened with the recovery key."""
    return _open_slot(sealed, KeyPair.of(recovery.wrap()), recovery_slot(account_of(sealed)))


def reopen(sealed: str, key: bytes) -> Keyring:
    """The keyring, opened with the account key."""
    head, body = _parts(sealed)
    generation = int.from_bytes(head[_FIXED - KEY - 4 : _FIXED - KEY], "big")
    version = int.from_bytes(head[2 + ACCOUNT : 10 + ACCOUNT], "big")
    is_first = head[_FIXED - KEY : _FIXED] == _NO_PREVIOUS
    if not is_version(version) or not is_generation(generation) or is_first != (version == 1):
        raise Tampered(_UNREADABLE)
    content = padding.unpad(box.open_(keyring_key(key), body, _whole(head)))
    return Keyring(
        account=head[2 : 2 + ACCOUNT],
        key=key,
        generation=generation,
        version=version,
        previous=head[_FIXED - KEY : _FIXED],
        sealed_slots=head[_FIXED:],
        digest=primitives.sha256(sealed.encode("ascii")),
        **_from_json(content, head[2 : 2 + ACCOUNT], version, generation),
    )


def account_of(sealed: str) -> bytes:
    """The account id in a keyring's head."""
    return _parts(sealed)[0][2 : 2 + ACCOUNT]


def generation_of(sealed: str) -> int:
    """The generation of the account key, by a keyring's head."""
    return int.from_bytes(_parts(sealed)[0][_FIXED - KEY - 4 : _FIXED - KEY], "big")


def slots_of(sealed: str) -> bytes:
    """The eight slots and the generation, as they are stored: what changes only with the password."""
    head = _parts(sealed)[0]
    return head[_FIXED - KEY - 4 : _FIXED - KEY] + head[_FIXED:]


def previous_of(sealed: str) -> bytes:
    """SHA-256 of the keyring before this one, by its head."""
    return _parts(sealed)[0][_FIXED - KEY : _FIXED]


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
    for start in range(_FIXED, _HEAD, _SLOT):
        try:
            payload = primitives.SecretBytes(public_box.open_(pair, head[start : start + _SLOT], associated))
        except Tampered:
            continue
        if payload[:4] != head[_FIXED - KEY - 4 : _FIXED - KEY]:
            raise Tampered(_UNREADABLE)
        return reopen(sealed, payload[4:])
    raise Tampered(_UNREADABLE)


def _parts(sealed: str) -> tuple[bytes, bytes]:
    if len(sealed) > MOST:
        raise Tampered(_UNREADABLE)
    raw = from_base64(sealed)
    if len(raw) < _HEAD + box.OVERHEAD or raw[:2] != bytes([FORMAT, KIND]):
        raise Tampered(_UNKNOWN)
    return raw[:_HEAD], raw[_HEAD:]


def _whole(head: bytes) -> bytes:
    return items(label("keyring"), head)


def _rotated(entry: VaultEntry, random: Random) -> VaultEntry:
    key = primitives.SecretBytes(random(KEY))
    return msgspec.structs.replace(entry, keys=(*entry.keys, (entry.keys[-1][0] + 1, key)))


def _sorted(entries: list[VaultEntry]) -> tuple[VaultEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.uid))


# The body as JSON

_encode = msgspec.json.Encoder().encode


class _KeyJson(Struct, frozen=True):
    generation: int
    key: str


class _SlotJson(Struct, frozen=True):
    slot: int
    type: str
    id: str
    public: str | None
    associated: str


class _IdentityJson(Struct, frozen=True):
    generation: int
    sign: str
    agree: str


class _VaultJson(Struct, frozen=True):
    uid: str
    name: str
    sealed: bool
    made: bool
    keys: list[Extra]


class _GoneJson(Struct, frozen=True):
    uid: str
    version: int


class _BodyJson(Struct, frozen=True):
    account: str
    slots: list[Extra]
    recovery: str | None
    identity: list[Extra]
    vaults: list[Extra]
    gone: list[Extra]
    must: list[str]


def _to_json(ring: Keyring) -> Extra:
    return {
        **ring.extra,
        "account": to_base64(ring.account),
        "slots": [
            {
                **slot.extra,
                "slot": slot.slot,
                "type": slot.type,
                "id": to_base64(slot.id),
                "public": None if slot.public is None else to_base64(slot.public),
                "associated": to_base64(slot.associated),
            }
            for slot in ring.slots
        ],
        "recovery": None if ring.recovery is None else to_base64(ring.recovery),
        "identity": [
            {**one.extra, "generation": one.generation, "sign": to_base64(one.sign), "agree": to_base64(one.agree)}
            for one in ring.identity
        ],
        "vaults": [
            {
                **entry.extra,
                "uid": entry.uid,
                "name": entry.name,
                "sealed": entry.sealed,
                "made": entry.made,
                "keys": [
                    {**entry.key_extras.get(number_, {}), "generation": number_, "key": to_base64(key)}
                    for number_, key in entry.keys
                ],
            }
            for entry in ring.vaults
        ],
        "gone": [{**one.extra, "uid": one.uid, "version": one.version} for one in ring.gone],
        "must": list(ring.must),
    }


def _from_json(content: Content, account: bytes, version: int, generation: int) -> dict[str, Any]:
    """The members of the body, checked; whatever is wrong with them is one refusal."""
    if content.kind != padding.JSON:
        raise Tampered(_UNREADABLE)
    try:
        whole = msgspec.json.decode(content.data, type=Extra)
        if unknown := [name for name in msgspec.convert(whole.get("must"), list[str]) if name not in _UNDERSTOOD]:
            raise Unsupported(f"This account uses something that this client does not know: {unknown[0]}.")
        body = msgspec.convert(whole, _BodyJson)
        checked = _checked_body(body)
        if (
            not primitives.equal(from_base64(body.account), account)
            or checked["identity"][-1].generation != generation
            or any(one.version > version for one in checked["gone"])
        ):
            raise Tampered(_UNREADABLE)
        return {
            **checked,
            "must": tuple(body.must),
            "extra": {name: value for name, value in whole.items() if name not in _UNDERSTOOD},
        }
    except (msgspec.MsgspecError, ValueError, RecursionError, Invalid):
        raise Tampered(_UNREADABLE) from None


def _checked_body(body: _BodyJson) -> dict[str, Any]:
    slots = tuple(_slot(one) for one in body.slots)
    identity = tuple(_identity(one) for one in body.identity)
    vaults = tuple(_vault(one) for one in body.vaults)
    gone = tuple(_gone(one) for one in body.gone)
    _require_ascending([slot.slot for slot in slots])
    _require_ascending([one.generation for one in identity])
    _require_ascending([entry.uid for entry in vaults])
    _require_ascending([one.uid for one in gone])
    uids = {entry.uid for entry in vaults}
    if (
        len({entry.name for entry in vaults}) != len(vaults)
        or len({slot.id for slot in slots}) != len(slots)
        or any(one.uid in uids for one in gone)
        or len(gone) > MOST_GONE
        or not identity
    ):
        raise Tampered(_UNREADABLE)
    types = [slot.type for slot in slots]
    recovery = None if body.recovery is None else _bytes(body.recovery, KEY)
    if types.count(PASSWORD) > 1 or types.count(RECOVERY) != (recovery is not None):
        raise Tampered(_UNREADABLE)
    return {"slots": slots, "recovery": recovery, "identity": identity, "vaults": vaults, "gone": gone}


def _slot(given: Extra) -> Slot:
    read, extra = _split(given, _SlotJson)
    if not 0 <= read.slot < SLOTS or not read.type or (read.public is None) != (read.type == PASSWORD):
        raise Tampered(_UNREADABLE)
    return Slot(
        slot=read.slot,
        type=read.type,
        id=_bytes(read.id, _ID),
        public=None if read.public is None else _bytes(read.public, KEY),
        associated=from_base64(read.associated),
        extra=extra,
    )


def _identity(given: Extra) -> Identity:
    read, extra = _split(given, _IdentityJson)
    if not is_generation(read.generation):
        raise Tampered(_UNREADABLE)
    return Identity(generation=read.generation, sign=_bytes(read.sign, KEY), agree=_bytes(read.agree, KEY), extra=extra)


def _vault(given: Extra) -> VaultEntry:
    read, extra = _split(given, _VaultJson)
    parts = [_split(one, _KeyJson) for one in read.keys]
    keys = tuple((one.generation, primitives.SecretBytes(_bytes(one.key, KEY))) for one, _ in parts)
    extras = {one.generation: more for one, more in parts if more}
    _require_ascending([generation for generation, _ in keys])
    if checked_uid(read.uid) != read.uid or not keys or not all(is_generation(one) for one, _ in keys):
        raise Tampered(_UNREADABLE)
    text(checked_name(read.name, "name"))
    return VaultEntry(
        uid=read.uid,
        name=read.name,
        sealed=read.sealed,
        made=read.made,
        keys=keys,
        extra=extra,
        key_extras=extras,
    )


def _gone(given: Extra) -> Gone:
    read, extra = _split(given, _GoneJson)
    if checked_uid(read.uid) != read.uid or not is_version(read.version):
        raise Tampered(_UNREADABLE)
    return Gone(uid=read.uid, version=read.version, extra=extra)


def _split(given: Extra, kind: Any) -> tuple[Any, Extra]:
    """A member's known fields, and the others."""
    known = set(kind.__struct_fields__)
    return msgspec.convert(given, kind), {name: value for name, value in given.items() if name not in known}


def _bytes(value: str, length: int) -> bytes:
    raw = from_base64(value)
    if len(raw) != length:
        raise Tampered(_UNREADABLE)
    return raw


def _require_ascending(values: list[Any]) -> None:
    if values != sorted(set(values)):
        raise Tampered(_UNREADABLE)
