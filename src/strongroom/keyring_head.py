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
_SLOTS: Final = slice(62, 1246)


class KeyringHead(Struct, frozen=True):
    """The account id of a keyring, and what opens the account: the generation of its key and the slots."""

    account: bytes
    slots: bytes


def read(keyring: str) -> KeyringHead | None:
    """The head of a keyring; None for one of another format, of which nothing is known."""
    try:
        raw = base64.b64decode(keyring[:1664], validate=True)  # of which the head takes 1,246 bytes
    except (binascii.Error, ValueError):
        return None
    if not raw.startswith(_FORMAT) or len(raw) < _SLOTS.stop:
        return None
    return KeyringHead(raw[_ACCOUNT], raw[_GENERATION] + raw[_SLOTS])


def account_of(keyring: str) -> bytes | None:
    """The account id of a keyring; None for one of another format."""
    head = read(keyring)
    return None if head is None else head.account
