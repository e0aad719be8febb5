"""An app for one-time codes, written for the tests: RFC 6238 in its own words."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct


def code(secret: str, now: int, steps: int = 0) -> str:
    """The code of a secret in base32 at a time in milliseconds, or some steps of 30 seconds later or earlier."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    digest = hmac.new(key, struct.pack(">Q", now // 30_000 + steps), hashlib.sha1).digest()
    offset = digest[19] & 0xF
    (number,) = struct.unpack(">I", digest[offset : offset + 4])
    return str((number & 0x7FFFFFFF) % 1_000_000).zfill(6)


def wrong_code(secret: str, now: int) -> str:
    """A code that is right at none of the steps around this time."""
    near = {code(secret, now, steps) for steps in range(-3, 4)}
    return next(text for number in range(10) if (text := f"{number:06}") not in near)
