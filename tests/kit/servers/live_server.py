"""A server in a process of its own, which must end without a fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.servers.process import Server


@contextmanager
def live_server(folder: Path, **settings: str) -> Iterator[Server]:
    """A server that runs, and has nothing to report at its end."""
    running = Server(folder, **settings)
    try:
        yield running.start()
        assert running.end() == 0
        assert "Traceback" not in running.log()
    finally:
        running.abandon()
