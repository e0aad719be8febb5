"""Live servers of several folders: the conftest.py of each imports those that its tests use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.network.ports import free_port
from tests.kit.servers.live_server import live_server
from tests.kit.servers.process import Server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server for one test alone, not yet started."""
    running = Server(tmp_path / "server")
    yield running
    running.abandon()


@pytest.fixture(scope="session")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A second server process, for accounts that move."""
    with live_server(tmp_path_factory.mktemp("other_server")) as running:
        yield running


@pytest.fixture(scope="session")
def named_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server that has a name, and so passkeys."""
    port = str(free_port())
    with live_server(tmp_path_factory.mktemp("named"), PORT=port, PUBLIC_URL=f"http://localhost:{port}") as running:
        yield running
