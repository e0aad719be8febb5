"""Servers for tests that need more than one of them, or settings of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from strongroom import create_server
from tests.kit.clock import Clock
from tests.kit.servers.secret import SECRET
from tests.security.fixtures import Stage

Nodes = Callable[..., AbstractAsyncContextManager[list[Stage]]]


@pytest.fixture
def nodes(where: str, clock: Clock) -> Nodes:
    """Opens servers over one database, as many as there are settings; each is a stage."""

    @asynccontextmanager
    async def open_nodes(*settings: dict[str, Any]) -> AsyncIterator[list[Stage]]:
        place = {"database_url" if "://" in where else "db_path": where}
        async with AsyncExitStack() as stack:
            opened = []
            for given in settings or ({},):
                server = create_server(**{"jwt_secret": SECRET, "clock": clock, "login_limit": 0, **place, **given})
                stack.push_async_callback(server.release)
                opened.append(Stage(server, clock))
            yield opened

    return open_nodes
