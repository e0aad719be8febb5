"""Committing authenticated encryption with a fresh key for each message.

box        = salt (32) ‖ commitment (32) ‖ ciphertext ‖ tag (16)
key        = the first 32 bytes of HKDF-SHA-256(key of the purpose, salt, "strongroom/2/box", 64)
commitment = the last 32 bytes of it
ciphertext = AES-256-GCM(key, twelve zero bytes, plaintext, associated data)
"""

from __future__ import annotations

from typing import Final

from strongroom.client.errors import Tampered
from strongroom.client.format import primitives
from strongroom.client.format.encoding import items, label
from strongroom.client.format.primitives import KEY, TAG

OVERHEAD: Final = KEY + KEY + TAG
_INFO: Final = items(label("box"))


def seal(key: bytes, salt: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Encrypt. The salt is 32 fresh random bytes (a sealed name's is a digest of the name)."""
    if len(salt) != KEY or len(key) != KEY:
        raise ValueError("a key and a salt have 32 bytes")
    fresh, commitment = primitives.hkdf_pair(key, salt, _INFO)
    return b"".join((salt, commitment, primitives.encrypt(fresh, plaintext, associated)))


def open_(key: bytes, box: bytes, associated: bytes) -> bytes:
    """Decrypt and verify; raises Tampered unless this key sealed it for this associated data."""
    if len(box) < OVERHEAD:
        raise Tampered
    fresh, commitment = primitives.hkdf_pair(key, box[:KEY], _INFO)
    if not primitives.equal(commitment, box[KEY : 2 * KEY]):
        raise Tampered
    plaintext = primitives.decrypt(fresh, box[2 * KEY :], associated)
    if plaintext is None:
        raise Tampered
    return plaintext
