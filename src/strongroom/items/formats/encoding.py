"""Base64url without padding, as CXF spells bytes."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

_SPELLED: Final = re.compile(r"[A-Za-z0-9_-]*")


def b64url(data: bytes) -> str:
    """Bytes in base64url."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_b64url(text: str) -> bytes | None:
    """The bytes that base64url spells; None where it is none."""
    if not _SPELLED.fullmatch(text):
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
