"""Tests that are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from strongroom.store.postgres.engine import PostgresDatabase

_opened: list[PostgresDatabase] = []


def async_test(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Let a test be a coroutine."""

    @wraps(test)
    def run(*args: Any, **keywords: Any) -> None:
        asyncio.run(_to_the_end(test(*args, **keywords)))

    return run


def close_after_test(database: PostgresDatabase) -> None:
    """Close this database when the test ends that opened it."""
    _opened.append(database)


async def _to_the_end(test: Coroutine[Any, Any, None]) -> None:
    """Connections that a test leaves open are closed on the loop that they belong to."""
    try:
        await test
    finally:
        while _opened:
            await _opened.pop().close()
