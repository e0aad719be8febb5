"""Key derivation descriptors of clients: small objects that the server stores and never interprets.

A prelogin request gets a descriptor for every email, with an account or not. A decoy has the form that our own clients
send (docs/format.md): the current parameters, and pseudorandom bytes derived from the email with a secret; the sealed
key begins with a public key, as those of clients do.
"""

from __future__ import annotations

import base64
import hmac
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

Kdf = dict[str, str | int | bool]

_SALT: Final = 16
_RECOVERY: Final = 112  # bytes after the public key
_PARAMETERS: Final[Kdf] = {
    "format": 2,
    "kdf": "argon2id",
    "memory": 65_536,
    "passes": 3,
    "lanes": 1,
    "secretKey": False,
}
_LABEL: Final = b"strongroom/2/decoy/"

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(Kdf).decode


def canonical_json(kdf: Kdf) -> str:
    """Canonical JSON of a descriptor, as it is stored: the order of its fields does not identify a client."""
    return _encode(kdf).decode()


def parse(text: str) -> Kdf:
    """A descriptor as plain data."""
    return _decode(text)


class Decoys:
    """Decoy descriptors for emails without one. The same email always gets the same decoy, on every node."""

    def __init__(self, secret: str) -> None:
        self._secret = bytes.fromhex(secret)

    def __repr__(self) -> str:
        return "Decoys(...)"

    def of(self, email: str) -> str:
        """The decoy of a normalised email."""
        stream = b"".join(
            hmac.digest(self._secret, _LABEL + bytes([block]) + email.encode(), "sha512") for block in (1, 2, 3)
        )
        salt, rest = stream[:_SALT], stream[_SALT : _SALT + _RECOVERY]
        private = stream[_SALT + _RECOVERY :][:32]
        recovery = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw() + rest
        return canonical_json({**_PARAMETERS, "salt": _base64(salt), "recovery": _base64(recovery)})


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
