"""UUIDs: made as version 7, so that new rows land at the end of an index; read in any version."""

from __future__ import annotations

import os
import re

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_uid(now: int) -> str:
    """A UUIDv7 for this millisecond: 48 bits of time, 74 of randomness."""
    time = f"{now & 0xFFFF_FFFF_FFFF:012x}"
    chance = os.urandom(10).hex()
    variant = "89ab"[int(chance[3], 16) & 3]
    return f"{time[:8]}-{time[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"


def canonical(text: str) -> str | None:
    """The one spelling of a UUID, or None if it is not one. UUIDs are read without regard to case."""
    return text.lower() if _UUID.fullmatch(text) else None
