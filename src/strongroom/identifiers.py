"""UUIDs: made as version 7, so that new rows land at the end of an index; read in any version."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_uid(now: int) -> str:
    """A UUIDv7 for this millisecond: 48 bits of time, 74 of randomness."""
    chance = os.urandom(10).hex()
    return f"{_beginning(now)}{chance[:3]}-{_VARIANT[chance[3]]}{chance[4:7]}-{chance[7:19]}"


@lru_cache(maxsize=4)
def _beginning(now: int) -> str:
    """What all those of one millisecond begin with."""
    time = f"{now & 0xFFFF_FFFF_FFFF:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def canonical(text: str) -> str | None:
    """The one spelling of a UUID, or None if it is not one. UUIDs are read without regard to case."""
    return text.lower() if _UUID.fullmatch(text) else None
