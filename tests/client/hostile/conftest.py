"""Ada and Mallory on a live server, and a liar before it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests.client.conftest import shared_in
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import People
from tests.contract.harness import Server
from tests.kit.clients.factory import PythonClientFactory


@pytest.fixture(scope=shared_in)
def people(server: Server) -> Iterator[People]:
    """Two accounts that all attacks share."""
    made = People(server)
    yield made
    made.close()


@pytest.fixture
def liar(server: Server) -> Iterator[Liar]:
    """A proxy that has nothing to lie about yet."""
    made = Liar(server.port)
    yield made
    made.close()


@pytest.fixture
def hostile(liar: Liar, request: pytest.FixtureRequest) -> Iterator[PythonClientFactory]:
    """Makes clients that talk to the liar: of one kind for this half of the tests, of the other for that."""
    made = PythonClientFactory(("blocking", "awaiting")[zlib.crc32(request.node.name.encode()) % 2], liar.url)
    yield made
    made.close()
