"""Connections through a pooler such as PgBouncer, whose sessions in PostgreSQL are shared: transactions alone are ours.

Nothing is set on them, nothing is locked beyond a transaction, and statements stay prepared only where the pooler keeps
them for each client, as PgBouncer does from 1.21 on.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

import asyncpg

from strongroom.store.exceptions import CannotOpen, CannotReach, reason
from strongroom.store.postgres import connection as connections
from strongroom.store.postgres import hosts, serving_lock

if TYPE_CHECKING:
    from asyncpg import Connection

VARIABLE: Final = "DATABASE_POOLER_URL"
_PID: Final = "SELECT pg_backend_pid()"
# What a pooler answers to a session's own settings, and a shared session to statements with names.
_SHARED: Final = (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError)
_UNFIT: Final = (
    "DATABASE_URL leads through a connection pooler that shares sessions, as PgBouncer does in transaction mode. "
    f"Locks, migrations and notifications need sessions of their own: set {VARIABLE} to the address of the pooler, "
    "and DATABASE_URL to that of PostgreSQL itself."
)
_PARSES: Final = (
    "The pooler at {where} keeps no prepared statements, so each statement is parsed anew, which is slow. With "
    "PgBouncer 1.21 or newer, set max_prepared_statements = 512."
)
_UNLIMITED: Final = (
    "Statements through the pooler at {where} have no time limit of their own. Run, as the owner of the role: "
    "ALTER ROLE {role} SET statement_timeout = '15s'; "
    "ALTER ROLE {role} SET idle_in_transaction_session_timeout = '5min'; ALTER ROLE {role} SET jit = off;"
)


class Pooler:
    """The way through a pooler: its address, and what was found out about it."""

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self.where = connections.hosts_and_database(url)[0] or "a local socket"
        except ValueError as error:
            raise CannotOpen(f"{VARIABLE} {error}.") from None
        self._keeps_statements = False

    async def connect(self) -> Connection:
        """A connection that serves requests."""
        connection = await hosts.connect(
            self._url,
            connections.CONNECT_SECONDS,
            command_timeout=connections.STATEMENT_SECONDS + 5,
            statement_cache_size=connections.STATEMENTS if self._keeps_statements else 0,
            server_settings={"application_name": connections.APPLICATION},
        )
        try:
            if await connection.fetchval("SHOW synchronous_commit") == "off":
                raise ConnectionError(  # noqa: TRY301
                    "synchronous_commit is off, so that a commit could be lost; set it to on for the role"
                )
            await connections.set_codec(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def examine(self, direct: Connection) -> str | None:
        """Find out whether it leads to the same database as a direct connection, and what it keeps; a notice of it."""
        try:
            connection = await self.connect()
        except ValueError:
            raise CannotOpen(f"{VARIABLE} is an address that PostgreSQL does not take.") from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            raise CannotReach(f"Cannot reach PostgreSQL through the pooler at {self.where}: {reason(error)}.") from None
        try:
            key = serving_lock.new_mark()
            await serving_lock.mark(direct, key)
            if not await serving_lock.is_marked(connection, key):
                raise CannotReach(f"{VARIABLE} leads to another server or database than DATABASE_URL.")
            self._keeps_statements = await _keeps_statements(connection)
            role, limit = await connection.fetchrow("SELECT current_user::text, current_setting('statement_timeout')")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            raise CannotReach(f"The pooler at {self.where} failed: {reason(error)}.") from None
        finally:
            connection.terminate()
        notices = [] if self._keeps_statements else [_PARSES.format(where=self.where)]
        notices += [_UNLIMITED.format(where=self.where, role=role)] if limit == "0" else []
        return " ".join(notices) or None


async def _keeps_statements(connection: Connection) -> bool:
    """Whether prepared statements outlive the session: a pooler that keeps them gives them names of its own."""
    name = f"strongroom_{secrets.token_hex(8)}"
    async with connection.transaction():
        statement = await connection.prepare("SELECT 1", name=name)
        passed_on: bool = await connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE name = $1)", name
        )
        del statement  # the driver would close it when nobody has it
        if passed_on:  # the session is of others next
            await connection.execute(f"DEALLOCATE {name}")
    return not passed_on


async def refuse_shared_session(url: str, connection: Connection) -> None:
    """Refuse a connection that should have a session of its own, and shares one.

    A pooler names processes of its own. One in session mode is good; one in transaction mode gives two connections of
    which nothing is under way the same session.
    """
    if await connection.fetchval(_PID) == connection.get_server_pid():
        return
    try:
        async with asyncio.timeout(connections.CONNECT_SECONDS):
            other = await connections.connect(url, patient=True)
            try:
                shared = await other.fetchval(_PID) == await connection.fetchval(_PID)
            finally:
                other.terminate()
    except TimeoutError:  # its only session is in use, by us: it is our own
        return
    if shared:
        raise unfit()


def is_of_shared_session(error: BaseException) -> bool:
    """Whether an error is what a pooler answers that shares sessions."""
    refused = isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in str(error)
    return refused or isinstance(error, _SHARED)


def unfit() -> CannotOpen:
    """The refusal of an address that leads through such a pooler."""
    return CannotOpen(_UNFIT)
