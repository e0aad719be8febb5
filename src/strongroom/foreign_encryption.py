"""Opens exports of other programs that are encrypted with a password. Nothing of ours is encrypted here.

Bitwarden: the key is made by PBKDF2 or Argon2id and stretched by HKDF; AES-256-CBC with HMAC-SHA-256 over it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.padding import PKCS7

_PBKDF2, _ARGON2ID = 0, 1
_BLOCK: Final = 16
# What a file may ask for: more would let it hold up the machine.
_MOST_ITERATIONS: Final = 10_000_000
_MOST_PASSES: Final = 20
_MOST_MEMORY: Final = 1_024  # MiB
_MOST_LANES: Final = 16


class BadParameters(ValueError):  # noqa: N818 - the file is refused
    """The file asks for a key derivation that is unknown, or that no export has."""


class Opener:
    """Decrypts the texts of one file."""

    def __init__(self, password: str, file: dict[str, Any]) -> None:
        key = _derived(password.encode("utf-8", "surrogatepass"), file)
        self._key = HKDFExpand(SHA256(), 32, b"enc").derive(key)
        self._mac = HKDFExpand(SHA256(), 32, b"mac").derive(key)

    def __repr__(self) -> str:
        return "Opener(...)"

    def open(self, text: Any) -> bytes | None:
        """The plaintext; None where the text is of another kind, was changed, or has another password."""
        if not isinstance(text, str) or not text.startswith("2."):
            return None
        try:
            nonce, data, mac = (base64.b64decode(part, validate=True) for part in text[2:].split("|"))
        except (binascii.Error, ValueError):
            return None
        if not hmac.compare_digest(hmac.digest(self._mac, nonce + data, "sha256"), mac):
            return None
        if len(nonce) != _BLOCK or not data or len(data) % _BLOCK:
            return None
        decryptor = Cipher(algorithms.AES256(self._key), modes.CBC(nonce)).decryptor()
        unpadder = PKCS7(8 * _BLOCK).unpadder()
        try:
            return unpadder.update(decryptor.update(data) + decryptor.finalize()) + unpadder.finalize()
        except ValueError:
            return None


def _derived(password: bytes, file: dict[str, Any]) -> bytes:
    salt, kind = file.get("salt"), file.get("kdfType")
    if not isinstance(salt, str):
        raise BadParameters
    try:
        salted = salt.encode()
    except UnicodeEncodeError:
        raise BadParameters from None
    if kind == _PBKDF2:
        rounds = _within(file.get("kdfIterations"), _MOST_ITERATIONS)
        return hashlib.pbkdf2_hmac("sha256", password, salted, rounds)
    if kind != _ARGON2ID:
        raise BadParameters
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    passes = _within(file.get("kdfIterations"), _MOST_PASSES)
    memory, lanes = _within(file.get("kdfMemory"), _MOST_MEMORY), _within(file.get("kdfParallelism"), _MOST_LANES)
    made = Argon2id(
        salt=hashlib.sha256(salted).digest(),
        length=32,
        iterations=passes,
        lanes=lanes,
        memory_cost=memory * 1024,
    )
    return made.derive(password)


def _within(value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise BadParameters
    return value
