"""How a connection to PostgreSQL is made, and what an address is called in sentences."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from strongroom.store.exceptions import CannotOpen
from strongroom.store.postgres import hosts

if TYPE_CHECKING:
    from asyncpg import Connection

APPLICATION: Final = "strongroom"  # the name of the connections in PostgreSQL's own views
CONNECT_SECONDS: Final = 3.0
STATEMENT_SECONDS: Final = 15
STATEMENTS: Final = 512  # that stay prepared on a connection


def hosts_and_database(url: str) -> tuple[str, str]:
    """Hosts and database of a URL. Of one that cannot be parsed nothing is shown.

    A password with a bare / or # in it would otherwise pass for a port or a database, and be printed.
    """
    with suppress(ValueError):
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        named = parts.netloc.rpartition("@")[2]
        good = all(re.fullmatch(r"(\[[\w:.%]+\]|[^:\[\]]*)(:\d*)?", host) for host in named.split(","))
        if good and not parts.fragment and "@" not in parts.path + parts.query:
            where = ":".join(filter(None, (named or query.get("host"), query.get("port"))))
            databases = (parts.path.lstrip("/"), query.get("database"), query.get("dbname"), parts.username)
            return where, next(filter(None, databases), "default")
    raise ValueError("is not a good URL; in a password, signs like / # ? @ are written %2F %23 %3F %40")


def location(url: str) -> str:
    """Hosts and database of a URL, as the operator reads them."""
    try:
        where, database = hosts_and_database(url)
    except ValueError as error:
        raise CannotOpen(f"DATABASE_URL {error}.") from None
    return f"PostgreSQL at {where or 'a local socket'}, database {database}"


def is_lost(error: BaseException, connection: Connection) -> bool:
    """Whether an error of a statement, an AttributeError among others, says that its connection is gone.

    asyncpg raises one where a connection is closed while a statement is prepared, which is not executed then. With an
    open connection it is a fault of our own.
    """
    return not isinstance(error, AttributeError) or connection.is_closed()


async def connect(url: str, *, patient: bool = False) -> Connection:
    """A connection with timeouts and synchronous commits; `patient`, without a timeout for statements."""
    connection = await hosts.connect(
        url,
        CONNECT_SECONDS,
        command_timeout=None if patient else STATEMENT_SECONDS + 5,
        statement_cache_size=STATEMENTS,
        server_settings={
            "application_name": APPLICATION,
            "statement_timeout": str(STATEMENT_SECONDS * 1000),
            "idle_in_transaction_session_timeout": "300000",
            "jit": "off",
        },
    )
    try:
        if await connection.fetchval("SHOW synchronous_commit") == "off":
            await connection.execute("SET synchronous_commit = on")
        await set_codec(connection)
    except BaseException:  # the caller was cancelled: no other code knows of the connection
        connection.terminate()
        raise
    return connection


async def set_codec(connection: Connection) -> None:
    """Keep text that may hold NUL, which PostgreSQL's own text cannot, as bytes."""
    await connection.set_type_codec(
        "bytea", schema="pg_catalog", encoder=str.encode, decoder=bytes.decode, format="binary"
    )
