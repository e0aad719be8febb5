"""A log that nobody reads: the server goes on, and says later how much was left out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.kit.network.ports import free_port
from tests.kit.network.raw_http import connected, request, responses
from tests.kit.programs import processes

REQUESTS = 4_000  # some 200 bytes each; a pipe takes 64 KiB, and each process keeps 256 KiB
TOGETHER = 100  # requests that are sent at once


@contextmanager
def unread(home: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx2.Client]]:
    """A server whose standard error is a pipe that nobody reads yet."""
    port = free_port()
    env = {**os.environ, "JWT_SECRET": "x" * 32, "DB_PATH": str(home / "v.db"), "PORT": str(port), **settings}
    process = processes.Popen(
        [sys.executable, "-m", "strongroom", "serve"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    while b"docs" not in process.stdout.readline():
        assert process.poll() is None
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=10, trust_env=False) as http:
            yield process, http
    finally:
        process.kill()
        process.communicate()


def ask(http: httpx2.Client) -> None:
    """Send the requests over one connection; all are answered."""
    with connected(int(http.base_url.port or 0)) as wire:
        for _ in range(REQUESTS // TOGETHER):
            wire.sendall(request("GET", "/health") * TOGETHER)
            assert {response.status for response in responses(wire, TOGETHER)} == {200}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_log_that_nobody_reads_stalls_nobody(tmp_path: Path, workers: str) -> None:
    """All are answered; once somebody reads, a line tells how many were left out, and nothing after it is."""
    with unread(tmp_path, LOG_LEVEL="debug", WORKERS=workers) as (process, http):
        ask(http)
        assert process.stderr is not None
        lines: list[dict[str, object]] = []
        told = threading.Event()

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(json.loads(line))
                if "logLinesLost" in lines[-1]:
                    told.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert told.wait(20)
        assert http.get("/ready").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        reader.join(20)
        lost = sum(int(str(line["logLinesLost"])) for line in lines if "logLinesLost" in line)
        requests = sum(line["event"] == "request" for line in lines)
        assert requests + lost == REQUESTS + 1
        assert lost > 0
        assert any(line.get("route") == "/ready" for line in lines)


def test_an_end_does_not_hang_on_it(tmp_path: Path) -> None:
    """The pipe is full, and stays so."""
    with unread(tmp_path, LOG_LEVEL="debug") as (process, http):
        ask(http)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_pipe_whose_reader_is_gone_stops_nobody(tmp_path: Path) -> None:
    """Its writes fail, and the server goes on."""
    with unread(tmp_path, LOG_LEVEL="debug") as (process, http):
        assert process.stderr is not None
        process.stderr.close()
        for _ in range(50):
            assert http.get("/health").status_code == 200
        process.stderr = None
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
