"""Sealed names: the same name is always sealed to the same text, so that the server can find it without reading it.

    sealed = "sr1." ‖ base64url(salt (32) ‖ ciphertext ‖ tag (16))

The salt is not random but a digest of the name under a key, and the key of the cipher follows from it. Opening a
name computes the digest again and compares, which also commits to the key.
"""

from __future__ import annotations

from typing import Final

from strongroom.client.errors import Tampered
from strongroom.client.format import primitives
from strongroom.client.format.encoding import checked_name, from_url, items, label, text, to_url
from strongroom.client.format.keys import AccountKey, VaultKey, derive
from strongroom.client.format.primitives import KEY, TAG
from strongroom.errors import Invalid

PREFIX: Final = "sr1."
LONGEST: Final = 127  # bytes of a name that can be sealed
_STEP: Final = 32


def is_sealed(name: str) -> bool:
    """Whether a name on the wire is a sealed one."""
    return name.startswith(PREFIX)


def plain(name: str, field: str = "name") -> str:
    """A name to be used as it is: it must not look like a sealed one."""
    if is_sealed(checked_name(name, field)):
        raise Invalid({field: f"must not begin with {PREFIX}"})
    return name


def seal_vault_name(keys: AccountKey, name: str) -> str:
    """A vault's name as the server sees it."""
    return _seal(keys.vault_names(), _vault(keys), plain(name))


def open_vault_name(keys: AccountKey, sealed: str) -> str:
    """A vault's plaintext name."""
    return _open(keys.vault_names(), _vault(keys), sealed)


def seal_collection_name(keys: VaultKey, name: str) -> str:
    """A collection's name as the server sees it; in another vault it looks different."""
    return _seal(keys.collection_names(), _collection(keys), plain(name, "collection"))


def open_collection_name(keys: VaultKey, sealed: str) -> str:
    """A collection's plaintext name."""
    return _open(keys.collection_names(), _collection(keys), sealed)


def _vault(keys: AccountKey) -> bytes:
    return items(label("vault-name"), keys.account)


def _collection(keys: VaultKey) -> bytes:
    return items(label("collection-name"), keys.account, text(keys.vault))


def _keys(key: bytes, place: bytes, padded: bytes) -> tuple[bytes, bytes]:
    """The digest of a name, and the key that follows from it."""
    salt = primitives.hmac_sha256(derive(key, "name-digest"), place + items(padded))
    return salt, primitives.hkdf(key, salt, items(label("name-box")))


def _seal(key: bytes, place: bytes, name: str) -> str:
    raw = text(name)
    if len(raw) > LONGEST:
        raise Invalid({"name": f"must be at most {LONGEST} bytes in UTF-8 to be sealed"})
    padded = (len(raw).to_bytes(1, "big") + raw).ljust(-(-(1 + len(raw)) // _STEP) * _STEP, b"\0")
    salt, fresh = _keys(key, place, padded)
    sealed = PREFIX + to_url(salt + primitives.encrypt(fresh, padded, place))
    if _open(key, place, sealed) != name:
        raise Tampered("What was sealed does not open again; nothing was sent.")
    return sealed


def _open(key: bytes, place: bytes, sealed: str) -> str:
    raw = from_url(sealed.removeprefix(PREFIX)) if is_sealed(sealed) else b""
    if len(raw) < KEY + _STEP + TAG:
        raise Tampered
    salt = raw[:KEY]
    padded = primitives.decrypt(primitives.hkdf(key, salt, items(label("name-box"))), raw[KEY:], place)
    if padded is None or not primitives.equal(_keys(key, place, padded)[0], salt):
        raise Tampered
    end = 1 + padded[0]
    if len(padded) != -(-end // _STEP) * _STEP or any(padded[end:]):
        raise Tampered
    try:
        return plain(padded[1:end].decode())
    except (UnicodeDecodeError, Invalid):
        raise Tampered from None
