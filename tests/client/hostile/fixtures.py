"""Ada and Mallory on a live server, and a liar before it: for the tests of each language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import People
from tests.kit.servers.process import Server


@pytest.fixture(scope="module")
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
