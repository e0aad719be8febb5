"""A live server, and clients of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.client.moving_accounts import moving, url_of  # noqa: F401
from tests.kit.clients.crew import Crew
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory, PythonClientFactory
from tests.kit.clients.pair import Pair
from tests.kit.clients.typescript import TypeScriptClientFactory
from tests.kit.clients.typescript_devices import MixedCrew, shared_nodes
from tests.kit.network.proxy import Proxy
from tests.kit.servers.fixtures import named_server, other_server, own_server  # noqa: F401
from tests.kit.servers.live_server import live_server
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.kit.servers.restartable_server import RestartableServer

PYTHON: Final = ("blocking", "awaiting")
TYPESCRIPT: Final = "typescript"
ON_SQLITE, ON_POSTGRES = "SQLite", "PostgreSQL"  # two devices in Python, with a server on this engine
MIXED: Final = ("TypeScript here", "TypeScript there")  # one device in each language, on SQLite


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers by which a test asks for more kinds of clients."""
    config.addinivalue_line(
        "markers", "both_languages: of `clients`, TypeScript ones too; of `devices`, one in each language too"
    )
    config.addinivalue_line("markers", "awaiting_only: of `clients`, no blocking ones")
    config.addinivalue_line("markers", "both_engines: of `devices`, two with a server on PostgreSQL too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with each kind of clients, or of devices, that its markers ask for."""
    marked = {mark.name for mark in metafunc.definition.iter_markers()}
    both_languages = "both_languages" in marked
    assert not both_languages or {"clients", "named_clients", "devices"} & {*metafunc.fixturenames}, "nothing to vary"
    for fixture in ("clients", "named_clients"):
        if fixture in metafunc.fixturenames:
            kinds = PYTHON[1:] if "awaiting_only" in marked else PYTHON
            metafunc.parametrize(fixture, [*kinds, TYPESCRIPT] if both_languages else kinds, indirect=True)
    if "devices" in metafunc.fixturenames and marked & {"both_languages", "both_engines"}:
        engines = [ON_SQLITE, ON_POSTGRES] if "both_engines" in marked else [ON_SQLITE]
        metafunc.parametrize("devices", [*engines, *MIXED] if both_languages else engines, indirect=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server process that the tests of a module share: wrong passwords of all would add up to its limit."""
    with live_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def factory(kind: str, url: str) -> ClientFactory:
    """Makes clients of this kind, of the server at this address."""
    return TypeScriptClientFactory(url) if kind == TYPESCRIPT else PythonClientFactory(kind, url)


@pytest.fixture
def clients(request: pytest.FixtureRequest, server: Server) -> Iterator[ClientFactory]:
    """Makes clients, of each kind in turn."""
    made = factory(request.param, url_of(server))
    yield made
    made.close()


@pytest.fixture
def named_clients(request: pytest.FixtureRequest, named_server: Server) -> Iterator[ClientFactory]:  # noqa: F811
    """Makes clients of a server that has passkeys, of each kind in turn."""
    made = factory(request.param, f"http://localhost:{named_server.port}")
    yield made
    made.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy before the server."""
    made = Proxy(server.port)
    yield made
    made.close()


@pytest.fixture
def pair(clients: ClientFactory, tmp_path: Path) -> Iterator[Pair]:
    """Two devices that are in step."""
    made = Pair(clients, tmp_path)
    yield made
    made.close()


@pytest.fixture
def devices(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Devices]:
    """Two devices that are in step with a server whose clock can be set."""
    kind = getattr(request, "param", ON_SQLITE)
    database = postgres().migrated() if kind == ON_POSTGRES else str(tmp_path / "vault.db")
    server = RestartableServer(database)
    if kind in MIXED:
        crew: Crew = MixedCrew(server, 2, shared_nodes(), lambda number: number == MIXED.index(kind))
    else:
        crew = Crew(server, 2)
    made = Devices(server, tmp_path, crew)
    yield made
    made.close()
    crew.close()
    server.close()
    if kind == ON_POSTGRES:
        postgres().discard(database)
