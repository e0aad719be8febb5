"""The body of a keyring: its structs, and their spelling in JSON.

Members that this client does not know are kept, and written again as they were read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import Tampered, Unsupported
from strongroom.client.format import padding, primitives, strict_json
from strongroom.client.format.encoding import (
    PARENT,
    checked_name,
    checked_uid,
    from_base64,
    is_generation,
    is_version,
    text,
    to_base64,
)
from strongroom.client.format.padding import Content
from strongroom.client.format.passkey import PasskeyId
from strongroom.client.format.primitives import KEY
from strongroom.errors import Invalid

SLOTS: Final = 8
SLOT_ID: Final = 16  # bytes
MOST_GONE: Final = 1000
MOST_PAST: Final = 100
PASSWORD: Final = "password"  # noqa: S105 - the type of a slot
RECOVERY: Final = "recovery"
PASSKEY: Final = "passkey"
MERGED: Final = "merged"  # a member that has to be understood where it is used
UNREADABLE: Final = "The server's keyring was not made with your keys."
FLOOR: Final = "floor"  # in `must` once a floor was raised: a client that does not know it would believe too much
_MEMBERS: Final = frozenset(
    {"account", "slots", "recovery", "identity", "storage", "vaults", "gone", "past", "merged", "must"}
)
_UNDERSTOOD: Final = _MEMBERS | {FLOOR}

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


class StorageSeed(Struct, frozen=True, kw_only=True):
    """What the keys of a device's own files follow from, in one generation of the account."""

    generation: int
    seed: bytes
    extra: Extra = {}

    def __repr__(self) -> str:
        return f"StorageSeed(generation={self.generation}, ...)"


class VaultEntry(Struct, frozen=True, kw_only=True):
    """A vault in the directory: its name, whether names are sealed on the wire, whether it was made, and its keys.

    `floor` is the lowest generation of a live row.
    """

    uid: str
    name: str
    sealed: bool
    made: bool
    floor: int
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


class MergedKeyring(Struct, frozen=True, kw_only=True):
    """A keyring of another branch that a merge has joined, by its version and the beginning of its SHA-256."""

    version: int
    digest: bytes
    extra: Extra = {}


class Body(Struct, frozen=True, kw_only=True):
    """What is sealed in the body of a keyring."""

    account: bytes
    slots: tuple[Slot, ...]
    recovery: bytes | None  # the public key of the recovery key's auth secret
    identity: tuple[Identity, ...]
    storage: tuple[StorageSeed, ...]
    vaults: tuple[VaultEntry, ...]
    gone: tuple[Gone, ...]
    past: tuple[bytes, ...]  # what the keyrings before this one are recognised by, the latest last
    merged: tuple[MergedKeyring, ...]  # keyrings of other branches that this one was made knowing of
    must: tuple[str, ...] = ()
    extra: Extra = {}

    def __repr__(self) -> str:
        return "Body(...)"


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


class _StorageJson(Struct, frozen=True):
    generation: int
    seed: str


class _VaultJson(Struct, frozen=True):
    uid: str
    name: str
    sealed: bool
    made: bool
    floor: int
    keys: list[Extra]


class _GoneJson(Struct, frozen=True):
    uid: str
    version: int


class _MergedJson(Struct, frozen=True):
    version: int
    digest: str


class _BodyJson(Struct, frozen=True):
    account: str
    slots: list[Extra]
    recovery: str | None
    identity: list[Extra]
    storage: list[Extra]
    vaults: list[Extra]
    gone: list[Extra]
    past: list[str]
    merged: list[Extra]
    must: list[str]


def to_json(body: Body) -> Extra:
    """The members of a body, as JSON has them."""
    return {
        **body.extra,
        "account": to_base64(body.account),
        "slots": [
            {
                **slot.extra,
                "slot": slot.slot,
                "type": slot.type,
                "id": to_base64(slot.id),
                "public": None if slot.public is None else to_base64(slot.public),
                "associated": to_base64(slot.associated),
            }
            for slot in body.slots
        ],
        "recovery": None if body.recovery is None else to_base64(body.recovery),
        "identity": [
            {**one.extra, "generation": one.generation, "sign": to_base64(one.sign), "agree": to_base64(one.agree)}
            for one in body.identity
        ],
        "storage": [{**one.extra, "generation": one.generation, "seed": to_base64(one.seed)} for one in body.storage],
        "vaults": [
            {
                **entry.extra,
                "uid": entry.uid,
                "name": entry.name,
                "sealed": entry.sealed,
                "made": entry.made,
                "floor": entry.floor,
                "keys": [
                    {**entry.key_extras.get(number_, {}), "generation": number_, "key": to_base64(key)}
                    for number_, key in entry.keys
                ],
            }
            for entry in body.vaults
        ],
        "gone": [{**one.extra, "uid": one.uid, "version": one.version} for one in body.gone],
        "past": [to_base64(one) for one in body.past],
        "merged": [{**one.extra, "version": one.version, "digest": to_base64(one.digest)} for one in body.merged],
        "must": list(body.must),
    }


def encode(body: Body) -> Content:
    """A body as the content of a box."""
    return Content(padding.JSON, msgspec.json.encode(to_json(body)))


def decode(content: Content, account: bytes, version: int, generation: int, previous: bytes) -> Body:
    """A body, checked against the head of its keyring; whatever is wrong with it is one refusal."""
    if content.kind != padding.JSON:
        raise Tampered(UNREADABLE)
    try:
        whole = msgspec.convert(strict_json.read(content.data, strict_json.KEYRING, UNREADABLE), Extra)
        if unknown := [name for name in msgspec.convert(whole.get("must"), list[str]) if name not in _UNDERSTOOD]:
            raise Unsupported(f"This account uses something that this client does not know: {unknown[0]}.")
        extra = {name: value for name, value in whole.items() if name not in _MEMBERS}
        body = _checked(msgspec.convert(whole, _BodyJson), extra)
    except (msgspec.MsgspecError, ValueError, Invalid):
        raise Tampered(UNREADABLE) from None
    if (
        not primitives.equal(body.account, account)
        or body.identity[-1].generation != generation
        or any(one.version > version for one in body.gone)
        or len(body.past) != min(version - 1, MOST_PAST)
        or (body.past and body.past[-1] != previous[:PARENT])
        or any(not version - len(body.past) <= one.version < version for one in body.merged)
        or any(one.digest in body.past[one.version - version :][:1] for one in body.merged)
    ):
        raise Tampered(UNREADABLE)
    return body


def _checked(body: _BodyJson, extra: Extra) -> Body:
    slots = tuple(_slot(one) for one in body.slots)
    identity = tuple(_identity(one) for one in body.identity)
    storage = tuple(_storage(one) for one in body.storage)
    vaults = tuple(_vault(one) for one in body.vaults)
    gone = tuple(_gone(one) for one in body.gone)
    _require_ascending([slot.slot for slot in slots])
    _require_ascending([one.generation for one in identity])
    _require_ascending([entry.uid for entry in vaults])
    _require_ascending([one.uid for one in gone])
    merged = tuple(_merged(one) for one in body.merged)
    uids = {entry.uid for entry in vaults}
    if (
        len({entry.name for entry in vaults}) != len(vaults)
        or len({slot.id for slot in slots}) != len(slots)
        or any(one.uid in uids for one in gone)
        or len(gone) > MOST_GONE
        or len(merged) > MOST_PAST
        or len({(one.version, one.digest) for one in merged}) != len(merged)
        or (merged and MERGED not in body.must)
        or not identity
        or [one.generation for one in storage] != [one.generation for one in identity]
    ):
        raise Tampered(UNREADABLE)
    types = [slot.type for slot in slots]
    recovery = None if body.recovery is None else _bytes(body.recovery, KEY)
    if types.count(PASSWORD) > 1 or types.count(RECOVERY) != (recovery is not None):
        raise Tampered(UNREADABLE)
    account = from_base64(body.account)
    passkeys = [PasskeyId.of_slot(slot.associated, account) for slot in slots if slot.type == PASSKEY]
    if len(set(passkeys)) != len(passkeys):
        raise Tampered(UNREADABLE)
    return Body(
        account=account,
        slots=slots,
        recovery=recovery,
        identity=identity,
        storage=storage,
        vaults=vaults,
        gone=gone,
        past=tuple(_bytes(one, PARENT) for one in body.past),
        merged=merged,
        must=tuple(body.must),
        extra=extra,
    )


def _slot(given: Extra) -> Slot:
    read, extra = _split(given, _SlotJson)
    if not 0 <= read.slot < SLOTS or not read.type or (read.public is None) != (read.type == PASSWORD):
        raise Tampered(UNREADABLE)
    return Slot(
        slot=read.slot,
        type=read.type,
        id=_bytes(read.id, SLOT_ID),
        public=None if read.public is None else _bytes(read.public, KEY),
        associated=from_base64(read.associated),
        extra=extra,
    )


def _identity(given: Extra) -> Identity:
    read, extra = _split(given, _IdentityJson)
    if not is_generation(read.generation):
        raise Tampered(UNREADABLE)
    return Identity(generation=read.generation, sign=_bytes(read.sign, KEY), agree=_bytes(read.agree, KEY), extra=extra)


def _storage(given: Extra) -> StorageSeed:
    read, extra = _split(given, _StorageJson)
    seed = primitives.SecretBytes(_bytes(read.seed, KEY))
    return StorageSeed(generation=read.generation, seed=seed, extra=extra)


def _vault(given: Extra) -> VaultEntry:
    read, extra = _split(given, _VaultJson)
    parts = [_split(one, _KeyJson) for one in read.keys]
    keys = tuple((one.generation, primitives.SecretBytes(_bytes(one.key, KEY))) for one, _ in parts)
    extras = {one.generation: more for one, more in parts if more}
    _require_ascending([generation for generation, _ in keys])
    if checked_uid(read.uid) != read.uid or not keys or not all(is_generation(one) for one, _ in keys):
        raise Tampered(UNREADABLE)
    if not 1 <= read.floor <= keys[-1][0]:
        raise Tampered(UNREADABLE)
    text(checked_name(read.name, "name"))
    return VaultEntry(
        uid=read.uid,
        name=read.name,
        sealed=read.sealed,
        made=read.made,
        floor=read.floor,
        keys=keys,
        extra=extra,
        key_extras=extras,
    )


def _gone(given: Extra) -> Gone:
    read, extra = _split(given, _GoneJson)
    if checked_uid(read.uid) != read.uid or not is_version(read.version):
        raise Tampered(UNREADABLE)
    return Gone(uid=read.uid, version=read.version, extra=extra)


def _merged(given: Extra) -> MergedKeyring:
    read, extra = _split(given, _MergedJson)
    if not is_version(read.version):
        raise Tampered(UNREADABLE)
    return MergedKeyring(version=read.version, digest=_bytes(read.digest, PARENT), extra=extra)


def _split(given: Extra, kind: Any) -> tuple[Any, Extra]:
    """A member's known fields, and the others."""
    known = set(kind.__struct_fields__)
    return msgspec.convert(given, kind), {name: value for name, value in given.items() if name not in known}


def _bytes(value: str, length: int) -> bytes:
    raw = from_base64(value)
    if len(raw) != length:
        raise Tampered(UNREADABLE)
    return raw


def _require_ascending(values: list[Any]) -> None:
    if values != sorted(set(values)):
        raise Tampered(UNREADABLE)
