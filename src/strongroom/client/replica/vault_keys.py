"""The keys of vaults, kept in the replica: those of a vault that was deleted elsewhere still open what waits here.

Each vault of the directory is sealed under a key of the account's identity. A keyring has the identities of all
generations, so a rotation on another device does not lock what was kept before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import box, keys, primitives
from strongroom.client.format.encoding import (
    from_base64,
    generation_bytes,
    items,
    label,
    number,
    read_generation,
    text,
    to_base64,
)
from strongroom.client.format.keyring_body import VaultEntry

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.format.keyring_body import Identity
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.store.file import File

_PURPOSE: Final = "replica-vault"


class Place(NamedTuple):
    """A vault of the replica, or what a token opens: its keys, if they are here, and its plaintext name."""

    scope: KeyScope | None
    name: str


class _Kept(Struct, frozen=True):
    name: str
    sealed: bool
    keys: list[tuple[int, str]]


def keep_all(file: File, ring: Keyring) -> None:
    """Keep the keys of every vault of the directory; those of others only as long as changes wait in them."""
    before = kept(file, ring)
    for entry in ring.vaults:
        keep(file, ring, entry)
    for uid, entry in before.items():
        if ring.entry(uid) is None:
            keep(file, ring, entry)
    for uid in {uid for uid, _ in file.vaults.sealed_keys()}:
        if ring.is_gone(uid) and not file.outbox.entries(uid):
            file.vaults.drop_keys(uid)


def keep(file: File, ring: Keyring, entry: VaultEntry, *, new: bool = False) -> None:
    """Keep the keys of one vault, sealed under the newest identity. `new`: the server does not have it yet."""
    identity = ring.identity[-1]
    content = _Kept(entry.name, entry.sealed, [(generation, to_base64(key)) for generation, key in entry.keys])
    plain = primitives.SecretBytes(msgspec.json.encode(content))
    sealed = box.seal(_key(identity), primitives.random(primitives.KEY), plain, _associated(ring, identity, entry.uid))
    file.vaults.put_keys(entry.uid, to_base64(generation_bytes(identity.generation) + sealed), new=new)


def kept(file: File, ring: Keyring) -> dict[str, VaultEntry]:
    """The vaults whose keys are kept and can be opened, by uid."""
    found = {}
    for uid, sealed in file.vaults.sealed_keys():
        entry = _open(ring, uid, sealed)
        if entry is not None:
            found[uid] = entry
    return found


def create(file: File, ring: Keyring, uid: str, name: str, *, sealed: bool) -> VaultEntry:
    """Make a vault that the server does not have yet, with a key of its own."""
    keys_ = ((1, primitives.SecretBytes(primitives.random(primitives.KEY))),)
    entry = VaultEntry(uid=uid, name=name, sealed=sealed, made=False, keys=keys_)
    keep(file, ring, entry, new=True)
    return entry


def created(file: File, ring: Keyring) -> list[VaultEntry]:
    """The vaults that were made here and that the server does not have yet, in the order in which they were made."""
    new = file.vaults.new()
    return [entry for uid, entry in sorted(kept(file, ring).items()) if uid in new] if new else []


def _open(ring: Keyring, uid: str, sealed: str) -> VaultEntry | None:
    try:
        raw = from_base64(sealed)
        generation = read_generation(raw[:4])
        identity = next(one for one in ring.identity if one.generation == generation)
        plain = box.open_(_key(identity), raw[4:], _associated(ring, identity, uid))
        content = msgspec.json.decode(plain, type=_Kept)
    except (Tampered, StopIteration, msgspec.MsgspecError):
        return None  # the file was damaged or changed: what is under these keys cannot be read any more
    opened = tuple((number_, primitives.SecretBytes(from_base64(key))) for number_, key in content.keys)
    return VaultEntry(uid=uid, name=content.name, sealed=content.sealed, made=True, keys=opened)


def _key(identity: Identity) -> bytes:
    return keys.derive(identity.agree, _PURPOSE)


def _associated(ring: Keyring, identity: Identity, uid: str) -> bytes:
    return items(label(_PURPOSE), ring.account, text(uid), number(identity.generation))
