"""The default engine: one SQLite file through apsw. WAL, synchronous=FULL, one writer, group commit.

Statements run on the event loop's thread; only COMMIT, which waits for the disk, is handed to a thread of its own.
Writes that arrive while a commit is under way share the next transaction, each behind a savepoint, so that the failure
of one does not touch the others; every answer, a refusal included, waits for that COMMIT. Reads use connections of
their own and are not held up by it.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import threading
import time
from collections import deque
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from strongroom.errors import Refusal, StorageFull, Unavailable
from strongroom.store import migrations
from strongroom.store.db import CannotOpen, Duplicate, Orphan, Sql, Undo
from strongroom.store.disk import bytes_of, make_file, stop_process, write_anew
from strongroom.store.nudges import FileNudges, Telling
from strongroom.store.pulse import Pulse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence

    from strongroom.store.riding import Proof

PAGE_BYTES: Final = 128 * 1024  # a page of a list: small enough to be read between two requests
BATCH: Final = 256  # writes that share one transaction at most
FOLD_MS: Final = 100  # how long writers may wait for the log to be emptied
BUSY_MS: Final = 5_000  # how long to wait for another process that is writing
LOOK_SECONDS: Final = 5.0  # how long a start looks for damage
KEPT_READERS: Final = 8  # connections for lists that are kept, with a cache worth keeping

# SQLite from 3.7.0 on can corrupt a WAL database when a checkpoint and a commit meet; fixed in these.
_FIXED: Final = {(3, 44): 6, (3, 50): 7, (3, 51): 3}

_BEGIN, _COMMIT, _ROLLBACK = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"


def has_wal_fault(version: str) -> bool:
    """Whether this version of SQLite can corrupt a database in WAL mode."""
    major, minor, patch = (int(part) for part in [*version.split("."), "0", "0"][:3])
    if (major, minor) >= (3, 53):
        return False
    fixed = _FIXED.get((major, minor))
    return fixed is None or patch < fixed


class _Tx(Telling):
    """A transaction on one connection. Every method runs its statement before it returns to the loop."""

    __slots__ = ("_connection", "_execute", "_open", "now")

    def __init__(self, connection: apsw.Connection, now: int) -> None:
        super().__init__()
        self._connection = connection
        self._execute = connection.cursor().execute
        self._open: list[apsw.Cursor] = []
        self.now = now

    def close(self) -> None:
        """End what is still being read: an open statement would keep its moment alive for whoever comes next."""
        for cursor in self._open:
            cursor.close(force=True)

    def _rows(self, sql: Sql, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._execute(sql.sqlite, parameters).fetchall()
        except apsw.ConstraintError as error:
            gone = getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_FOREIGNKEY
            raise (Orphan if gone else Duplicate)(str(error)) from None

    async def one(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> Any:
        rows = self._rows(sql, parameters)
        return kind(*rows[0]) if rows else None

    async def all(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        return [kind(*row) for row in self._rows(sql, parameters)]

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        rows = self._rows(sql, parameters)
        return rows[0][0] if rows else None

    async def run(self, sql: Sql, /, **parameters: Any) -> int:
        self._rows(sql, parameters)
        return self._connection.changes()

    async def each(self, sql: Sql, rows: Sequence[dict[str, Any]], /, by: str) -> list[bool]:
        del by
        return [await self.run(sql, **parameters) > 0 for parameters in rows]

    async def pages(
        self, kind: type[Any], sql: Sql, /, after: str, by: str, **parameters: Any
    ) -> AsyncIterator[list[Any]]:
        """Pages of one open statement: it shows one moment by itself, and needs no key to go on."""
        del after, by
        heavy = kind.__struct_fields__.index("data")
        cursor = self._connection.cursor()
        self._open.append(cursor)
        cursor.execute(sql.sqlite, parameters)
        try:
            while True:
                page: list[Any] = []
                size = 0
                for row in cursor:
                    page.append(kind(*row))
                    size += 200 + len(row[heavy] or "")
                    if size >= PAGE_BYTES:
                        break
                else:
                    yield page
                    return
                yield page
        finally:
            cursor.close()


class _Look(_Tx):
    """What short reads share: nothing of it lasts from one to the next."""

    __slots__ = ("_clock",)

    def __init__(self, connection: apsw.Connection, clock: Callable[[], int]) -> None:
        super().__init__(connection, 0)
        self._clock = clock

    @property
    def now(self) -> int:
        """The moment, asked for when it matters."""
        return self._clock()

    @now.setter
    def now(self, _moment: int) -> None:
        pass


class _Job:
    """One write that waits for its turn, and then for the disk."""

    __slots__ = ("action", "args", "error", "future", "keywords", "long", "loop", "result")

    def __init__(
        self,
        action: Callable[..., Awaitable[Any]] | None,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        long: bool,
    ) -> None:
        self.action = action
        self.args = args
        self.keywords = keywords
        self.long = long
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, tx: _Tx) -> None:
        """Run the action; what comes of it is kept until the commit is done."""
        try:
            assert self.action is not None  # noqa: S101 - folding the log runs no action
            self.result = _at_once(self.action(tx, *self.args, **self.keywords))
        except Undo as undo:
            self.result = undo.result
            raise
        except BaseException as error:
            self.error = _passing(error) or error
            raise

    def settle(self) -> None:
        """Tell the one who waits. A request that was cancelled meanwhile has nobody waiting."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def _passing(error: BaseException) -> Refusal | None:
    """What to say of a fault that passes by itself; None for one that does not."""
    if isinstance(error, apsw.FullError):
        return StorageFull()
    return Unavailable(1) if isinstance(error, apsw.BusyError) else None


def _at_once(awaitable: Awaitable[Any]) -> Any:
    """The result of an action that awaits nothing but its transaction, and so never suspends."""
    coroutine: Coroutine[Any, Any, Any] = awaitable  # type: ignore[assignment]
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("an action awaited something other than its transaction")


class SqliteDatabase:
    """One file, one writer, many readers."""

    def __init__(self, path: str, clock: Callable[[], int], *, migrate: bool = True) -> None:
        if has_wal_fault(apsw.sqlite_lib_version()):
            raise CannotOpen(f"SQLite {apsw.sqlite_lib_version()} can corrupt databases; install a newer apsw.")
        self._path = Path(path).expanduser().absolute()
        self._clock = clock
        self._queue: deque[_Job] = deque()
        self._busy = False
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers: list[apsw.Connection] = []
        self._lists = 0
        self._broken = False
        self.pulse = Pulse()
        self.on_fatal: Callable[[BaseException], None] = stop_process
        if not migrate and not self._path.exists():
            raise migrations.not_current(migrations.load(), {})
        with self._opening():
            self._lock = make_file(self._path)
            self._writer = self._connect()
            migrations.migrate_sqlite(self._writer, clock(), may=migrate)
            self._reader = self._connect(read_only=True)
            self._look = _Look(self._reader, clock)
            self.nudges = FileNudges(self._writer, lambda: self._busy)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Say in a sentence why the file cannot be opened."""
        try:
            yield
        except apsw.NotADBError:
            raise CannotOpen(
                f"{self._path} is not a database of strongroom, or its beginning is damaged; "
                "'strongroom restore FILE' puts a backup in its place, and keeps this file."
            ) from None
        except apsw.CorruptError:
            raise self._damaged() from None
        except (apsw.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CannotOpen(f"Cannot open the database {self._path}: {reason}.") from None

    def at_start(self, action: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run an action here and now, before there are rounds."""
        with self._opening():
            self._writer.execute(_BEGIN)
            try:
                result = _at_once(action(_Tx(self._writer, self._clock())))
                self._writer.execute(_COMMIT)
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute(_ROLLBACK)
                raise
        return result

    def _damaged(self) -> CannotOpen:
        return CannotOpen(
            f"The database {self._path} is damaged. 'strongroom doctor' says where; 'strongroom restore FILE' puts a "
            "backup in its place, and keeps this file."
        )

    def examine(self) -> None:
        """Look at the pages of the file, for a few seconds at most."""
        began = time.monotonic()
        with self._opening():
            connection = self._connect(read_only=True)
            connection.set_progress_handler(lambda: time.monotonic() - began > LOOK_SECONDS, 10_000)
            try:
                sound = connection.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
            except apsw.InterruptError:
                sound = True  # as far as it was looked at
            finally:
                connection.close()
        if not sound:
            raise self._damaged()

    @property
    def describe(self) -> str:
        """Where the data lies."""
        return str(self._path)

    def _connect(self, *, read_only: bool = False, cache_kib: int = 4_096) -> apsw.Connection:
        connection = connect(self._path)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = {-cache_kib}")
        return connection

    # Reading

    async def read(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a short read, here and now."""
        return _at_once(action(self._look, *args, **keywords))

    async def read_if(self, proof: Proof, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """The same, for one who is still to be proven: a statement costs no round trip, so that comes first."""
        if not proof.made:
            proof.make(_at_once(self._look.value(proof.sql, **proof.parameters)))
        return _at_once(action(self._look, *args, **keywords))

    @asynccontextmanager
    async def snapshot(self, *, steady: bool = False) -> AsyncIterator[_Tx]:
        """One moment of the database, on a connection of its own, for a read that takes its time; always steady."""
        del steady
        if self._readers:
            connection = self._readers.pop()  # the one used last: its cache is warm
        else:
            connection = self._connect(read_only=True, cache_kib=2_048 if self._lists < KEPT_READERS else 128)
        self._lists += 1
        tx = _Tx(connection, self._clock())
        try:
            connection.execute("BEGIN")
            yield tx
        finally:
            self._lists -= 1
            tx.close()
            if connection.in_transaction:
                connection.execute(_COMMIT)
            if len(self._readers) < KEPT_READERS:
                self._readers.append(connection)
            else:
                connection.close()

    # Writing

    async def write(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a write; it is on disk when this returns."""
        return await self._submit(_Job(action, args, keywords, long=False))

    async def write_long(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a write that may take long: its statements run on the writer's thread too."""
        return await self._submit(_Job(action, args, keywords, long=True))

    async def fold(self) -> None:
        """Copy the log into the file and empty it: what was deleted is overwritten in one, gone from the other."""
        await self._submit(_Job(None, (), {}, long=True))

    def _submit(self, job: _Job) -> asyncio.Future[Any]:
        if self._broken:
            raise Unavailable(1)
        self._queue.append(job)
        if not self._busy:
            self._busy = True
            job.loop.call_soon(self._round)  # whatever else arrives in this turn of the loop comes along
        return job.future

    def _round(self) -> None:
        """Start the next transaction with all that waits, up to a long write, which has one to itself."""
        jobs: list[_Job] = []
        while self._queue and len(jobs) < BATCH:
            if self._queue[0].long and jobs:
                break
            job = self._queue.popleft()
            if not job.future.done():
                jobs.append(job)
                if job.long:
                    break
        if not jobs:
            self._busy = False
            return
        if jobs[0].long:
            self._hand_over(lambda: self._run_there(jobs))
            return
        self._writer.set_busy_timeout(0)
        try:
            self._writer.execute(_BEGIN)
        except apsw.BusyError:  # another process is writing: wait for it on the thread, not on the loop
            self._hand_over(lambda: self._begin_there(jobs))
            return
        except apsw.Error as error:
            self._fail(jobs, error)
            return
        self._run_here(jobs)

    def _run_here(self, jobs: list[_Job]) -> None:
        self.nudges.look()
        if self._run_all(jobs):
            self._hand_over(lambda: self._commit(jobs))

    def _begin_there(self, jobs: list[_Job]) -> None:
        if self._begin_wait(jobs):
            _call(jobs, self._run_here, jobs)

    def _run_there(self, jobs: list[_Job]) -> None:
        if jobs[0].action is None:
            self._writer.set_busy_timeout(FOLD_MS)
            try:
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except (apsw.BusyError, apsw.FullError):
                pass  # somebody reads from the log, or the file cannot grow: another time
            except apsw.Error as error:
                _call(jobs, self._fail, jobs, error)
                return
            _call(jobs, self._settle, jobs)
            return
        if self._begin_wait(jobs) and self._run_all(jobs):
            self._commit(jobs)

    def _begin_wait(self, jobs: list[_Job]) -> bool:
        try:
            self._writer.set_busy_timeout(BUSY_MS)
            self._writer.execute(_BEGIN)
        except apsw.Error as error:
            _call(jobs, self._fail, jobs, error)
            return False
        return True

    def _run_all(self, jobs: list[_Job]) -> bool:
        """Run each job in the open transaction. False if SQLite has rolled all of it back."""
        writer = self._writer
        tx = self._tx = _Tx(writer, self._clock())
        alone = len(jobs) == 1
        for job in jobs:
            if not alone:
                writer.execute("SAVEPOINT job")
            try:
                job.run(tx)
            except BaseException as error:  # noqa: BLE001 - kept for the one who waits
                if not writer.in_transaction:  # a full disk or a failed read undoes the whole transaction
                    _call(jobs, self._fail, jobs, error)
                    return False
                writer.execute(_ROLLBACK if alone else "ROLLBACK TO job")
            if not alone:
                writer.execute("RELEASE job")
        return True

    def _commit(self, jobs: list[_Job]) -> None:
        """On the writer's thread: wait for the disk, then let the answers go."""
        try:
            if self._writer.in_transaction:
                began = time.perf_counter()
                self._writer.execute(_COMMIT)
                self.pulse.committed(len(jobs), time.perf_counter() - began)
        except apsw.Error as error:
            if self._writer.in_transaction:
                with suppress(apsw.Error):
                    self._writer.execute(_ROLLBACK)
            _call(jobs, self._fail, jobs, error)
        else:
            _call(jobs, self._committed, jobs, self._tx)

    def _committed(self, jobs: list[_Job], tx: _Tx) -> None:
        self.nudges.committed(tx.told)  # before the answers leave
        self._settle(jobs)

    def _settle(self, jobs: list[_Job]) -> None:
        for job in jobs:
            job.settle()
        if self._queue:
            self._round()
        else:
            self._busy = False

    def _fail(self, jobs: list[_Job], error: BaseException) -> None:
        """None of these was written. A full disk and a busy file pass; anything else does not."""
        refusal: BaseException = _passing(error) or error
        if isinstance(refusal, apsw.Error):
            self._broken = True
            refusal = Unavailable(1)
        for job in jobs:
            job.error = refusal
        self._settle(jobs)
        if self._broken:
            self.on_fatal(error)

    def _hand_over(self, work: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
            self._thread.start()
        self._inbox.put(work)

    def _work(self) -> None:
        while (work := self._inbox.get()) is not None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - a writer that is gone would leave everybody waiting
                self._broken = True
                self.on_fatal(error)

    @property
    def waiting(self) -> int:
        """How many writes wait for their turn."""
        return len(self._queue)

    @property
    def free_bytes(self) -> int | None:
        """How much room is left on the disk of the file."""
        return shutil.disk_usage(self._path.parent).free

    async def size(self) -> int:
        """The bytes of the file and of its log."""
        return bytes_of(f"{self._path}") + bytes_of(f"{self._path}-wal")

    async def vacuum(self) -> None:
        """Write the file anew, on a thread of its own: who writes meanwhile waits."""
        try:
            await asyncio.to_thread(self._vacuum)
        except apsw.Error as error:
            raise _passing(error) or error from None

    def _vacuum(self) -> None:
        connection = connect(self._path)
        try:
            write_anew(connection, self._path.parent, FOLD_MS)
        finally:
            connection.close()

    async def close(self) -> None:
        """Wait for the writes in hand, then close: the last connection folds the log into the file."""
        await self.nudges.close()
        while self._busy:  # noqa: ASYNC110 - an event for this would cost every write
            await asyncio.sleep(0.005)
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
            self._thread = None
        for connection in (*self._readers, self._reader, self._writer):
            connection.close()
        self._readers.clear()
        self._lock.close()


def connect(path: Path) -> apsw.Connection:
    """A connection with every setting that durability and safety rest on."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=256)
    connection.set_busy_timeout(BUSY_MS)
    # Without this promise, SQLite prepares a statement anew whenever a value that it is given changes.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "temp_store = MEMORY",
        "secure_delete = ON",
        f"journal_size_limit = {64 * 1024 * 1024}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _call(jobs: Sequence[_Job], method: Callable[..., None], *args: Any) -> None:
    """Go on upon the event loop of those who wait."""
    jobs[0].loop.call_soon_threadsafe(method, *args)
