"""Process metrics: memory, files, processor time, start; under the standard names of Prometheus."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from strongroom.server import memory


def figures() -> dict[str, float]:
    """The metrics of this process; open files and their limit only where there is /proc."""
    found: dict[str, float] = {"process_cpu_seconds_total": time.process_time()}
    if resident := memory.resident():
        found["process_resident_memory_bytes"] = resident
    with suppress(OSError, ImportError):
        import resource

        found["process_open_fds"] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
        found["process_max_fds"] = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return found


def started_at(pid: int) -> float | None:
    """When a process started, in seconds since 1970; None where the system does not say.

    It is counted from the boot, and the boot's own time stands in a file that a unit may hide.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot
