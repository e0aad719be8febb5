"""The primitives, and nothing built from them: the only file that imports a cryptographic library.

Everything but Argon2id is in WebCrypto, so the same format runs in a browser.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Random = Callable[[int], bytes]


class SecretBytes(bytes):
    """A key, and what is cut from it: its repr shows nothing, so that no traceback with local variables does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SecretBytes(...)"

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return SecretBytes(found) if isinstance(at, slice) else found


class MacKey(SecretBytes):
    """A key of HMAC-SHA-256, prepared once for many messages."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._prepared = HMAC(key, _SHA256)

    def hmac(self, data: bytes) -> bytes:
        """HMAC-SHA-256 of a message under this key."""
        begun = self._prepared.copy()
        begun.update(data)
        return begun.finalize()


class SecretText(str):
    """A password, a recovery key or a token: its repr shows nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SecretText(...)"


random: Final[Random] = os.urandom
equal = hmac.compare_digest

KEY: Final = 32  # bytes of every key, salt, commitment and digest of the format
TAG: Final = 16
NONCE: Final = bytes(12)  # fixed: a key seals once
_SHA256: Final = SHA256()


def sha256(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def hmac_sha256(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.digest(key, data, "sha256")


def hkdf(key: bytes, salt: bytes, info: bytes, length: int = KEY) -> bytes:
    """HKDF-SHA-256, extract and expand."""
    return SecretBytes(HKDF(_SHA256, length, salt, info).derive(key))


def hkdf_pair(key: bytes, salt: bytes, info: bytes) -> tuple[bytes, bytes]:
    """Two keys from one HKDF-SHA-256: the first 32 bytes of 64, and the last."""
    made = HKDF(_SHA256, 2 * KEY, salt, info).derive(key)
    return SecretBytes(made[:KEY]), SecretBytes(made[KEY:])


def encrypt(key: bytes, plaintext: bytes, associated: bytes, nonce: bytes = NONCE) -> bytes:
    """AES-256-GCM under a key that is used for this one message: ciphertext and tag."""
    return AESGCM(key).encrypt(nonce, plaintext, associated)


def decrypt(key: bytes, ciphertext: bytes, associated: bytes, nonce: bytes = NONCE) -> bytes | None:
    """The plaintext, or None if the tag does not fit."""
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, associated)
    except InvalidTag:
        return None


def x25519_public(private: bytes) -> bytes:
    """The X25519 public key of a private key."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def x25519(private: bytes, public: bytes) -> bytes | None:
    """The X25519 shared secret, or None where it would be zero."""
    try:
        pair = X25519PrivateKey.from_private_bytes(private)
        return SecretBytes(pair.exchange(X25519PublicKey.from_public_bytes(public)))
    except ValueError:
        return None


def argon2id(password: bytes, salt: bytes, memory: int, passes: int) -> bytes:
    """Argon2id, version 1.3, one lane, 32 bytes. `memory` is in KiB."""
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    made = Argon2id(salt=salt, length=KEY, iterations=passes, lanes=1, memory_cost=memory).derive(password)
    return SecretBytes(made)
