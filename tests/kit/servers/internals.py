"""The one place in which tests reach behind the public doors of a server."""

from __future__ import annotations

from typing import Any

from strongroom.server import Server
from strongroom.server.context import AppContext
from strongroom.store import Database
from strongroom.store.postgres import connection


def context_of(server: Server) -> AppContext:
    """What all requests of a server share."""
    return server._context


def database_of(server: Server) -> Database:
    """The database of a server."""
    return server._context.db


def runner_of(server: Server) -> Any:
    """What runs a server that was started in this process; None before it is."""
    return server._runner


def is_started(server: Server) -> bool:
    """Whether it listens."""
    return server._runner is not None and server._runner.started.is_set()


def unfinished(server: Server) -> set[Any]:
    """What the server would wait for if it were told to stop now."""
    return runner_of(server)._state.tasks  # type: ignore[no-any-return]


async def purge(server: Server) -> None:
    """Purge what has passed its retention period, as a running server does periodically."""
    await server._app.purge()


async def finish_deletions(server: Server) -> None:
    """Delete the rows of deleted vaults and accounts, as a running server does in the background."""
    steps = server._context.deletions
    await steps.delete_all()
    await steps.truncate()


def wait_for_databases(seconds: float) -> None:
    """Wait so long for a connection to PostgreSQL in this process, in the place of the few seconds of an operator."""
    vars(connection)["CONNECT_SECONDS"] = seconds
