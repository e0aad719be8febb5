"""The servers and the people that the contract tests share; each worker process has its own."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.kit.network.responses import Json
from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import ENGINES, Server, fresh_address

SETTINGS: dict[str, dict[str, str]] = {
    "both": {},
    "document": {"VAULT_VARIANT": "document"},
    "blob": {"VAULT_VARIANT": "blob"},
    "tight": {
        "MAX_BODY_BYTES": "20000",
        "CORS_ORIGINS": "https://app.example",
        "JWT_ISSUER": "acme",
        "JWT_ACCESS_EXPIRY": "12h",
        "JWT_REFRESH_EXPIRY": "2w",
    },
    "brief": {"JWT_ACCESS_EXPIRY": "900ms", "JWT_REFRESH_EXPIRY": "2s"},
}


class Servers:
    """The servers that tests share: each is started when the first test asks for it, and ends with the last test."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._running: dict[tuple[str, str], Server] = {}

    def get(self, name: str, engine: str) -> Server:
        """The server with the settings of this name, on this engine."""
        server = self._running.get((name, engine))
        if server is None:
            server = Server(self._factory.mktemp(f"{name}-{engine}"), engine, **SETTINGS[name])
            self._running[name, engine] = server
            server.start()
        return server

    def end(self) -> None:
        """End them all; each ends well, and has met no fault."""
        try:
            for server in self._running.values():
                assert server.end() == 0
                assert "Traceback" not in server.log()
        finally:
            for server in self._running.values():
                server.abandon()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers of this worker process."""
    made = Servers(tmp_path_factory)
    yield made
    made.end()


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    name: str = request.param
    return name


@pytest.fixture
def lone(tmp_path: Path, engine: str) -> Iterator[Server]:
    """A server for one test alone, not yet started."""
    server = Server(tmp_path, engine)
    yield server
    server.abandon()


@pytest.fixture(scope="session")
def both(servers: Servers, engine: str) -> Server:
    """A server with the default settings: it serves both variants."""
    return servers.get("both", engine)


@pytest.fixture(scope="session")
def document(servers: Servers, engine: str) -> Server:
    """A server narrowed to Variant A."""
    return servers.get("document", engine)


@pytest.fixture(scope="session")
def blob(servers: Servers, engine: str) -> Server:
    """A server narrowed to Variant B."""
    return servers.get("blob", engine)


@pytest.fixture(scope="session")
def tight(servers: Servers, engine: str) -> Server:
    """A server with every optional setting narrowed."""
    return servers.get("tight", engine)


@pytest.fixture(scope="session")
def brief(servers: Servers, engine: str) -> Server:
    """A server whose tokens die young."""
    return servers.get("brief", engine)


@pytest.fixture(scope="session")
def ann(both: Server) -> ApiUser:
    """Somebody whose session stays open all the time; tests share her, each in vaults of its own."""
    return ApiUser.register(both)


@pytest.fixture(scope="session")
def bob(both: Server) -> ApiUser:
    """Somebody else, on the same server as Ann."""
    return ApiUser.register(both)


@pytest.fixture(scope="session")
def tess(tight: Server) -> ApiUser:
    """Somebody on the narrowed server."""
    return ApiUser.register(tight)


@pytest.fixture(scope="session")
def dora(document: Server) -> ApiUser:
    """Somebody on the server of Variant A."""
    return ApiUser.register(document)


@pytest.fixture(scope="session")
def bill(blob: Server) -> ApiUser:
    """Somebody on the server of Variant B."""
    return ApiUser.register(blob)


@pytest.fixture(params=["both", "document", "blob"])
def resident(request: pytest.FixtureRequest, engine: str) -> ApiUser:  # noqa: ARG001 - which decides the engine
    """Somebody on each of the three kinds of server in turn."""
    names = {"both": "ann", "document": "dora", "blob": "bill"}
    person: ApiUser = request.getfixturevalue(names[request.param])
    return person


@pytest.fixture
def newcomer(both: Server) -> ApiUser:
    """Somebody who has just registered and is nobody else's concern."""
    return ApiUser.register(both)


@pytest.fixture
def vault(ann: ApiUser) -> Json:
    """A new vault of Ann's."""
    return ann.vault()


@pytest.fixture
def stranger(both: Server) -> httpx2.Client:
    """A caller without any authority, from an address that nobody else uses."""
    return both.connect(address=fresh_address())
