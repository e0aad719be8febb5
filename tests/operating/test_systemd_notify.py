"""Notifications to systemd: the server listens, reloads, stops, and its event loop turns."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.kit.programs.systemd_manager import manager
from tests.kit.servers.server_process import running
from tests.kit.waiting import until

SECRET = {"JWT_SECRET": "x" * 32}
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


@WORKERS
@pytest.mark.parametrize("abstract", [False, True])
def test_the_life_of_a_server_is_told(tmp_path: Path, workers: str, *, abstract: bool) -> None:
    """READY when it listens, RELOADING and READY at SIGHUP, STOPPING at SIGTERM; once each, by one process."""
    name = f"strongroom-{os.getpid()}-{workers}" if abstract else str(tmp_path / "notify")
    with (
        manager("\0" + name if abstract else name) as it,
        running(tmp_path, WORKERS=workers, NOTIFY_SOCKET=("@" if abstract else "") + name, **SECRET) as (process, _),
    ):
        until(lambda: it.has_received("READY=1"), "READY=1")
        assert it.messages == [message for message in it.messages if "RELOADING" not in message]
        process.send_signal(signal.SIGHUP)
        until(lambda: it.count("READY=1") == 2, "the end of the reload")
        [reloading] = [message for message in it.messages if "RELOADING=1" in message.split("\n")]
        [moment] = [int(line[15:]) for line in reloading.split("\n") if line.startswith("MONOTONIC_USEC=")]
        assert 0 <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000 - moment < 60_000_000
        assert it.messages.index(reloading) < len(it.messages) - 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert it.count("STOPPING=1") == 1
        assert not it.has_received("WATCHDOG=1")  # nobody asked for it


@WORKERS
def test_the_watchdog_is_fed_while_the_loop_turns(tmp_path: Path, workers: str) -> None:
    """A process that stands still does not feed it; with workers, one that stands still is enough."""
    path = str(tmp_path / "notify")
    given = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000", **SECRET}
    with manager(path) as it, running(tmp_path, WORKERS=workers, **given) as (process, _):
        until(lambda: it.count("WATCHDOG=1") >= 3, "the watchdog to be fed")
        pids = [process.pid] if workers == "1" else children(process.pid)
        assert len(pids) == int(workers)
        os.kill(pids[-1], signal.SIGSTOP)
        try:
            time.sleep(2.5)  # longer than what is known of it counts
            it.read()
            before = it.count("WATCHDOG=1")
            time.sleep(2)  # four times as long as between two of them
            assert it.count("WATCHDOG=1") == before
        finally:
            os.kill(pids[-1], signal.SIGCONT)
        until(lambda: it.count("WATCHDOG=1") > before, "the watchdog to be fed again")


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_watchdog_for_another_process_is_not_fed(tmp_path: Path) -> None:
    """WATCHDOG_PID names whom it is for."""
    path = str(tmp_path / "notify")
    given = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1", **SECRET}
    with manager(path) as it, running(tmp_path, **given):
        until(lambda: it.has_received("READY=1"), "READY=1")
        time.sleep(1)
        assert not it.has_received("WATCHDOG=1")


def test_a_backup_is_not_taken_for_the_server(tmp_path: Path) -> None:
    """What the server starts does not speak to systemd in its name."""
    path = str(tmp_path / "notify")
    given = {"NOTIFY_SOCKET": path, "BACKUP_DIR": str(tmp_path / "b"), "WATCHDOG_USEC": "60000000", **SECRET}
    with manager(path) as it, running(tmp_path, **given):
        until(lambda: list((tmp_path / "b").glob("*.backup")), "a backup")
        assert it.count("READY=1") == 1
