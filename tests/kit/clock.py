"""A clock that obeys the test."""

from __future__ import annotations

START = 1_731_600_000_000


class Clock:
    """Time as the test says it is."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def pass_(self, milliseconds: int) -> None:
        self.now += milliseconds
