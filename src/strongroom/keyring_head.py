"""The public head of a keyring: all that the server reads of one (docs/format.md).

The server learns which bytes belong to whom and which of them open the account, so that it can ask for the password
before those change. It holds no key that opens any of them.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec import Struct

_FORMAT: Final = bytes((2, 4))
_ACCOUNT: Final = slice(2, 18)
_GENERATION: Final = slice(26, 30)
_COUNT: Final = 62  # of the slots
_SIZE: Final = slice(63, 65)  # of each
_FIXED: Final = 88  # characters in which the part before the slots stands


class KeyringHead(Struct, frozen=True):
    """The account id of a keyring, and what opens the account: the key's generation, and slots with both figures."""

    account: bytes
    slots: bytes


def read(keyring: str) -> KeyringHead | None:
    """The head of a keyring; None for one of another format, of which nothing is known."""
    try:
        fixed = base64.b64decode(keyring[:_FIXED], validate=True)
        if not fixed.startswith(_FORMAT) or len(fixed) < _SIZE.stop:
            return None
        end = _SIZE.stop + fixed[_COUNT] * int.from_bytes(fixed[_SIZE], "big")
        raw = base64.b64decode(keyring[: -(-end // 3) * 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) < end:
        return None
    return KeyringHead(raw[_ACCOUNT], raw[_GENERATION] + raw[_COUNT:end])


def account_of(keyring: str) -> bytes | None:
    """The account id of a keyring; None for one of another format."""
    head = read(keyring)
    return None if head is None else head.account
