"""UUIDs: made as version 7, so that new rows land at the end of an index; read in any version."""

from __future__ import annotations

import os
import re

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_uid(now: int) -> str:
    """A UUIDv7 for this millisecond: 48 bits of time, 74 of randomness."""
    tail = int.from_bytes(os.urandom(10), "big")
    high = (now & 0xFFFF_FFFF_FFFF) << 16 | 0x7000 | tail >> 68
    low = 0x8000_0000_0000_0000 | tail & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{high << 64 | low:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def canonical(text: str) -> str | None:
    """The one spelling of a UUID, or None if it is not one. UUIDs are read without regard to case."""
    return text.lower() if _UUID.fullmatch(text) else None
