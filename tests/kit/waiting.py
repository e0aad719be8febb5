"""Waits for a condition, and fails with a sentence if it does not come: for tests, which never sleep for luck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds; a loaded machine may need many


def until(condition: Callable[[], T], what: str, seconds: float = PATIENCE, *, pause: float = 0.02) -> T:
    """Wait until the condition gives something true; that. It is asked for again after each pause."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(pause)
    return value


async def until_async(condition: Callable[[], T], what: str = "a condition", seconds: float = PATIENCE) -> T:
    """The same, while other tasks go on."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        await asyncio.sleep(0.005)
    return value
