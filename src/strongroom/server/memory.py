"""Returns freed memory to the system: large buffers at once, the rest periodically."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MIB: Final = 1024 * 1024
_LARGE: Final = 240 * 1024  # an allocation of this size or more has pages of its own, unmapped when it is freed
_SLACK: Final = 8 * MIB  # that may stay free at the top of the heap
_ARENAS: Final = 2
_CHECK_SECONDS: Final = 10.0
_CHECKS_PER_COLLECTION: Final = 3
_IDLE: Final = 0.05  # of a processor: a process that uses less is idle
_GROWTH: Final = 16 * MIB  # that is tolerated
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def configure() -> None:
    """Fix the thresholds of glibc's allocator.

    Left alone, it raises them with the largest buffer that was ever freed, and one document of 4 MiB is enough for all
    later ones to fragment the heap. With another C library nothing is changed.
    """
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _SLACK)
        mallopt(_M_ARENA_MAX, _ARENAS)


async def return_free_memory(release_caches: Callable[[], None]) -> None:
    """Return free memory to the system now and then, while the process is larger than it was at its start.

    Caches are released only when there is next to nothing to do; under load they are worth their memory.
    """
    trim, rest, used = _function("malloc_trim"), resident(), time.process_time()
    for number in itertools.count():
        if trim is None or not rest:
            return
        await asyncio.sleep(_CHECK_SECONDS)
        used_before, used = used, time.process_time()
        if resident() > rest + _GROWTH:
            if number % _CHECKS_PER_COLLECTION == 0:
                gc.collect()  # requests that were refused may leave cycles, and those may hold buffers
            if used - used_before < _IDLE * _CHECK_SECONDS:
                release_caches()
            await asyncio.to_thread(trim, 0)  # ctypes releases the interpreter lock


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _function(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
