"""A live server, and TypeScript clients of it behind the interface of the Python ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.harness import Server
from tests.kit.clients import javascript
from tests.kit.clients.typescript import TypeScriptClientFactory
from tests.kit.clients.typescript_devices import Nodes


@pytest.fixture(scope="session", autouse=True)
def _shared_builds(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """All processes that run these tests use the same builds."""
    own = tmp_path_factory.getbasetemp()
    javascript.shared = own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server process that all tests share."""
    running = Server(tmp_path_factory.mktemp("server"))
    try:
        yield running.start()
        assert running.end() == 0
        assert "Traceback" not in running.log()
    finally:
        running.abandon()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server for one test alone, not yet started."""
    running = Server(tmp_path / "server")
    yield running
    running.abandon()


@pytest.fixture(scope="session")
def _typescript() -> Iterator[TypeScriptClientFactory]:
    made = TypeScriptClientFactory("")
    yield made
    made.close()


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Processes of Node.js for devices that may be killed."""
    made = Nodes()
    yield made
    made.close()


@pytest.fixture
def clients(_typescript: TypeScriptClientFactory, server: Server) -> TypeScriptClientFactory:
    """Makes TypeScript clients; all tests share their process."""
    _typescript.url = f"http://127.0.0.1:{server.port}"
    return _typescript
