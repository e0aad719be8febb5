"""What a server uses: CPU time and memory of a process and all that it started."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def tree(roots: list[int]) -> list[int]:
    """These processes and all their descendants."""
    found: list[int] = []
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid in found:
            continue
        found.append(pid)
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of these processes, their ended children included."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        total += sum(int(field) for field in fields[11:15])
    return total / _TICK


def memory_bytes(pids: list[int]) -> int:
    """Resident memory. Of several processes each counts its share of what they share, or it would count many times."""
    kind = "Rss:" if len(pids) == 1 else "Pss:"
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(kind))
    return total * 1024


def peak_bytes(pids: list[int]) -> int:
    """The most memory that each of these ever had, added up."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return total * 1024


def pin(pids: list[int], cpus: set[int]) -> None:
    """Keep these processes, every thread of them, on these cores."""
    for pid in pids:
        try:
            threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        except OSError:
            continue
        for thread in threads:
            try:
                os.sched_setaffinity(thread, cpus)
            except OSError:
                continue
