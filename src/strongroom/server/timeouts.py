"""How long something may take. Only a task can be told that its time is over, and not every request is one."""

from __future__ import annotations

import asyncio


async def in_a_task() -> None:
    """Go on as a task; see `Exchange.begin`, which takes a bare turn of the loop as the wish to become one."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


async def patience(seconds: float) -> asyncio.Timeout:
    """A limit on what is done within it, to be entered with `async with await`; beyond it comes TimeoutError."""
    await in_a_task()
    return asyncio.timeout(seconds)
