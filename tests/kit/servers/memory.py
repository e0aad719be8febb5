"""How much memory a process has."""

from __future__ import annotations

import re
from pathlib import Path

LIMIT = 32 * 1024 * 1024  # by which a server may grow while it handles a long list


def resident(pid: int, field: str) -> int:
    """A size of a process in bytes, by its name in /proc: VmRSS is the present one, VmHWM the largest so far."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
