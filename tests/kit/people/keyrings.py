"""Keyrings of format 2 as the server sees them: a head that it reads, and bytes that mean nothing to it."""

from __future__ import annotations

import base64
import hashlib


def keyring(
    account: str = "ann",
    *,
    slots: str = "first",
    size: int = 148,
    generation: int = 1,
    version: int = 1,
    body: str = "",
) -> str:
    """A keyring of an account. Equal words for the account and for the slots make equal bytes."""
    head = (
        bytes((2, 4))
        + hashlib.sha256(account.encode()).digest()[:16]
        + version.to_bytes(8, "big")
        + generation.to_bytes(4, "big")
        + hashlib.sha256(str(version - 1).encode()).digest()
        + bytes([8])
        + size.to_bytes(2, "big")
        + hashlib.shake_256(slots.encode()).digest(8 * size)
    )
    return base64.b64encode(head + hashlib.sha256(f"{version} {body}".encode()).digest()).decode()
