"""Boxes that are sealed to a public key: for a secret that is not at hand.

sealed = ephemeral public key (32) ‖ box under HKDF(X25519 of both, both public keys)
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.format import box, primitives
from strongroom.client.format.encoding import items, label
from strongroom.client.format.primitives import KEY

OVERHEAD: Final = KEY + box.OVERHEAD
_KEY_PAIR: Final = items(label("key-pair"))
_SEALED_KEY: Final = items(label("sealed-key"))


class KeyPair(Struct, frozen=True):
    """An X25519 key pair that follows from a secret."""

    private: bytes
    public: bytes

    @classmethod
    def of(cls, secret: bytes) -> KeyPair:
        """The key pair of a secret."""
        private = primitives.hkdf(secret, b"", _KEY_PAIR)
        return cls(private, primitives.x25519_public(private))

    def __repr__(self) -> str:
        return "KeyPair(...)"


def seal(public: bytes, plaintext: bytes, associated: bytes, random: primitives.Random) -> bytes:
    """A box that only the private key of this public key opens."""
    ephemeral = random(KEY)
    shared = primitives.x25519(ephemeral, public)
    if shared is None:
        raise Tampered
    point = primitives.x25519_public(ephemeral)
    key = _box_key(shared, point, public)
    made = box.seal(key, random(KEY), plaintext, associated)
    if box.open_(key, made, associated) != plaintext:
        raise Tampered("What was sealed does not open again; nothing was sent.")
    return point + made


def open_(pair: KeyPair, sealed: bytes, associated: bytes) -> bytes:
    """What was sealed to this key pair for this associated data."""
    if len(sealed) < OVERHEAD:
        raise Tampered
    shared = primitives.x25519(pair.private, sealed[:KEY])
    if shared is None:
        raise Tampered
    return box.open_(_box_key(shared, sealed[:KEY], pair.public), sealed[KEY:], associated)


def filler(length: int, random: primitives.Random) -> bytes:
    """Bytes that nobody can tell from a sealed box of this length: a point of the curve, then random ones."""
    return primitives.x25519_public(random(KEY)) + random(length - KEY)


def _box_key(shared: bytes, point: bytes, public: bytes) -> bytes:
    return primitives.hkdf(shared, point + public, _SEALED_KEY)
