"""A live server, and clients of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from strongroom.client import Client
from tests.client.moving_accounts import furnish, url_of
from tests.contract.harness import Server
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.samples import LONG
from tests.kit.servers.restartable_server import RestartableServer


def shared_in(fixture_name: str, config: pytest.Config) -> Literal["module", "session"]:  # noqa: ARG001
    """A soak runs all tests in one process: wrong passwords of all would add up to the limit of one server."""
    return "module" if LONG else "session"


@pytest.fixture(scope=shared_in)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server process that tests share."""
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


@pytest.fixture(params=["blocking", "awaiting"])
def clients(request: pytest.FixtureRequest, server: Server) -> Iterator[ClientFactory]:
    """Makes clients, of each kind in turn."""
    made = ClientFactory(request.param, f"http://127.0.0.1:{server.port}")
    yield made
    made.close()


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[Devices]:
    """Two devices that are in step with a server on SQLite, whose clock can be set."""
    server = RestartableServer(str(tmp_path / "vault.db"))
    made = Devices(server, tmp_path)
    yield made
    made.close()
    server.close()


@pytest.fixture(scope="session")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A second server process, for accounts that move."""
    running = Server(tmp_path_factory.mktemp("other_server"))
    try:
        yield running.start()
        assert running.end() == 0
        assert "Traceback" not in running.log()
    finally:
        running.abandon()


@pytest.fixture
def moving(server: Server, tmp_path: Path) -> Iterator[tuple[Client, str, Path]]:
    """A client of an account with everything, its email, and its file."""
    with Client(url_of(server)) as client:
        email = furnish(client)
        client.export_account(tmp_path / "account")
        yield client, email, tmp_path / "account"
