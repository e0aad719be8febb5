"""A server that has a public name, which passkeys need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.harness import Server
from tests.kit.network.ports import free_port


@pytest.fixture(scope="session")
def named_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server that has a name, and so passkeys."""
    port = str(free_port())
    running = Server(tmp_path_factory.mktemp("named"), PORT=port, PUBLIC_URL=f"http://localhost:{port}")
    try:
        yield running.start()
        assert running.end() == 0
        assert "Traceback" not in running.log()
    finally:
        running.abandon()
