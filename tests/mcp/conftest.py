"""A machine with a token, for a model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.people.machine import World, opened_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with an owner, whose items a machine may read."""
    with opened_world(tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("machine")) as made:
        yield made
