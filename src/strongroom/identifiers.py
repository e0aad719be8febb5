"""UUIDs: generated as version 7, so that new rows go to the end of an index; parsed in any version."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def new_uid(now: int) -> str:
    """A UUIDv7 for this millisecond: 48 bits of time, 74 of randomness."""
    random = os.urandom(10).hex()
    return f"{_prefix(now)}{random[:3]}-{_VARIANT[random[3]]}{random[4:7]}-{random[7:19]}"


@lru_cache(maxsize=4)
def _prefix(now: int) -> str:
    """The common prefix of all UUIDs of one millisecond."""
    time = f"{now & 0xFFFF_FFFF_FFFF:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def canonical(text: str) -> str | None:
    """The canonical form of a UUID, in lower case; None if it is malformed."""
    return text.lower() if _UUID.fullmatch(text) else None
