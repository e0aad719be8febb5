"""The PostgreSQL engine, for many nodes: a pool, prepared statements, timeouts on everything.

What SQLite gets from its one writer, PostgreSQL gets from row locks: the first statement of a write in a vault updates
the account's ledger and so holds it until commit. A connection that breaks is replaced and the transaction tried again,
as long as its COMMIT was not sent; after that the outcome is unknown, and the client is told to read again.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg
from asyncpg import Connection

from strongroom.errors import Refusal, StorageFull, Unavailable
from strongroom.store import locks, write_forms
from strongroom.store.change_notifications import ChangeHint
from strongroom.store.commit_metrics import CommitMetrics
from strongroom.store.exceptions import (
    CannotOpen,
    CannotReach,
    Duplicate,
    MissingParent,
    OutcomeUnknown,
    RollbackWith,
    reason,
)
from strongroom.store.postgres import combined_accounts, combined_writes
from strongroom.store.postgres import pooler as poolers
from strongroom.store.postgres.connection import CONNECT_SECONDS, connect, is_lost, location
from strongroom.store.postgres.migrate import migrate as migrate_database
from strongroom.store.postgres.notify import PostgresNotifications
from strongroom.store.postgres.pool import Pool
from strongroom.store.postgres.read_batches import BatchedReadTx, ReadBatcher
from strongroom.store.postgres.transaction import Tx, consistent_read
from strongroom.store.postgres.write_batches import UNKNOWN, RunSeparately, WriteBatcher
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence

    from strongroom.model import Document
    from strongroom.store.session_check import SessionCheck
    from strongroom.store.write_forms import Form, NewDocument

R = TypeVar("R")
WAIT_SECONDS: Final = 5.0  # that a request waits for a connection, or for the database to come back

# The connection is gone, or leads to a server that does not take writes any more: another one may do.
_LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has ended it, and the driver has not yet noticed
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    OSError,
    TimeoutError,
)
# PostgreSQL has met pages, or a disk, that it cannot read.
_DAMAGE: Final = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError, asyncpg.PostgresIOError)
# Two transactions stood in each other's way: one of them is to try again.
_AGAIN: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


class PostgresDatabase:
    """A PostgreSQL database, shared by any number of nodes."""

    waits = True
    is_damaged = False

    def __init__(
        self,
        url: str,
        clock: Callable[[], int],
        pool_size: int = 10,
        *,
        migrate: bool = True,
        pooler_url: str = "",
    ) -> None:
        self.notice: str | None = None
        self._url = url
        self._pooler = poolers.Pooler(pooler_url) if pooler_url else None
        self.describe = location(url) + (f", through {self._pooler.where}" if self._pooler else "")
        self._clock = clock
        self._size = pool_size
        self._pool: Pool | None = None
        self._epoch: str | None = None
        self._is_replaced = False
        self._write_batcher: WriteBatcher | None = None
        self._read_batcher: ReadBatcher | None = None
        self._batch_failures: set[type[Exception]] = set()
        self.notifications = PostgresNotifications(lambda: connect(url))
        self.commit_metrics = CommitMetrics()
        self.warn: Callable[[str], None] = lambda _sentence: None
        _run_on_thread(partial(self._prepare, migrate))

    def at_start(self, action: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run an action in a transaction, on a connection of its own."""

        async def run() -> Any:
            async with self._opening("query") as connection:
                return await self._transact(connection, action, (), {})

        return _run_on_thread(run)

    async def begin_serving(self, epoch: str) -> None:
        """Make the first connection, whose lock keeps restores away; every connection compares the epoch."""
        self._epoch = epoch
        with suppress(Unavailable):  # it was reached a moment ago; requests try again
            pool = self._connections()
            pool.release(await self._acquire(pool, time.monotonic() + CONNECT_SECONDS), good=True)

    async def _check_epoch(self, connection: Connection) -> None:
        """Refuse a database that was restored while this node had no connection: it would tell clients the old epoch.

        A database without an epoch, or without its table, is refused too.
        """
        if self._epoch is None or await connection.fetchval("SELECT epoch FROM lineage") == self._epoch:
            return
        if not self._is_replaced:
            self._is_replaced = True
            self.warn(f"{self.describe} was restored, or given another epoch, while this node ran; start it again.")
        raise Unavailable(5, "The service was restored from a backup and must be started again by its operator.")

    def examine(self) -> None:
        """Nothing: PostgreSQL checks its own pages, and 'strongroom doctor' queries the result."""

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.describe!r})"

    async def _prepare(self, apply: bool) -> None:  # noqa: FBT001 - passed on
        """Bring the schema up to date before the server accepts requests, or check that it is."""
        async with self._opening("bring up to date") as connection:
            await poolers.refuse_shared_session(self._url, connection)
            if self._pooler is not None:
                self.notice = await self._pooler.examine(connection)
            await migrate_database(connection, self._clock(), apply=apply)

    @asynccontextmanager
    async def _opening(self, purpose: str) -> AsyncIterator[Connection]:
        """A connection without statement timeouts; CannotOpen, with a sentence, where there is none or it fails."""
        try:
            connection = await connect(self._url, patient=True)
        except ValueError:  # about the address; what the driver says of it may show a part of the password
            raise CannotOpen("DATABASE_URL is an address that PostgreSQL does not take.") from None
        except (*_LOST, asyncpg.PostgresError) as error:
            if poolers.is_of_shared_session(error):
                raise poolers.unfit() from None
            kind = CannotReach if isinstance(error, _LOST) and not isinstance(error, ssl.SSLError) else CannotOpen
            raise kind(f"Cannot reach {self.describe}: {reason(error)}.") from None
        try:
            if not await connection.fetchval(locks.TRY_SHARED, locks.SERVING):
                raise CannotOpen(f"{self.describe} is being restored; start again when that is done.")
            yield connection
        except (*_LOST, asyncpg.PostgresError) as error:
            if poolers.is_of_shared_session(error):
                raise poolers.unfit() from None
            raise CannotOpen(f"Cannot {purpose} {self.describe}: {reason(error)}.") from None
        finally:
            await connection.close()

    def _connections(self) -> Pool:
        if self._pool is None or self._pool.loop is not asyncio.get_running_loop():
            self._pool = Pool(self._url, self._size, self._check_epoch, self._pooler)
        return self._pool

    async def read(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a short read; a connection that broke meanwhile is replaced, and the read repeated."""
        return await self._attempts(self._read, action, args, keywords)

    async def read_checked(
        self, check: SessionCheck, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any
    ) -> Any:
        """Run a short read for a caller whose session is checked in the same query, in a batch with other reads."""
        tx = self._batched_reads(check)
        try:
            result = await action(tx, *args, **keywords)
        except Unavailable:
            raise  # it tells nothing of what is stored, and the check would meet it again
        except Exception:
            await tx.run_check()  # a caller that does not pass learns nothing else
            raise
        await tx.run_check()
        return result

    def _batched_reads(self, check: SessionCheck) -> BatchedReadTx:
        if self._read_batcher is None or self._read_batcher.loop is not asyncio.get_running_loop():
            self._read_batcher = ReadBatcher(
                lambda text, values: self._attempts(_fetch, text, tuple(values), {}), self._batch_failed
            )
        return BatchedReadTx(self._read_batcher, check, self._clock(), self.read)

    def _batch_failed(self, error: Exception) -> None:
        """Count a query for many requests that failed, and report the first one of each kind; each is run by itself."""
        self.commit_metrics.failed_batches += 1
        if type(error) not in self._batch_failures:
            self._batch_failures.add(type(error))
            self.warn(  # what the driver says of the error may show a value
                f"{self.describe} refused a query for many requests at once ({type(error).__name__}). Each is "
                "run by itself instead, which is slow where strongroom_read_batch_failures_total rises."
            )

    async def write(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run an action in a transaction of its own; when this returns, it is committed."""
        return await self._attempts(self._transact, action, args, keywords)

    write_long = write  # a transaction on PostgreSQL keeps no other request waiting

    async def write_for(
        self,
        owner: str,
        check: SessionCheck | None,
        action: Callable[..., Awaitable[Any]],
        *args: Any,
        **keywords: Any,
    ) -> Any:
        """Run a write for a caller, in a transaction that it may share with other writes of the same owner.

        The session check comes first: only callers that have passed it share transactions.
        """
        if check is not None and not check.passed:
            await self._batched_reads(check).run_check()
        if self._write_batcher is None or self._write_batcher.loop is not asyncio.get_running_loop():
            self._write_batcher = WriteBatcher(
                partial(self._attempts, self._transact), self._combine, self._create_many
            )
        form = None if keywords else write_forms.form_of(action, self._clock(), args)
        return await self._write_batcher.write(owner, action, args if form is None else form.args, keywords, form)

    async def _combine(self, owner: str, forms: list[Form]) -> list[Document] | None:
        """Run writes of one account in one statement; the documents, or None where nothing was written."""
        results: list[Document] | None = await self._attempts(self._run_combined, owner, (forms,), {})
        return results

    async def _run_combined(self, connection: Connection, owner: Any, args: Any, _keywords: Any) -> Any:
        [forms] = args
        began = time.perf_counter()
        try:
            results = await combined_writes.run(connection, owner, forms, self._clock())
        except (asyncpg.UniqueViolationError, asyncpg.ForeignKeyViolationError):
            return None
        except _LOST:
            raise OutcomeUnknown from None
        if results is not None:
            self.notifications.committed({ChangeHint(owner, form.vault_uid) for form in forms})
            self.commit_metrics.committed(len(forms), time.perf_counter() - began)
        return results

    async def _create_many(self, wanted: Mapping[str, Sequence[NewDocument]]) -> dict[str, list[Document]]:
        """Create documents of several accounts in one statement; of an account that is left out nothing was written."""
        try:
            stored: dict[str, list[Document]] = await self._attempts(self._run_accounts, "", (wanted,), {})
        except (Refusal, OutcomeUnknown):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, each account will meet it or not
            self._batch_failed(error)
            return {}
        return stored

    async def _run_accounts(self, connection: Connection, _action: Any, args: Any, _keywords: Any) -> Any:
        [wanted] = args
        began = time.perf_counter()
        try:
            stored = await combined_accounts.create(connection, wanted, self._clock())
        except (asyncpg.UniqueViolationError, asyncpg.ForeignKeyViolationError):
            return {}
        except _LOST:
            raise OutcomeUnknown from None
        if stored:
            self.notifications.committed(
                {ChangeHint(owner, form.vault_uid) for owner in stored for form in wanted[owner]}
            )
            self.commit_metrics.committed(sum(map(len, stored.values())), time.perf_counter() - began)
        return stored

    async def write_long_checked(
        self, check: SessionCheck, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any
    ) -> Any:
        """Run a long write for a caller, whose session is checked first."""
        if not check.passed:
            await self._batched_reads(check).run_check()
        return await self.write_long(action, *args, **keywords)

    @asynccontextmanager
    async def snapshot(self, *, steady: bool = False, release: Callable[[], None] | None = None) -> AsyncIterator[Tx]:
        """A connection for as long as the snapshot is open; steady, with a transaction around all of it."""
        del release  # PostgreSQL keeps its log apart from what is read
        pool = self._connections()
        deadline = time.monotonic() + WAIT_SECONDS
        connection = await self._acquire(pool, deadline)
        good = False
        try:
            async with consistent_read(connection) if steady else nullcontext():
                yield Tx(connection, self._clock())
            good = _is_free(connection)
        except (Refusal, GeneratorExit):
            good = _is_free(connection)
            raise
        except (*_LOST, AttributeError) as error:
            if not is_lost(error, connection):
                raise
            raise Unavailable(1) from None
        except _DAMAGE as error:
            raise self._damaged(error) from None
        finally:
            pool.release(connection, good=good)

    def _damaged(self, error: BaseException) -> Unavailable:
        """Mark the node as not ready. It goes on: what can still be read is of use, and PostgreSQL guards the rest."""
        if not self.is_damaged:
            self.is_damaged = True
            self.warn(
                f"{self.describe} reports that it is damaged ({type(error).__name__}); see its own log, restore it, "
                "and start this node again."
            )
        return Unavailable(1)

    async def _acquire(self, pool: Pool, deadline: float) -> Connection:
        while True:
            try:
                return await pool.acquire(deadline)
            except (*_LOST, asyncpg.PostgresError) as error:
                self.commit_metrics.lost(reason(error))
                if time.monotonic() + 0.1 > deadline:
                    raise Unavailable(1) from None
                await asyncio.sleep(0.1)

    async def _attempts(
        self,
        run: Callable[..., Awaitable[Any]],
        action: Callable[..., Awaitable[Any]] | str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Retry until it succeeds, is refused, or the deadline has passed."""
        pool = self._connections()
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            connection = await self._acquire(pool, deadline)
            good = False
            try:
                result = await run(connection, action, args, keywords)
                good = True
            except (Refusal, Duplicate, MissingParent, RunSeparately):
                good = True
                raise
            except _AGAIN:
                good = True
            except asyncpg.DiskFullError:
                raise StorageFull from None
            except _DAMAGE as error:
                raise self._damaged(error) from None
            except asyncpg.QueryCanceledError:
                raise Unavailable(1) from None
            except OutcomeUnknown:
                if run in (self._run_combined, self._run_accounts):
                    raise
                raise Unavailable(1, UNKNOWN) from None
            except (*_LOST, AttributeError) as error:
                if not is_lost(error, connection):
                    raise
                if time.monotonic() + 0.1 > deadline:
                    raise Unavailable(1) from None
            else:
                if self.commit_metrics.lost_at is not None:
                    self.commit_metrics.found()
                return result
            finally:
                pool.release(connection, good=good)
            if time.monotonic() > deadline:
                raise Unavailable(1)
            await asyncio.sleep(0.02)

    async def _read(self, connection: Connection, action: Any, args: Any, keywords: Any) -> Any:
        return await action(Tx(connection, self._clock()), *args, **keywords)

    async def _transact(self, connection: Connection, action: Any, args: Any, keywords: Any) -> Any:
        await connection.execute("BEGIN")
        tx = Tx(connection, self._clock())
        try:
            result = await action(tx, *args, **keywords)
        except RollbackWith as undo:
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
            raise OutcomeUnknown from None
        self.notifications.committed(tx.pending)
        self.commit_metrics.committed(tx.writes, time.perf_counter() - began)
        return result

    is_truncation_overdue = False  # PostgreSQL keeps its log apart from what is read

    async def truncate_log(self) -> bool:
        """Nothing to do: PostgreSQL manages its own log."""
        return True

    @property
    def waiting(self) -> int:
        """How many requests wait for a connection."""
        return 0 if self._pool is None else self._pool.waiting

    @property
    def free_bytes(self) -> int | None:
        """Unknown: the disk is another machine's."""
        return None

    def release_memory(self) -> None:
        """Nothing to do: the pages are cached by PostgreSQL."""

    async def size(self) -> int:
        """The bytes of the database, as PostgreSQL counts them."""
        size: int = await self.read(_size)
        return size

    async def vacuum(self) -> None:
        """Run VACUUM and ANALYZE; no reader or writer waits for them."""
        async with self._opening("vacuum") as connection:
            await connection.execute("SET statement_timeout = 0")
            await connection.execute("VACUUM (ANALYZE)")

    async def close(self) -> None:
        """Close the connections."""
        await self.notifications.close()
        if self._pool is not None and self._pool.loop is asyncio.get_running_loop():
            await self._pool.close()
        self._pool = None


def _is_free(connection: Connection) -> bool:
    """Whether a connection is open, and in no transaction."""
    return not connection.is_closed() and not connection.is_in_transaction()


async def _fetch(connection: Connection, text: str, values: Any, _keywords: Any) -> Any:
    return await connection.fetch(text, *values)


async def _size(tx: Tx) -> Any:
    return await tx.value(Sql("SELECT pg_database_size(current_database())"))


def _run_on_thread(work: Callable[[], Coroutine[Any, Any, R]]) -> R:
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
