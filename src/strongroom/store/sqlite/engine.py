"""The default engine: one SQLite file through apsw. WAL, synchronous=FULL, one writer, group commit.

Statements run on the event loop's thread; COMMIT, which waits for the disk, is handed to a thread of its own, but for
a single write on a disk that has been quick. Writes that arrive while a commit is under way share the next transaction,
and the failure of one does not touch the others; every answer, a refusal included, waits for that COMMIT. Reads use
connections of their own and are not held up by it.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import threading
import time
from collections import deque
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from strongroom.errors import Unavailable
from strongroom.store import file_owners, migrations
from strongroom.store.commit_metrics import CommitMetrics
from strongroom.store.exceptions import CannotOpen
from strongroom.store.sqlite import log_recovery
from strongroom.store.sqlite.change_watch import FileNudges
from strongroom.store.sqlite.damage import BAD_VALUE
from strongroom.store.sqlite.database_file import (
    BUSY_MS,
    CHECKPOINT_PAGES,
    DAMAGE,
    bytes_of,
    connect,
    damaged,
    has_wal_fault,
    make_file,
    stop_process,
    write_anew,
)
from strongroom.store.sqlite.migrate import migrate as migrate_file
from strongroom.store.sqlite.transaction import Look, Tx, at_once
from strongroom.store.sqlite.write_queue import QueuedWrite, passing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from strongroom.store.session_check import SessionCheck

BATCH: Final = 256  # writes that share one transaction at most
CAREFUL: Final = 64  # rounds with savepoints after a write that failed
QUICK_SECONDS: Final = 0.0005  # a commit that the loop may wait for: about as long as it takes to serve two requests
QUICK_COMMITS: Final = 16  # so many in a row, before the next is trusted to be another
FOLD_MS: Final = 100  # how long writers may wait for the log to be emptied
FOLD_SECONDS: Final = 0.5  # after which it is tried again, where somebody still read from it; each time twice that
FOLD_MOST_SECONDS: Final = 8.0
LOG_PAGES: Final = 4 * CHECKPOINT_PAGES  # of the log; beyond it, those who read are asked to let go, so that it ends
STOP_SECONDS: Final = 0.25  # between the first sign of damage and the end: those who wait are answered
LOOK_SECONDS: Final = 5.0  # how long a start looks for damage
READ_CACHE_KIB: Final = 16 * 1024  # of pages that short reads find in memory; taken as they are read
KEPT_READERS: Final = 8  # connections for lists that are kept, with a cache worth keeping

_BEGIN, _COMMIT, _ROLLBACK = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"


class SqliteDatabase:
    """One file, one writer, many readers."""

    waits = False

    def __init__(self, path: str, clock: Callable[[], int], *, migrate: bool = True, recover: bool = False) -> None:
        if has_wal_fault(apsw.sqlite_lib_version()):
            raise CannotOpen(f"SQLite {apsw.sqlite_lib_version()} can corrupt databases; install a newer apsw.")
        self._path = file_owners.real_path(Path(path).expanduser())  # where SQLite puts the log, and others the lock
        self._clock = clock
        self._queue: deque[QueuedWrite] = deque()
        self._busy = False
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers: list[apsw.Connection] = []
        self._snapshots: dict[Tx, Callable[[], None] | None] = {}  # those that are open, and how to ask them to end
        self._folding: asyncio.Future[None] | None = None  # while the log is emptied no snapshot is opened
        self._fold_again: asyncio.TimerHandle | None = None
        self._fold_wait = FOLD_SECONDS
        self._broken = False
        self._closed = False
        self._careful = 0  # rounds that are still to set savepoints
        self._quick = 0  # commits in a row that took little time
        self._logged = 0  # pages in the log after the last commit
        self._copy_at = CHECKPOINT_PAGES
        self.commit_metrics = CommitMetrics()
        self.notice: str | None = None
        self.on_fatal: Callable[[BaseException], None] = partial(stop_process, self._path)
        self.warn: Callable[[str], None] = lambda _sentence: None
        self._unreadable: set[tuple[tuple[str, str], ...]] = set()
        if not migrate and not self._path.exists():
            raise migrations.not_current(migrations.load(), {})
        with self._opening():
            self._lock = make_file(self._path, partial(self._check_log, recover=recover))
            self._writer = self._connect()
            migrate_file(self._writer, clock(), apply=migrate)
            self._writer.set_wal_hook(self._note_log)
            self._reader = self._connect(read_only=True, cache_kib=READ_CACHE_KIB)
            self._look = Look(self._reader, clock, self)
            self.notifications = FileNudges(self._writer, lambda: self._busy, self.damaged)

    def _check_log(self, *, recover: bool) -> None:
        """Look at the log before SQLite reads it: a server sets a damaged one aside, anybody else refuses it."""
        if recover:
            self.notice = log_recovery.recover(self._path, self._clock())
        else:
            log_recovery.refuse(self._path)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Say in a sentence why the file cannot be opened."""
        try:
            yield
        except apsw.NotADBError:
            raise CannotOpen(
                f"{self._path} is not a database of strongroom, or its beginning is damaged; "
                "'strongroom restore FILE' puts a backup in its place, and keeps this file; without a backup, "
                "'strongroom salvage' brings what can be read into a new file."
            ) from None
        except apsw.CorruptError:
            raise self._damaged() from None
        except (apsw.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            advice = f" {file_owners.run_as_owner(self._path)}" if isinstance(error, PermissionError) else ""
            raise CannotOpen(f"Cannot open the database {self._path}: {reason}.{advice}") from None

    def at_start(self, action: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run an action here and now, before there are rounds."""
        with self._opening():
            self._writer.execute(_BEGIN)
            try:
                result = at_once(action(Tx(self._writer, self._clock(), self)))
                self._writer.execute(_COMMIT)
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute(_ROLLBACK)
                raise
        return result

    def _damaged(self) -> CannotOpen:
        return CannotOpen(
            f"The database {self._path} is damaged. 'strongroom doctor' says where; 'strongroom restore FILE' puts a "
            "backup in its place, and keeps this file; without a backup, 'strongroom salvage' brings what can be read "
            "into a new file."
        )

    def damaged(self, error: apsw.Error) -> Unavailable:
        """Pages cannot be read: stop, after those who wait have their answer. Nothing is written from now on."""
        if not self._broken:
            self._broken = True
            self.notice = damaged(self._path, error)
            self.warn(self.notice)
            timer = threading.Timer(STOP_SECONDS, self.on_fatal, (error,))
            timer.daemon = True
            timer.start()
        return Unavailable(1)

    def unreadable(self, names: dict[str, str]) -> None:
        """A row cannot be read: tell the operator which, once."""
        row = tuple(names.items())
        if row in self._unreadable:
            return
        self._unreadable.add(row)
        named = ", ".join(f"{name} {value}" for name, value in row)
        self.warn(
            f"A row of {self._path} cannot be read, and is left out of lists: {named}. "
            "'strongroom doctor' names all of them; the client that has it can write it again, "
            "or 'strongroom salvage' leaves it out."
        )

    def examine(self) -> None:
        """Look at the pages and the indexes of the file, for a few seconds at most.

        A value of the wrong kind in a page that is sound is no reason to serve nobody: its row is left out and named.
        """
        began = time.monotonic()
        with self._opening():
            connection = self._connect(read_only=True)
            connection.set_progress_handler(lambda: time.monotonic() - began > LOOK_SECONDS, 10_000)
            sound = True
            try:
                for check in ("quick_check", "integrity_check"):  # all pages first, then all indexes
                    found = [str(line) for (line,) in connection.execute(f"PRAGMA {check}")]
                    sound = sound and all(line == "ok" or BAD_VALUE.match(line) for line in found)
            except apsw.InterruptError:
                pass  # sound as far as it was looked at
            finally:
                connection.close()
        if not sound:
            raise self._damaged()

    @property
    def is_damaged(self) -> bool:
        """Whether pages were met that cannot be read, or a commit has failed."""
        return self._broken

    @property
    def describe(self) -> str:
        """Where the data lies."""
        return str(self._path)

    def _connect(self, *, read_only: bool = False, cache_kib: int = 2_048) -> apsw.Connection:
        connection = connect(self._path)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = {-cache_kib}")
        return connection

    # Reading

    async def read(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a short read, here and now."""
        return at_once(action(self._look, *args, **keywords))

    async def read_checked(
        self, check: SessionCheck, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any
    ) -> Any:
        """The same, for one who is still to be proven."""
        if check.passed:
            return at_once(action(self._look, *args, **keywords))
        return self._look.run_checked(check, action, args, keywords)

    @asynccontextmanager
    async def snapshot(self, *, steady: bool = False, release: Callable[[], None] | None = None) -> AsyncIterator[Tx]:
        """One moment of the database, on a connection of its own, for a read that takes its time; always steady."""
        del steady
        while self._folding is not None:
            await asyncio.shield(self._folding)
        try:
            if self._readers:
                connection = self._readers.pop()  # the one used last: its cache is warm
            else:
                cache_kib = 2_048 if len(self._snapshots) < KEPT_READERS else 128
                connection = self._connect(read_only=True, cache_kib=cache_kib)
        except DAMAGE as error:
            raise self.damaged(error) from None
        tx = Tx(connection, self._clock(), self)
        self._snapshots[tx] = release
        try:
            connection.execute("BEGIN")
            yield tx
        finally:
            del self._snapshots[tx]
            try:
                tx.close()
                if connection.in_transaction:
                    connection.execute(_COMMIT)
            except DAMAGE as error:  # which whoever read has met already
                self.damaged(error)
            if len(self._readers) < KEPT_READERS and not self._broken:
                self._readers.append(connection)
            else:
                connection.close(force=True)

    # Writing

    async def write(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a write; it is on disk when this returns."""
        return await self._submit(QueuedWrite(action, args, keywords))

    async def write_for(
        self,
        owner: str,
        check: SessionCheck | None,
        action: Callable[..., Awaitable[Any]],
        *args: Any,
        **keywords: Any,
    ) -> Any:
        """Run a write for a caller, whose session is checked within the transaction. All owners share transactions."""
        del owner
        return await self._submit(QueuedWrite(action, args, keywords, check=check))

    async def write_long(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a write that may take long: its statements run on the writer's thread too."""
        return await self._submit(QueuedWrite(action, args, keywords, long=True))

    async def write_long_checked(
        self, check: SessionCheck, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any
    ) -> Any:
        """The same, for one who is still to be proven, within the same transaction."""
        return await self._submit(QueuedWrite(action, args, keywords, check=check, long=True))

    async def truncate_log(self) -> bool:
        """Copy the log into the file and empty it: what was deleted is overwritten in one, gone from the other.

        Where somebody still reads from the log, it is tried again in the background until it is done.
        """
        emptied: bool = await self._submit(QueuedWrite(None, (apsw.SQLITE_CHECKPOINT_TRUNCATE,), {}, long=True))
        return emptied

    def _begin_fold(self, job: QueuedWrite) -> None:
        """Ask those to let go who read from the log, and let nobody begin before it was tried to empty it.

        Whoever cannot let go keeps it from being emptied: then nobody needs to wait.
        """
        if job.args[0] != apsw.SQLITE_CHECKPOINT_TRUNCATE:
            return
        if self._fold_again is not None:
            self._fold_again.cancel()
            self._fold_again = None
        for release in list(self._snapshots.values()):
            if release is not None:
                release()
        if None not in self._snapshots.values():
            self._folding = job.loop.create_future()

    def _fold_there(self, jobs: list[QueuedWrite]) -> None:
        """On the writer's thread: copy the log into the file, and perhaps empty it."""
        [job] = jobs
        error = None
        try:
            self._writer.set_busy_timeout(0 if self._folding is None else FOLD_MS)
            logged, copied = self._writer.wal_checkpoint(mode=job.args[0])
            if copied < logged:  # somebody reads from there: soon again
                self._copy_at = logged + CHECKPOINT_PAGES // 16
            job.result = copied == logged
        except (apsw.BusyError, apsw.FullError):
            job.result = False  # somebody reads from the log, or the file cannot grow: another time
        except apsw.Error as failed:
            error = failed
        _call(jobs, self._end_fold, jobs, error)

    def _end_fold(self, jobs: list[QueuedWrite], error: apsw.Error | None) -> None:
        [job] = jobs
        if self._folding is not None:
            self._folding.set_result(None)
            self._folding = None
        if error is not None:
            self._fail(jobs, error)
            return
        if job.args[0] == apsw.SQLITE_CHECKPOINT_TRUNCATE:
            if job.result:
                self._fold_wait, self._copy_at = FOLD_SECONDS, CHECKPOINT_PAGES
            else:  # somebody still reads from the log, here or in another process
                self._fold_again = job.loop.call_later(self._fold_wait, self._try_fold)
                self._fold_wait = min(2 * self._fold_wait, FOLD_MOST_SECONDS)
        self._settle(jobs)

    def _try_fold(self) -> None:
        self._fold_again = None
        if not self._broken and not self._closed:
            asyncio.ensure_future(self.truncate_log()).add_done_callback(
                lambda tried: tried.cancelled() or tried.exception()
            )

    def _submit(self, job: QueuedWrite) -> asyncio.Future[Any]:
        if self._broken or self._closed:
            raise Unavailable(1)
        self._queue.append(job)
        if not self._busy:
            self._busy = True
            job.loop.call_soon(self._round)  # whatever else arrives in this turn of the loop comes along
        return job.future

    def _round(self) -> None:
        """Start the next transaction with all that waits, up to a long write, which has one to itself."""
        jobs: list[QueuedWrite] = []
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
            if jobs[0].action is None:
                self._begin_fold(jobs[0])
                self._hand_over(lambda: self._fold_there(jobs))
            else:
                self._hand_over(lambda: self._run_there(jobs))
            return
        self._begin_here(jobs)

    def _begin_here(self, jobs: list[QueuedWrite]) -> None:
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

    def _run_here(self, jobs: list[QueuedWrite]) -> None:
        self.notifications.look()
        if self._broken:
            self._undo(jobs)
            return
        if not self._run_all(jobs):
            return
        if len(jobs) == 1 and not self._queue and self._quick >= QUICK_COMMITS:
            self._ended(jobs, self._tx, self._commit(jobs))
        else:
            self._hand_over(lambda: self._commit_there(jobs))

    def _begin_there(self, jobs: list[QueuedWrite]) -> None:
        if self._begin_wait(jobs):
            _call(jobs, self._run_here, jobs)

    def _run_there(self, jobs: list[QueuedWrite]) -> None:
        if self._begin_wait(jobs) and self._run_all(jobs):
            self._commit_there(jobs)

    def _begin_wait(self, jobs: list[QueuedWrite]) -> bool:
        try:
            self._writer.set_busy_timeout(BUSY_MS)
            self._writer.execute(_BEGIN)
        except apsw.Error as error:
            _call(jobs, self._fail, jobs, error)
            return False
        return True

    def _run_all(self, jobs: list[QueuedWrite]) -> bool:
        """Run each job in the open transaction. False if they are not to be committed: they failed, or begin again.

        A savepoint costs a write a twentieth of its time, and hardly one fails. So none is set at first; if a job
        fails that has written something, all of them are undone and run again, each behind a savepoint. The next
        rounds have savepoints from the beginning: whoever fails on purpose does not make the others run twice.
        """
        writer = self._writer
        tx = self._tx = Tx(writer, self._clock(), self)
        alone = len(jobs) == 1
        careful = self._careful > 0 and not alone
        self._careful -= careful
        for job in jobs:
            if careful:
                writer.execute("SAVEPOINT job")
            before = writer.total_changes()
            try:
                job.run(tx)
            except BaseException as error:  # noqa: BLE001 - kept for the one who waits
                if self._broken:
                    _call(jobs, self._undo, jobs)
                    return False
                if not writer.in_transaction:  # a full disk or a failed read undoes the whole transaction
                    _call(jobs, self._fail, jobs, error)
                    return False
                if careful:
                    writer.execute("ROLLBACK TO job")
                elif alone:
                    writer.execute(_ROLLBACK)
                elif writer.total_changes() != before:
                    writer.execute(_ROLLBACK)
                    self._careful = CAREFUL
                    self._begin_here(jobs)
                    return False
            if careful:
                writer.execute("RELEASE job")
        return True

    def _undo(self, jobs: list[QueuedWrite]) -> None:
        """The file is damaged: none of these is written."""
        if self._writer.in_transaction:
            with suppress(apsw.Error):
                self._writer.execute(_ROLLBACK)
        for job in jobs:
            job.error = Unavailable(1)
        self._settle(jobs)

    def _commit_there(self, jobs: list[QueuedWrite]) -> None:
        """On the writer's thread: wait for the disk, then let the answers go."""
        error = self._commit(jobs)
        _call(jobs, self._ended, jobs, self._tx, error)

    def _commit(self, jobs: list[QueuedWrite]) -> apsw.Error | None:
        """Wait for the disk; what it said, if it failed."""
        try:
            if self._writer.in_transaction:
                began = time.perf_counter()
                self._writer.execute(_COMMIT)
                seconds = time.perf_counter() - began
                self.commit_metrics.committed(len(jobs), seconds)
                self._quick = self._quick + 1 if seconds < QUICK_SECONDS else 0
        except apsw.Error as error:
            if self._writer.in_transaction:
                with suppress(apsw.Error):
                    self._writer.execute(_ROLLBACK)
            return error
        return None

    def _ended(self, jobs: list[QueuedWrite], tx: Tx, error: apsw.Error | None) -> None:
        if error is not None:
            self._fail(jobs, error, in_commit=True)
            return
        self.notifications.committed(tx.pending)  # before the answers leave
        if self._logged >= self._copy_at:
            self._copy_at = self._logged + CHECKPOINT_PAGES
            mode = apsw.SQLITE_CHECKPOINT_PASSIVE if self._logged < LOG_PAGES else apsw.SQLITE_CHECKPOINT_TRUNCATE
            self._queue.appendleft(QueuedWrite(None, (mode,), {}, long=True))
        elif self._logged < CHECKPOINT_PAGES:
            self._copy_at = CHECKPOINT_PAGES
        self._settle(jobs)

    def _note_log(self, _writer: apsw.Connection, _name: str, pages: int) -> int:
        """Called with every commit. SQLite itself would copy the log within one, and whoever wrote would wait."""
        self._logged = pages
        return apsw.SQLITE_OK

    def _settle(self, jobs: list[QueuedWrite]) -> None:
        for job in jobs:
            job.settle()
        if self._queue:
            self._round()
        else:
            self._busy = False

    def _fail(self, jobs: list[QueuedWrite], error: BaseException, *, in_commit: bool = False) -> None:
        """None of these was written. A full disk and a busy file pass; anything else does not.

        After a failed commit nobody knows what the disk holds, and the end is at once.
        """
        refusal: BaseException = passing(error) or error
        if isinstance(refusal, DAMAGE) and not in_commit:
            refusal = self.damaged(refusal)
        elif isinstance(refusal, apsw.Error):
            self._broken = True
            if isinstance(error, DAMAGE):
                self.warn(damaged(self._path, error))
            refusal = Unavailable(1)
        for job in jobs:
            job.error = refusal
        self._settle(jobs)
        if self._broken and (in_commit or not isinstance(error, DAMAGE)):
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

    def release_memory(self) -> None:
        """Give up the cached pages of all connections but those that are in use."""
        for connection in (self._reader, *self._readers, *(() if self._busy else (self._writer,))):
            connection.release_memory()

    async def vacuum(self) -> None:
        """Write the file anew, on a thread of its own: who writes meanwhile waits."""
        try:
            await asyncio.to_thread(self._vacuum)
        except DAMAGE as error:
            raise self.damaged(error) from None
        except apsw.Error as error:
            raise passing(error) or error from None

    def _vacuum(self) -> None:
        connection = connect(self._path)
        try:
            write_anew(connection, self._path.parent, FOLD_MS)
        finally:
            connection.close()

    async def close(self) -> None:
        """Wait for the writes in hand, then close: the last connection folds the log into the file."""
        await self.notifications.close()
        if self._fold_again is not None:
            self._fold_again.cancel()
        while self._busy:  # noqa: ASYNC110 - an event for this would cost every write
            await asyncio.sleep(0.005)
        self._closed = True
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
            self._thread = None
        for connection in (*self._readers, self._reader, self._writer):
            connection.close()
        self._readers.clear()
        self._lock.close()


def _call(jobs: Sequence[QueuedWrite], method: Callable[..., None], *args: Any) -> None:
    """Go on upon the event loop of those who wait."""
    jobs[0].loop.call_soon_threadsafe(method, *args)
