"""The servers and the people that the contract tests share; each worker process has its own."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from .checks import Json, good
from .harness import Server, fresh_address
from .people import Person


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of the tests that want time to have passed."""
    config.addinivalue_line("markers", "late: runs after all others, for time has to pass before it")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the late tests to the end, so that the others fill the time they wait for."""
    items.sort(key=lambda item: item.get_closest_marker("late") is not None)


def _serve(factory: pytest.TempPathFactory, name: str, **settings: str) -> Iterator[Server]:
    server = Server(factory.mktemp(name), **settings)
    try:
        yield server.start()
        assert server.end() == 0
        assert "Traceback" not in server.log()
    finally:
        server.abandon()


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Server]:
    """A server for one test alone, not yet started."""
    server = Server(tmp_path)
    yield server
    server.abandon()


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the default settings: it serves both variants."""
    yield from _serve(tmp_path_factory, "both")


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server narrowed to Variant A."""
    yield from _serve(tmp_path_factory, "document", VAULT_VARIANT="document")


@pytest.fixture(scope="session")
def blob(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server narrowed to Variant B."""
    yield from _serve(tmp_path_factory, "blob", VAULT_VARIANT="blob")


@pytest.fixture(scope="session")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with every optional setting narrowed."""
    yield from _serve(
        tmp_path_factory,
        "tight",
        MAX_BODY_BYTES="20000",
        CORS_ORIGINS="https://app.example",
        JWT_ISSUER="acme",
        JWT_ACCESS_EXPIRY="12h",
        JWT_REFRESH_EXPIRY="2w",
    )


@pytest.fixture(scope="session")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose tokens die young."""
    yield from _serve(tmp_path_factory, "brief", JWT_ACCESS_EXPIRY="900ms", JWT_REFRESH_EXPIRY="2s")


@pytest.fixture(scope="session")
def ann(both: Server) -> Person:
    """Somebody whose session stays open all the time; tests share her, each in vaults of its own."""
    return Person.register(both)


@pytest.fixture(scope="session")
def bob(both: Server) -> Person:
    """Somebody else, on the same server as Ann."""
    return Person.register(both)


@pytest.fixture(scope="session")
def tess(tight: Server) -> Person:
    """Somebody on the narrowed server."""
    return Person.register(tight)


@pytest.fixture(scope="session")
def dora(document: Server) -> Person:
    """Somebody on the server of Variant A."""
    return Person.register(document)


@pytest.fixture(scope="session")
def bill(blob: Server) -> Person:
    """Somebody on the server of Variant B."""
    return Person.register(blob)


@pytest.fixture(params=["both", "document", "blob"])
def resident(request: pytest.FixtureRequest) -> Person:
    """Somebody on each of the three kinds of server in turn."""
    names = {"both": "ann", "document": "dora", "blob": "bill"}
    person: Person = request.getfixturevalue(names[request.param])
    return person


@pytest.fixture
def newcomer(both: Server) -> Person:
    """Somebody who has just registered and is nobody else's concern."""
    return Person.register(both)


@pytest.fixture
def vault(ann: Person) -> Json:
    """A new vault of Ann's."""
    return ann.vault()


@pytest.fixture
def stranger(both: Server) -> httpx2.Client:
    """A caller without any authority, from an address that nobody else uses."""
    return both.connect(address=fresh_address())


@dataclass
class Reuse:
    """A session in which a dead refresh token was left behind."""

    person: Person
    dead: str
    live: Json
    died: float


@pytest.fixture(scope="session", autouse=True)
def reuse(request: pytest.FixtureRequest) -> Reuse | None:
    """Kill a refresh token as early as possible, for the test that needs it dead for more than 30 s."""
    if not any(item.get_closest_marker("late") for item in request.session.items):
        return None
    person = Person.register(request.getfixturevalue("both"))
    http = person.server.connect()
    first = good(http.post("/auth/refresh", json={"refreshToken": person.refresh}))
    second = good(http.post("/auth/refresh", json={"refreshToken": first["refreshToken"]}))
    return Reuse(person, person.refresh, second, time.monotonic())
