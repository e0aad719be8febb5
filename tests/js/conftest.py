"""A live server, and TypeScript clients of it behind the interface of the Python ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.moving_accounts import moving  # noqa: F401
from tests.kit.clients import javascript
from tests.kit.clients.typescript import TypeScriptClientFactory
from tests.kit.clients.typescript_devices import Nodes, shared_nodes
from tests.kit.servers.fixtures import named_server, other_server, own_server  # noqa: F401
from tests.kit.servers.live_server import live_server
from tests.kit.servers.process import Server


@pytest.fixture(scope="session", autouse=True)
def _shared_builds(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """All processes that run these tests use the same builds."""
    own = tmp_path_factory.getbasetemp()
    javascript.shared = own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server process that all tests share."""
    with live_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def nodes() -> Nodes:
    """Processes of Node.js for devices that may be killed; all tests share them."""
    return shared_nodes()


@pytest.fixture
def clients(server: Server) -> TypeScriptClientFactory:
    """Makes TypeScript clients; all tests share their process."""
    return TypeScriptClientFactory(f"http://127.0.0.1:{server.port}")
