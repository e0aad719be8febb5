"""The time of this machine, for tests that cannot pass a clock in."""

from __future__ import annotations

import time


def now() -> int:
    """The time in whole Unix milliseconds."""
    return time.time_ns() // 1_000_000
