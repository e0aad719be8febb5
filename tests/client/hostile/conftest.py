"""Python clients that talk to a liar."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests.client.hostile.fixtures import liar, people  # noqa: F401
from tests.client.hostile.lying_proxy import Liar
from tests.kit.clients.factory import PythonClientFactory


@pytest.fixture
def hostile(liar: Liar, request: pytest.FixtureRequest) -> Iterator[PythonClientFactory]:  # noqa: F811
    """Makes clients that talk to the liar: of one kind for this half of the tests, of the other for that."""
    made = PythonClientFactory(("blocking", "awaiting")[zlib.crc32(request.node.name.encode()) % 2], liar.url)
    yield made
    made.close()
