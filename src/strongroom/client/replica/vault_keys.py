"""The keys and names of vaults, kept in the replica: those of a deleted vault still open what waits here.

Each vault of the directory is sealed under a key that follows from the account's storage seed. A keyring has the seeds
of all generations, so a rotation on another device does not lock what was kept before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import box, primitives
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
from strongroom.client.replica.store.records import RenamedVault

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.store.file import File

_PURPOSE: Final = "replica-vault"
_RENAMED: Final = "replica-renamed"


class Place(NamedTuple):
    """A vault of the replica, or what a token opens: its keys, if they are here, and its plaintext name."""

    scope: KeyScope | None
    name: str


class _Kept(Struct, frozen=True):
    name: str
    sealed: bool
    floor: int
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
    """Keep the keys of one vault, sealed under the newest seed. `new`: the server does not have it yet."""
    spelled = [(generation, to_base64(key)) for generation, key in entry.keys]
    content = _Kept(entry.name, entry.sealed, entry.floor, spelled)
    plain = primitives.SecretBytes(msgspec.json.encode(content))
    file.vaults.put_keys(entry.uid, _seal(ring, _PURPOSE, plain, text(entry.uid)), new=new)


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
    entry = VaultEntry(uid=uid, name=name, sealed=sealed, made=False, floor=1, keys=keys_)
    keep(file, ring, entry, new=True)
    return entry


def created(file: File, ring: Keyring) -> list[VaultEntry]:
    """The vaults that were made here and that the server does not have yet, in the order in which they were made."""
    new = file.vaults.new()
    return [entry for uid, entry in sorted(kept(file, ring).items()) if uid in new] if new else []


def add_renamed(file: File, ring: Keyring, vault: RenamedVault) -> None:
    """Record that a vault has got another name than was wanted, until that is told."""
    _keep_renamed(file, ring, [*(one for one in renamed(file, ring) if one.uid != vault.uid), vault])


def renamed(file: File, ring: Keyring) -> list[RenamedVault]:
    """The vaults that have got another name than was wanted, which may not be told yet."""
    sealed = file.vaults.renamed()
    plain = None if sealed is None else _unseal(ring, _RENAMED, sealed)
    return [] if plain is None else msgspec.json.decode(plain, type=list[RenamedVault])


def seal_renamed(file: File, ring: Keyring) -> None:
    """Seal what an earlier release has kept of such names in the clear."""
    clear = file.vaults.take_clear_renamed()
    if clear is not None:
        _keep_renamed(file, ring, msgspec.json.decode(clear, type=list[RenamedVault]))


def _keep_renamed(file: File, ring: Keyring, vaults: list[RenamedVault]) -> None:
    file.vaults.set_renamed(_seal(ring, _RENAMED, msgspec.json.encode(vaults)))


def _open(ring: Keyring, uid: str, sealed: str) -> VaultEntry | None:
    plain = _unseal(ring, _PURPOSE, sealed, text(uid))
    if plain is None:
        return None  # what is under these keys cannot be read any more
    content = msgspec.json.decode(plain, type=_Kept)  # what this key has sealed, this client has written
    opened = tuple((number_, primitives.SecretBytes(from_base64(key))) for number_, key in content.keys)
    return VaultEntry(uid=uid, name=content.name, sealed=content.sealed, made=True, floor=content.floor, keys=opened)


def _seal(ring: Keyring, purpose: str, plain: bytes, *place: bytes) -> str:
    """Seal something under the newest seed, for a purpose and a place."""
    associated = _associated(ring, ring.generation, purpose, place)
    sealed = box.seal(ring.storage_key(purpose), primitives.random(primitives.KEY), plain, associated)
    return to_base64(generation_bytes(ring.generation) + sealed)


def _unseal(ring: Keyring, purpose: str, sealed: str, *place: bytes) -> bytes | None:
    """What was sealed; None where the file was damaged or changed."""
    try:
        raw = from_base64(sealed)
        generation = read_generation(raw[:4])
        key = ring.storage_key(purpose, generation=generation)
        return box.open_(key, raw[4:], _associated(ring, generation, purpose, place))
    except Tampered:
        return None


def _associated(ring: Keyring, generation: int, purpose: str, place: tuple[bytes, ...]) -> bytes:
    return items(label(purpose), ring.account, *place, number(generation))
