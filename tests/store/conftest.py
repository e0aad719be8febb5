"""Locations of databases."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.servers.populated_database import PAIRS
from tests.kit.servers.postgres import postgres


@pytest.fixture
def new_location(tmp_path: Path) -> Callable[[str], str]:
    """Gives the location of a new database on an engine: a path or a URL."""
    return lambda engine: str(tmp_path / f"{os.urandom(4).hex()}.db") if engine == "sqlite" else postgres().fresh()


@pytest.fixture(params=PAIRS, ids=" to ".join)
def pair(request: pytest.FixtureRequest, new_location: Callable[[str], str]) -> tuple[str, str]:
    """Where from and where to, for each pair of engines in turn."""
    source, target = request.param
    return new_location(source), new_location(target)
