"""One-time codes (TOTP, RFC 6238), and the encryption of their secrets at rest.

To check a code the server must know its secret. So this is the one secret that the server encrypts by itself, under a
key outside of the database. Nothing here opens data of a user.
"""

from __future__ import annotations

import base64
import hmac
import os
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

STEP: Final = 30_000  # milliseconds that a code is valid for
DIGITS: Final = 6
_DRIFT: Final = 1  # steps by which the clock of a device may be ahead or behind
_SECRET_BYTES: Final = 20  # as long as the hash that RFC 4226 uses
_NONCE_BYTES: Final = 12


def new_secret() -> bytes:
    """A new secret."""
    return os.urandom(_SECRET_BYTES)


def code_at(secret: bytes, step: int) -> str:
    """The code of a step (RFC 4226): a truncated HMAC-SHA-1 of its number."""
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def matching_step(secret: bytes, code: str, now: int, last_step: int) -> int | None:
    """The step of a code, if it is valid at `now` (milliseconds) and after the last step that counted; else None."""
    current, given, found = now // STEP, code.replace(" ", "").encode(), None
    for step in range(current - _DRIFT, current + _DRIFT + 1):
        if hmac.compare_digest(code_at(secret, step).encode(), given) and step > last_step:
            found = step
    return found


def spelled(secret: bytes) -> str:
    """A secret in base32, as people type it into an app."""
    return base64.b32encode(secret).decode().rstrip("=")


def uri(secret: bytes, issuer: str, email: str) -> str:
    """The `otpauth://` URI of a secret, as apps read it from a QR code."""
    parameters = {"secret": spelled(secret), "issuer": issuer, "algorithm": "SHA1", "digits": DIGITS, "period": 30}
    label = f"{quote(issuer, safe='')}:{quote(email, safe='@')}"
    return f"otpauth://totp/{label}?{urlencode(parameters, quote_via=quote)}"


class SealedSecret(NamedTuple):
    """A secret as it is stored: which key opens it, and the ciphertext."""

    key_id: str
    text: str


class SecretBox:
    """Seals secrets under the first of its keys, and opens what any of them has sealed."""

    def __init__(self, *secrets: bytes) -> None:
        keys = [_derived(secret, b"strongroom one-time codes: key") for secret in secrets]
        ids = [_derived(secret, b"strongroom one-time codes: id")[:6].hex() for secret in secrets]
        self.key_id = ids[0]
        self._keys = dict(zip(reversed(ids), map(AESGCM, reversed(keys)), strict=True))

    def __repr__(self) -> str:
        return "SecretBox(...)"

    def knows(self, key_id: str) -> bool:
        """Whether it has the key of this id."""
        return key_id in self._keys

    def seal(self, user_id: str, secret: bytes) -> SealedSecret:
        """A secret of this account, sealed under the current key."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._keys[self.key_id].encrypt(nonce, secret, user_id.encode())
        return SealedSecret(self.key_id, base64.b64encode(nonce + sealed).decode())

    def open(self, user_id: str, sealed: SealedSecret) -> bytes | None:
        """The secret of this account; None if no key opens it, or if it was damaged or is of another account."""
        key = self._keys.get(sealed.key_id)
        try:
            data = base64.b64decode(sealed.text, validate=True)
            return None if key is None else key.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], user_id.encode())
        except (InvalidTag, ValueError):
            return None


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret)
