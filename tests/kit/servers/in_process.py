"""A server behind real ASGI in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2

from strongroom import create_server
from strongroom.server import Server
from tests.kit.clock import Clock
from tests.kit.people.person import Person, new_email
from tests.kit.servers.internals import context_of, finish_deletions, purge
from tests.kit.servers.secret import SECRET


class InProcessServer:
    """A server, and a client to it."""

    def __init__(self, http: httpx2.AsyncClient, clock: Clock, app: Server) -> None:
        self.http = http
        self.clock = clock
        self.app = app

    async def purge_expired(self) -> None:
        """Purge what has passed its retention period, as a running server does periodically."""
        await purge(self.app)

    async def finish_deletions(self) -> None:
        """Delete the rows of deleted vaults and accounts, as a running server does in the background."""
        await finish_deletions(self.app)

    async def person(self, email: str | None = None, password: str = "correct horse", **more: Any) -> Person:
        """Somebody who has registered."""
        email = email or new_email()
        made = await self.http.post("/auth/email/register", json={"email": email, "password": password, **more})
        assert made.status_code == 201, made.text
        return Person(self.http, email, made.json())

    async def login(self, email: str, password: str = "correct horse") -> httpx2.Response:
        """The response to a login."""
        return await self.http.post("/auth/email/login", json={"email": email, "password": password})


OpenServer = Callable[..., AbstractAsyncContextManager[InProcessServer]]


@asynccontextmanager
async def in_process_server(
    where: str, clock: Clock, address: str = "127.0.0.1", **settings: Any
) -> AsyncIterator[InProcessServer]:
    """A server on a database, with these settings, called from this address, for as long as the block lasts."""
    location: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}
    settings = {"login_limit": 0, **settings}  # tests that share an account log in often
    app = create_server(jwt_secret=SECRET, clock=clock, **location, **settings)
    transport = httpx2.ASGITransport(app=app, client=(address, 5), raise_app_exceptions=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://server") as http:
            yield InProcessServer(http, clock, app)
    finally:
        await context_of(app).close()
