"""Timeouts for requests: `asyncio.timeout` needs a task, and not every request runs as one."""

from __future__ import annotations

import asyncio


async def become_task() -> None:
    """Continue as a task; `Exchange.begin` creates one for a coroutine that yields without a future."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


async def timeout(seconds: float) -> asyncio.Timeout:
    """A timeout, entered with `async with await`; raises TimeoutError when it expires."""
    await become_task()
    return asyncio.timeout(seconds)
