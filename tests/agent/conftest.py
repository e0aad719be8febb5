"""A live server, and people with accounts on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import CommandLineUser
from tests.kit.servers.fixtures import named_server  # noqa: F401 (a fixture)
from tests.kit.servers.process import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server process that all tests share."""
    running = Server(tmp_path_factory.mktemp("server"))
    try:
        yield running.start()
        assert running.end() == 0
    finally:
        running.abandon()


@pytest.fixture(scope="session")
def url(server: Server) -> str:
    """The server's address."""
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def person(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CommandLineUser]:
    """Somebody who has just registered."""
    marked = request.node.get_closest_marker("production_hashing") is not None
    made = CommandLineUser(tmp_path / "home", url, production_hashing=marked)
    made.register()
    yield made
    made.close()


@pytest.fixture(scope="module")
def ada(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLineUser]:
    """Somebody with an account that the tests of one file share."""
    made = CommandLineUser(tmp_path_factory.mktemp("ada") / "home", url)
    made.register()
    yield made
    made.close()


@pytest.fixture
def stranger(url: str, tmp_path: Path) -> Iterator[CommandLineUser]:
    """Somebody who has not logged in here."""
    made = CommandLineUser(tmp_path / "home", url)
    yield made
    made.close()
