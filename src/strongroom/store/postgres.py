"""The engine for many nodes: PostgreSQL through asyncpg. Kept connections, prepared statements, nothing ever hangs.

What SQLite gets from its one writer, PostgreSQL gets from row locks: the first statement of a write in a vault updates
the account's ledger and so holds it until commit. A connection that breaks is replaced and the transaction tried again,
as long as its COMMIT was not sent; after that the outcome is unknown, and the client is told to ask again.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import deque
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import asyncpg
from asyncpg import Connection

from strongroom.errors import Refusal, StorageFull, Unavailable
from strongroom.model import Actor
from strongroom.store import hosts, migrations, turns
from strongroom.store.db import CannotOpen, Duplicate, Orphan, Sql, Undo
from strongroom.store.gathering import Gathering, Looks
from strongroom.store.notify import NotifyNudges
from strongroom.store.nudges import Telling
from strongroom.store.pulse import Pulse
from strongroom.store.sharing import Apart, Sharing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence

    from strongroom.store.riding import Proof

R = TypeVar("R")
PAGE_BYTES: Final = 1280 * 1024
PAGE_ROWS: Final = 2_048
PATIENCE: Final = 5.0  # seconds that a request waits for a connection, or for the database to come back
CONNECT_SECONDS: Final = 3.0
STATEMENT_SECONDS: Final = 15

# The connection is gone, or leads to a server that does not take writes any more: another one may do.
_LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    OSError,
    TimeoutError,
)
# Two transactions stood in each other's way: one of them is to try again.
_AGAIN: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


class _Tx(Telling):
    """A transaction, or a look, on one connection."""

    __slots__ = ("_connection", "now", "writes")

    def __init__(self, connection: Connection, now: int) -> None:
        super().__init__()
        self._connection = connection
        self.now = now
        self.writes = 1  # how many share it

    async def _row(self, sql: Sql, parameters: dict[str, Any]) -> Any:
        """The first row, or None."""
        rows = await self._rows(sql, parameters)
        return rows[0] if rows else None

    async def _rows(self, sql: Sql, parameters: dict[str, Any]) -> list[asyncpg.Record]:
        with _in_words():
            rows: list[Any] = await self._connection.fetch(sql.postgres, *[parameters[name] for name in sql.names])
        return rows

    async def one(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> Any:
        row = await self._row(sql, parameters)
        return None if row is None else kind(*row)

    async def all(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        return [kind(*row) for row in await self._rows(sql, parameters)]

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        row = await self._row(sql, parameters)
        return None if row is None else row[0]

    async def run(self, sql: Sql, /, **parameters: Any) -> int:
        arguments = [parameters[name] for name in sql.names]
        with _in_words():
            done = await self._connection.execute(sql.postgres, *arguments)
        count = done.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def each(self, sql: Sql, rows: Sequence[dict[str, Any]], /, by: str) -> list[bool]:
        """All are on their way before the first answer is awaited. What comes back tells, in order, which changed."""
        if not rows:
            return []
        arguments = [[parameters[name] for name in sql.names] for parameters in rows]
        with _in_words():
            changed = await self._connection.fetchmany(f"{sql.postgres} RETURNING {by}", arguments)
        told = deque(row[0] for row in changed)
        outcomes = []
        for parameters in rows:
            outcomes.append(bool(told) and told[0] == parameters[by])
            while told and told[0] == parameters[by]:
                told.popleft()
        return outcomes

    async def pages(
        self, kind: type[Any], sql: Sql, /, after: str, by: str, **parameters: Any
    ) -> AsyncIterator[list[Any]]:
        """Pages by key. One that holds everything is one statement; more than one are read in one snapshot."""
        page = await self._page(kind, sql, by, parameters)
        if not _full(page, parameters["limit"]):
            yield page
            return
        async with _moment(self._connection):
            while True:
                page = await self._page(kind, sql, by, parameters)
                yield page
                if not page:
                    return
                parameters = {
                    **parameters,
                    after: getattr(page[-1], by),
                    "limit": parameters["limit"] - len(page),
                }
                if parameters["limit"] <= 0:
                    return

    async def _page(self, kind: type[Any], sql: Sql, by: str, parameters: dict[str, Any]) -> list[Any]:
        """Rows up to a number of bytes: the running sum of sizes is PostgreSQL's work, so a page is never larger."""
        arguments = [min(parameters[n], PAGE_ROWS) if n == "limit" else parameters[n] for n in sql.names]
        rows = await self._connection.fetch(_bounded(kind, sql, by), *arguments)
        return [kind(*row) for row in rows]


def _moment(connection: Connection) -> Any:
    """A transaction in which all that is read is of one moment; within another such one, a part of that."""
    return connection.transaction(isolation="repeatable_read", readonly=True)


@contextmanager
def _in_words() -> Iterator[None]:
    """Say in the store's words what a statement met."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise Duplicate(error.constraint_name or "") from None
    except asyncpg.ForeignKeyViolationError as error:
        raise Orphan(error.constraint_name or "") from None


def _full(page: list[Any], limit: int) -> bool:
    """Whether there may be more rows than this page has."""
    if len(page) >= limit:
        return False
    return len(page) >= PAGE_ROWS or sum(len((row.data or "").encode()) for row in page) >= PAGE_BYTES


_statements: dict[tuple[type[Any], str], str] = {}


def _bounded(kind: type[Any], sql: Sql, by: str) -> str:
    statement = _statements.get((kind, sql.postgres))
    if statement is None:
        fields = ", ".join(kind.__struct_fields__)
        statement = _statements[kind, sql.postgres] = (
            f"SELECT {fields} FROM (SELECT *, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY {by}"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ({sql.postgres}) AS listed) AS weighed"
            f" WHERE before IS NULL OR before < {PAGE_BYTES} ORDER BY {by}"
        )
    return statement


class _Pool:
    """Connections that are kept, as many as allowed; whoever comes when all are out waits, but not for ever."""

    def __init__(self, url: str, size: int) -> None:
        self.loop = asyncio.get_running_loop()
        self._url = url
        self._size = size
        self._out = 0
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait for a connection."""
        return len(self._waiting)

    async def take(self, deadline: float) -> Connection:
        """A connection of one's own, until it is given back."""
        while self._out >= self._size:
            turn = self.loop.create_future()
            self._waiting.append(turn)
            try:
                await asyncio.wait_for(turn, max(0.0, deadline - time.monotonic()))
            except BaseException as error:
                if turn.done() and not turn.cancelled():
                    self._wake()  # the turn came at the very end of our patience: it is the next one's
                if isinstance(error, TimeoutError):
                    raise Unavailable(1, "The service is too busy at the moment; try again shortly.") from None
                raise
        self._out += 1
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
            return await self._serving()
        except BaseException:
            self._back()
            raise

    async def _serving(self) -> Connection:
        """A new connection, which keeps a restore away for as long as it lives."""
        connection = await connect(self._url)
        try:
            free = await connection.fetchval(turns.TRY_TOGETHER, turns.SERVING)
        except BaseException:  # also where whoever asked for it has gone meanwhile
            connection.terminate()
            raise
        if not free:
            connection.terminate()
            raise Unavailable(5, "The service is being restored from a backup; try again shortly.")
        return connection

    def give(self, connection: Connection, *, good: bool) -> None:
        """Give it back; one that is not good is closed for good."""
        if good and not connection.is_closed() and not self._closed:
            self._idle.append(connection)
        else:
            connection.terminate()
        self._back()

    def _back(self) -> None:
        self._out -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def close(self) -> None:
        """Close what is idle now, and what is out when it comes back."""
        self._closed = True
        while self._idle:
            with suppress(Exception):
                await self._idle.pop().close(timeout=2)


def place(url: str) -> tuple[str, str]:
    """Hosts and database of an address. Of one that cannot be taken apart nothing is shown.

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


async def connect(url: str, *, patient: bool = False) -> Connection:
    """A connection that gives up rather than hang, and commits for good. A patient one waits for long statements."""
    connection = await hosts.reach(
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
    except BaseException:  # whoever waited for it has gone: nobody else knows of it
        connection.terminate()
        raise
    return connection


def _text(raw: bytes) -> str:
    return bytes(raw).decode()


class PostgresDatabase:
    """One database, as many nodes as there are."""

    waits = True

    def __init__(self, url: str, clock: Callable[[], int], pool_size: int = 10, *, migrate: bool = True) -> None:
        try:
            where, database = place(url)
        except ValueError as error:
            raise CannotOpen(f"DATABASE_URL {error}.") from None
        self.describe = f"PostgreSQL at {where or 'a local socket'}, database {database}"
        self._url = url
        self._clock = clock
        self._size = pool_size
        self._pool: _Pool | None = None
        self._sharing: Sharing | None = None
        self._gathering: Gathering | None = None
        self.nudges = NotifyNudges(lambda: connect(url))
        self.pulse = Pulse()
        _elsewhere(partial(self._prepare, migrate))

    def at_start(self, action: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run an action on a connection of its own."""

        async def run() -> Any:
            async with self._opening("ask") as connection:
                return await self._transact(connection, action, (), {})

        return _elsewhere(run)

    def examine(self) -> None:
        """PostgreSQL looks after its own pages, and 'strongroom doctor' asks it."""

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.describe!r})"

    async def _prepare(self, migrate: bool) -> None:  # noqa: FBT001 - passed on
        """Bring the schema up to date before anyone is served, or see that it is."""
        async with self._opening("bring up to date") as connection:
            await migrations.migrate_postgres(connection, self._clock(), may=migrate)

    @asynccontextmanager
    async def _opening(self, purpose: str) -> AsyncIterator[Connection]:
        """A patient connection; say in a sentence why it cannot be had, or does not serve its purpose."""
        try:
            connection = await connect(self._url, patient=True)
        except ValueError:  # about the address; what the driver says of it may show a part of the password
            raise CannotOpen("DATABASE_URL is an address that PostgreSQL does not take.") from None
        except (*_LOST, asyncpg.PostgresError) as error:
            raise CannotOpen(f"Cannot reach {self.describe}: {_reason(error)}.") from None
        try:
            if not await connection.fetchval(turns.TRY_TOGETHER, turns.SERVING):
                raise CannotOpen(f"{self.describe} is being restored; start again when that is done.")
            yield connection
        except (*_LOST, asyncpg.PostgresError) as error:
            raise CannotOpen(f"Cannot {purpose} {self.describe}: {_reason(error)}.") from None
        finally:
            await connection.close()

    def _connections(self) -> _Pool:
        if self._pool is None or self._pool.loop is not asyncio.get_running_loop():
            self._pool = _Pool(self._url, self._size)
        return self._pool

    async def read(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Look; a connection that broke meanwhile is replaced, and the look repeated."""
        return await self._attempts(self._look, action, args, keywords)

    async def read_if(self, proof: Proof, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """The same, for one who is still to be proven: both are asked at once, and with those of others."""
        if self._gathering is None or self._gathering.loop is not asyncio.get_running_loop():
            self._gathering = Gathering(lambda text, values: self._attempts(_fetch, text, tuple(values), {}))
        looks = Looks(self._gathering, proof, self._clock(), self.read)
        try:
            return await action(looks, *args, **keywords)
        finally:
            await looks.prove()  # whatever came of it, the one who is not proven learns nothing but that

    async def write(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run an action in a transaction; when this returns, it is committed."""
        if args and isinstance(args[0], Actor):
            if self._sharing is None or self._sharing.loop is not asyncio.get_running_loop():
                self._sharing = Sharing(partial(self._attempts, self._transact))
            return await self._sharing.write(args[0].user_id, action, *args, **keywords)
        return await self._attempts(self._transact, action, args, keywords)

    async def write_if(self, proof: Proof, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """The same, for one who is still to be proven, which comes first: those who share a transaction are."""
        if not proof.made:
            await self.read_if(proof, _nothing)
        return await self.write(action, *args, **keywords)

    async def write_long(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """The same, in a transaction that is shared with nobody."""
        return await self._attempts(self._transact, action, args, keywords)

    @asynccontextmanager
    async def snapshot(self, *, steady: bool = False) -> AsyncIterator[_Tx]:
        """A connection for a list, for as long as the list takes; steady, with a transaction around all of it."""
        pool = self._connections()
        deadline = time.monotonic() + PATIENCE
        connection = await self._taken(pool, deadline)
        good = False
        try:
            async with _moment(connection) if steady else nullcontext():
                yield _Tx(connection, self._clock())
            good = True
        except (Refusal, GeneratorExit):
            good = not connection.is_in_transaction()
            raise
        except _LOST:
            raise Unavailable(1) from None
        finally:
            pool.give(connection, good=good)

    async def _taken(self, pool: _Pool, deadline: float) -> Connection:
        while True:
            try:
                return await pool.take(deadline)
            except (*_LOST, asyncpg.PostgresError):
                if time.monotonic() + 0.1 > deadline:
                    raise Unavailable(1) from None
                await asyncio.sleep(0.1)

    async def _attempts(
        self,
        way: Callable[..., Awaitable[Any]],
        action: Callable[..., Awaitable[Any]] | str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Try until it works, is refused, or patience ends."""
        pool = self._connections()
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = await self._taken(pool, deadline)
            good = False
            try:
                result = await way(connection, action, args, keywords)
                good = True
            except (Refusal, Duplicate, Orphan, Apart):
                good = True
                raise
            except _AGAIN:
                good = True
            except asyncpg.DiskFullError:
                raise StorageFull from None
            except asyncpg.QueryCanceledError:
                raise Unavailable(1) from None
            except _Unknown:
                raise Unavailable(
                    1, "The database went away in the middle; ask again to see whether it was done."
                ) from None
            except _LOST:
                if time.monotonic() + 0.1 > deadline:
                    raise Unavailable(1) from None
            else:
                return result
            finally:
                pool.give(connection, good=good)
            if time.monotonic() > deadline:
                raise Unavailable(1)
            await asyncio.sleep(0.02)

    async def _look(self, connection: Connection, action: Any, args: Any, keywords: Any) -> Any:
        return await action(_Tx(connection, self._clock()), *args, **keywords)

    async def _transact(self, connection: Connection, action: Any, args: Any, keywords: Any) -> Any:
        await connection.execute("BEGIN")
        tx = _Tx(connection, self._clock())
        try:
            result = await action(tx, *args, **keywords)
        except Undo as undo:
            await connection.execute("ROLLBACK")
            return undo.result
        except BaseException:
            if not connection.is_closed():
                with suppress(*_LOST, asyncpg.PostgresError):
                    await connection.execute("ROLLBACK")
            raise
        began = time.perf_counter()
        try:
            await connection.execute("COMMIT")
        except _LOST:
            raise _Unknown from None
        self.nudges.committed(tx.told)
        self.pulse.committed(tx.writes, time.perf_counter() - began)
        return result

    async def fold(self) -> None:
        """PostgreSQL keeps its own log, and its own time to forget."""

    @property
    def waiting(self) -> int:
        """How many requests wait for a connection."""
        return 0 if self._pool is None else self._pool.waiting

    @property
    def free_bytes(self) -> int | None:
        """Unknown: the disk is another machine's."""
        return None

    async def size(self) -> int:
        """The bytes of the database, as PostgreSQL counts them."""
        size: int = await self.read(_size)
        return size

    async def vacuum(self) -> None:
        """Let PostgreSQL take back what is dead, and count anew what its plans rest on. Nobody waits for it."""
        async with self._opening("vacuum") as connection:
            await connection.execute("SET statement_timeout = 0")
            await connection.execute("VACUUM (ANALYZE)")

    async def close(self) -> None:
        """Let go of the connections."""
        await self.nudges.close()
        if self._pool is not None and self._pool.loop is asyncio.get_running_loop():
            await self._pool.close()
        self._pool = None


class _Unknown(Exception):  # noqa: N818 - not an error of ours
    """COMMIT was sent and no answer came."""


async def _fetch(connection: Connection, text: str, values: Any, _keywords: Any) -> Any:
    return await connection.fetch(text, *values)


async def _nothing(_tx: _Tx) -> None:
    """Nothing but the proof."""


async def _size(tx: _Tx) -> Any:
    return await tx.value(Sql("SELECT pg_database_size(current_database())"))


def _elsewhere(work: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run a coroutine to its end on a thread of its own: works whether or not a loop is running here."""
    result: list[R] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            result.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    thread = threading.Thread(target=run, name="postgres-prepare")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return result[0]


def _reason(error: BaseException) -> str:
    """Why, in the database's words; they name the user and the database, never the password."""
    if isinstance(error, TimeoutError):
        return "no answer"
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")
