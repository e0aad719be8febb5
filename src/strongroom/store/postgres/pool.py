"""The connection pool of PostgreSQL, and how a connection is made."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from strongroom.errors import Unavailable
from strongroom.store import locks
from strongroom.store.exceptions import CannotOpen
from strongroom.store.postgres import hosts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from asyncpg import Connection

CONNECT_SECONDS: Final = 3.0
STATEMENT_SECONDS: Final = 15


class Pool:
    """A bounded pool of connections. When all are in use, a caller waits until its deadline."""

    def __init__(self, url: str, size: int, check: Callable[[Connection], Awaitable[None]]) -> None:
        self.loop = asyncio.get_running_loop()
        self._url = url
        self._size = size
        self._check = check
        self._out = 0
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many callers wait for a connection."""
        return len(self._waiting)

    async def acquire(self, deadline: float) -> Connection:
        """A connection for the exclusive use of the caller, until it is released."""
        while self._out >= self._size:
            slot = self.loop.create_future()
            self._waiting.append(slot)
            try:
                await asyncio.wait_for(slot, max(0.0, deadline - time.monotonic()))
            except BaseException as error:
                if slot.done() and not slot.cancelled():
                    self._wake()  # it came together with the timeout: it is the next caller's
                if isinstance(error, TimeoutError):
                    raise Unavailable(1, "The service is too busy at the moment; try again shortly.") from None
                raise
        self._out += 1
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
            return await self._connect_to_serve()
        except BaseException:
            self._free_slot()
            raise

    async def _connect_to_serve(self) -> Connection:
        """A new connection, which keeps a restore away for as long as it lives."""
        connection = await connect(self._url)
        try:
            await _keep_restores_away(connection)
            await self._check(connection)  # under the lock: nothing is restored from here on
        except BaseException:  # also where the caller was cancelled meanwhile
            connection.terminate()
            raise
        return connection

    def release(self, connection: Connection, *, good: bool) -> None:
        """Return a connection to the pool; one that is not good is closed."""
        if good and not connection.is_closed() and not self._closed:
            self._idle.append(connection)
        else:
            connection.terminate()
        self._free_slot()

    def _free_slot(self) -> None:
        self._out -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                return

    async def close(self) -> None:
        """Close idle connections now, and those in use when they are released."""
        self._closed = True
        while self._idle:
            with suppress(Exception):
                await self._idle.pop().close(timeout=2)


async def _keep_restores_away(connection: Connection) -> None:
    if not await connection.fetchval(locks.TRY_SHARED, locks.SERVING):
        raise Unavailable(5, "The service is being restored from a backup; try again shortly.")


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


async def connect(url: str, *, patient: bool = False) -> Connection:
    """A connection with timeouts and synchronous commits; `patient`, without a timeout for statements."""
    connection = await hosts.connect(
        url,
        CONNECT_SECONDS,
        command_timeout=None if patient else STATEMENT_SECONDS + 5,
        statement_cache_size=512,
        server_settings={
            "application_name": "strongroom",
            "statement_timeout": str(STATEMENT_SECONDS * 1000),
            "idle_in_transaction_session_timeout": "300000",
            "jit": "off",
        },
    )
    try:
        if await connection.fetchval("SHOW synchronous_commit") == "off":
            await connection.execute("SET synchronous_commit = on")
        # Text that may hold NUL, which PostgreSQL's own text cannot, is kept as bytes.
        await connection.set_type_codec(
            "bytea", schema="pg_catalog", encoder=str.encode, decoder=_text, format="binary"
        )
    except BaseException:  # the caller was cancelled: no other code knows of the connection
        connection.terminate()
        raise
    return connection


def _text(raw: bytes) -> str:
    return bytes(raw).decode()
