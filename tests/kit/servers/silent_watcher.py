"""Somebody who looks on at a copy, a backup or a restore, and says nothing."""

from __future__ import annotations

from collections.abc import Callable


class SilentWatcher:
    """Ignores the progress, or does something at each step."""

    def __init__(self, then: Callable[[str], None] = lambda _: None) -> None:
        self._then = then

    def moved(self, doing: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        self._then(doing)

    def said(self, sentence: str) -> None:
        pass

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        pass
