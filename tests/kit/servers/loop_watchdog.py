"""`strongroom`, with a watchdog on its event loop: which callbacks kept it busy, in processor time of its thread.

    python tests/kit/servers/loop_watchdog.py serve ...

Processor time does not pass while the machine does other things, but it passes faster on a busy machine, where caches
and cores are shared. So each callback is compared with an empty loop of Python that is run right after it: `turns` says
how many turns of that loop it took. Each callback that took longer than `NOTED`, as that loop runs at the start of the
process, is a line of JSON in the file that WATCHDOG_FILE names. The event loop is asyncio's own, whose callbacks can be
measured; what they run is the same. With WATCHDOG_PLANT=1, `GET /health` burns as much as 80 ms, so that a test can see
it caught. With WATCHDOG_CHEAP=1, passwords are hashed at the least cost.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

MILLISECOND = 54_000  # turns of an empty loop, on an idle machine of 2024
NOTED = 20 * MILLISECOND  # less than half of what a test allows
PLANTED = 80 * MILLISECOND
_COMPARED = 100_000  # turns


def watch(path: Path) -> None:
    """Measure every callback of every loop in this process from now on."""
    run = asyncio.Handle._run
    noted = min(_seconds(_COMPARED) for _ in range(5)) * NOTED / _COMPARED

    def measured(handle: asyncio.Handle) -> Any:
        began = time.thread_time()
        try:
            return run(handle)
        finally:
            taken = time.thread_time() - began
            if taken > noted and threading.current_thread() is threading.main_thread():
                turns = round(taken / _seconds(_COMPARED) * _COMPARED)
                with path.open("a") as file:
                    file.write(json.dumps({"turns": turns, "what": _name(handle)}) + "\n")

    asyncio.Handle._run = measured  # type: ignore[method-assign, assignment]


def _seconds(turns: int) -> float:
    """Processor time of an empty loop, on this thread."""
    began = time.thread_time()
    for _ in range(turns):
        pass
    return time.thread_time() - began


def _name(handle: asyncio.Handle) -> str:
    """What a callback is: its function, or the coroutine of its task."""
    callback: Any = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", "a coroutine")
    return getattr(callback, "__qualname__", None) or repr(type(callback))


def plant() -> None:
    """Let a request burn processor time on the loop, as no request may."""
    from strongroom.server.app import App

    handle = App.handle

    async def slow(self: App, request: Any) -> Any:
        if request.path == b"/health":
            _seconds(PLANTED)
        return await handle(self, request)

    App.handle = slow  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # asyncio's own loop is taken where there is none
    watch(Path(os.environ["WATCHDOG_FILE"]))
    if os.environ.get("WATCHDOG_PLANT"):
        plant()
    if os.environ.get("WATCHDOG_CHEAP"):
        sys.path.insert(0, str(Path(__file__).parents[3]))
        from tests.kit import cheap_hashing

        cheap_hashing.install(client=False)
    from strongroom.cli import main

    sys.exit(main())
