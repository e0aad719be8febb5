"""Sealed names: the same name is always sealed to the same text, so that the server can find it without reading it.

    sealed = "sr2." ‖ base64url(generation (4) ‖ digest (32) ‖ ciphertext ‖ tag (16))

The digest is that of the name under a key, and the key of the cipher follows from it. A reader makes the digest anew
and compares, which also commits to the key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strongroom import rules
from strongroom.client.errors import Tampered
from strongroom.client.format import primitives
from strongroom.client.format.encoding import (
    PREFIX,
    checked_name,
    from_url,
    generation_bytes,
    has_prefix,
    items,
    label,
    read_generation,
    text,
    to_url,
    without_prefix,
)
from strongroom.client.format.keys import CollectionKeys, NamesKey, VaultKey, VaultKeys, derive
from strongroom.client.format.primitives import KEY, TAG
from strongroom.errors import Invalid

LONGEST: Final = 127  # bytes of a name that can be sealed
_STEP: Final = 32
_VAULT: Final = "vault-name"
_COLLECTION: Final = "collection-name"


def is_sealed(name: str) -> bool:
    """Whether a name on the wire is a sealed one, of this format or of another."""
    return has_prefix(name)


def plain(name: str, field: str = "name") -> str:
    """A name to be used as it is: it must not look like a sealed one."""
    if is_sealed(checked_name(name, field)):
        raise Invalid({field: f"must not begin with {PREFIX}, nor with another number in its place"})
    if field == "collection" and not rules.is_collection(name):
        raise Invalid({field: f"must be at most {rules.MAX_COLLECTION} bytes in UTF-8"})
    return name


def checked_vault_name(name: str, *, sealed: bool) -> str:
    """A new name of a vault, if it can be used; a name that is to be sealed must not be too long for that."""
    if len(text(plain(name))) > LONGEST and sealed:
        raise Invalid({"name": f"must be at most {LONGEST} bytes in UTF-8 to be sealed"})
    return name


def free_name(name: str, taken: Callable[[str], object | None]) -> str:
    """The name, or where a vault has it already, the name with a number; `taken` gives None for a free one."""
    number = 1
    free = name
    while taken(free) is not None:
        number += 1
        suffix = f" ({number})"
        free = name.encode()[: LONGEST - len(suffix)].decode(errors="ignore") + suffix
    return free


def seal_vault_name(keys: VaultKey, name: str) -> str:
    """A vault's name as the server sees it."""
    return _seal(keys, _VAULT, plain(name))


def open_vault_name(keys: VaultKeys, sealed: str) -> str:
    """A vault's name as people see it."""
    return _open(_find(keys, sealed), _VAULT, sealed)


def seal_collection_name(keys: VaultKey | NamesKey, name: str) -> str:
    """A collection's name as the server sees it; in another vault, and in another generation, it looks different."""
    return _seal(keys, _COLLECTION, plain(name, "collection"))


def open_collection_name(keys: VaultKeys, sealed: str) -> str:
    """A collection's name as people see it."""
    return _open(_find(keys, sealed), _COLLECTION, sealed)


def collection_keys(keys: VaultKeys, name: str, *, sealed: bool) -> CollectionKeys:
    """The keys of a collection of every generation, and all of its names on the wire."""
    wires = [plain(name, "collection")]
    if sealed:
        wires = [seal_collection_name(key, name) for key in reversed(keys.naming)]
    return CollectionKeys(
        account=keys.account,
        vault=keys.vault,
        name=name,
        wires=tuple(wires),
        keys=tuple(key.collection(name) for key in keys.keys),
        keyring=keys.keyring,
        floor=keys.floor,
    )


def _place(keys: VaultKey | NamesKey, purpose: str) -> bytes:
    return items(label(purpose), keys.account, text(keys.vault))


def _digest(key: bytes, place: bytes, padded: bytes) -> bytes:
    return primitives.hmac_sha256(derive(key, "name-digest"), place + items(padded))


def _cipher_key(key: bytes, digest: bytes) -> bytes:
    return derive(key, "name-box", salt=digest)


def _seal(keys: VaultKey | NamesKey, purpose: str, name: str) -> str:
    raw = text(name)
    if len(raw) > LONGEST:
        raise Invalid({"name": f"must be at most {LONGEST} bytes in UTF-8 to be sealed"})
    padded = (len(raw).to_bytes(1, "big") + raw).ljust(-(-(1 + len(raw)) // _STEP) * _STEP, b"\0")
    key, place = keys.names(), _place(keys, purpose)
    digest = _digest(key, place, padded)
    head = generation_bytes(keys.generation) + digest
    sealed = PREFIX + to_url(head + primitives.encrypt(_cipher_key(key, digest), padded, place))
    if read_generation(_read(sealed)[:4]) != keys.generation or _open(keys, purpose, sealed) != name:
        raise Tampered("What was sealed does not open again; nothing was sent.")
    return sealed


def _find(vault: VaultKeys, sealed: str) -> VaultKey | NamesKey:
    """The key that a name is sealed under."""
    generation = read_generation(_read(sealed)[:4])
    return next((key for key in vault.former if key.generation == generation), None) or vault.of(generation)


def _read(sealed: str) -> bytes:
    raw = from_url(without_prefix(sealed))
    if len(raw) < 4 + KEY + _STEP + TAG:
        raise Tampered
    return raw


def _open(keys: VaultKey | NamesKey, purpose: str, sealed: str) -> str:
    raw = _read(sealed)
    key, place, digest = keys.names(), _place(keys, purpose), raw[4 : 4 + KEY]
    padded = primitives.decrypt(_cipher_key(key, digest), raw[4 + KEY :], place)
    if padded is None or not primitives.equal(_digest(key, place, padded), digest):
        raise Tampered
    end = 1 + padded[0]
    if padded[0] > LONGEST or len(padded) != -(-end // _STEP) * _STEP or any(padded[end:]):
        raise Tampered
    try:
        return plain(padded[1:end].decode())
    except (UnicodeDecodeError, Invalid):
        raise Tampered from None
