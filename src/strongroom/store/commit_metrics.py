"""Metrics of an engine: commits, and whether the database can be reached. Always counted, for that is cheap."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

# Seconds and writes; what is above the last bound is counted too.
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
WRITES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Histogram:
    """A histogram: counts of values between bounds, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class CommitMetrics:
    """Commits: how many writes shared each, and how long each waited for the disk; whether the database is there."""

    on_lost: Callable[[str], None] | None = None  # called with the reason, once for each loss
    on_found: Callable[[float], None] | None = None  # called with the seconds that it was lost

    def __init__(self) -> None:
        self.lost_at: float | None = None
        self.failed_batches = 0  # queries for many requests that failed; each was run by itself
        self.writes = Histogram(WRITES)
        self.seconds = Histogram(SECONDS)

    def committed(self, writes: int, seconds: float) -> None:
        """Count a commit."""
        self.writes.add(writes)
        self.seconds.add(seconds)

    def lost(self, reason: str) -> None:
        """Record that the database cannot be reached."""
        if self.lost_at is None:
            self.lost_at = time.monotonic()
            if self.on_lost is not None:
                self.on_lost(reason)

    def found(self) -> None:
        """Record that the database can be reached again."""
        if self.lost_at is not None:
            lost_at, self.lost_at = self.lost_at, None
            if self.on_found is not None:
                self.on_found(time.monotonic() - lost_at)
