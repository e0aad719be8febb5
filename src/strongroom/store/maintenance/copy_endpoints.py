"""Copy endpoints: which one an address names, and its connections and transactions as context managers."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from strongroom.store.database import is_postgres
from strongroom.store.maintenance.endpoint_protocol import CannotCopy
from strongroom.store.maintenance.sqlite_endpoint import SqliteEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strongroom.store.maintenance.endpoint_protocol import CopyEndpoint


def endpoint(role: str, address: str) -> CopyEndpoint:
    """The endpoint at this address: a URL of PostgreSQL, or the path of a file."""
    if is_postgres(address):
        from strongroom.store.maintenance.postgres_endpoint import PostgresEndpoint

        return PostgresEndpoint(role, address)
    if not address or "://" in address:
        raise CannotCopy(f"The {role} is neither the path of a file nor an address like postgresql://user@host/name.")
    return SqliteEndpoint(role, address)


@asynccontextmanager
async def opened(endpoint: CopyEndpoint, *, to_fill: bool = False, even_damaged: bool = False) -> AsyncIterator[None]:
    """Open an endpoint, and close it at the end."""
    try:
        await endpoint.open(to_fill=to_fill, even_damaged=even_damaged)
        yield
    finally:
        await endpoint.close()


@asynccontextmanager
async def transaction(endpoint: CopyEndpoint, begin: str = "") -> AsyncIterator[None]:
    """A transaction: committed at the end, rolled back after an exception."""
    await endpoint.query(begin or endpoint.begin)
    try:
        yield
    except BaseException:
        with suppress(CannotCopy):
            await endpoint.query("ROLLBACK")
        raise
    await endpoint.query("COMMIT")
