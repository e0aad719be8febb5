"""The one writer of a SQLite file: group commit and checkpoints.

Statements run on the event loop's thread; COMMIT, which waits for the disk, runs on a thread of its own, but for a
single write on a disk that has been quick. Writes that arrive while a commit is under way share the next transaction,
and the failure of one does not touch the others; every response, a refusal included, waits for that COMMIT.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import apsw

from strongroom.errors import Refusal, Unavailable
from strongroom.store.sqlite.database_file import BUSY_MS, CHECKPOINT_PAGES, DAMAGE, TRUNCATE_WAIT_MS
from strongroom.store.sqlite.transaction import Faults, Tx
from strongroom.store.sqlite.write_queue import QueuedWrite, transient_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from strongroom.store.commit_metrics import CommitMetrics
    from strongroom.store.sqlite.change_watch import FileNotifications
    from strongroom.store.sqlite.checkpointer import Checkpointer

MAX_BATCH: Final = 256  # writes that share one transaction at most
SAVEPOINT_BATCHES: Final = 64  # batches with savepoints after a write that failed
QUICK_SECONDS: Final = 0.0005  # a commit that the loop may wait for: about as long as it takes to serve two requests
QUICK_COMMITS: Final = 16  # so many in a row, before the next is trusted to be another
RETRY_SECONDS: Final = 0.5  # after which truncation is tried again, where the log was still read; doubled each time
MAX_RETRY_SECONDS: Final = 8.0
OWED_SECONDS: Final = 15.0  # that truncation is owed, after which no snapshot begins that cannot be asked to end
MAX_LOG_PAGES: Final = 4 * CHECKPOINT_PAGES  # beyond it, open snapshots are asked to end, so that the log is truncated

BEGIN, COMMIT, ROLLBACK = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"


class WriterFaults(Faults, Protocol):
    """Receives reports of faults that the writer meets."""

    on_fatal: Callable[[BaseException], None]  # ends the process: what the file holds is unknown

    def warn_of_damage(self, error: BaseException) -> None:
        """Warn the operator that pages cannot be read."""


class Writer:
    """Runs queued writes in batches, a transaction each, and checkpoints between them."""

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Callable[[], int],
        notifications: FileNotifications,
        metrics: CommitMetrics,
        faults: WriterFaults,
        snapshots: Mapping[Tx, Callable[[], None] | None],
        checkpointer: Checkpointer,
    ) -> None:
        self.connection = connection
        self.busy = False  # from the first write of a batch until no write waits
        self.broken = False  # nothing is written any more
        self.truncating: asyncio.Future[None] | None = None  # while the log is truncated no snapshot is opened
        self._clock = clock
        self._notifications = notifications
        self._metrics = metrics
        self._faults = faults
        self._snapshots = snapshots  # those that are open, and how to ask them to end
        self._checkpointer = checkpointer
        self._waits_for_copy = False  # the next batch, until the log is copied into the file
        self._queue: deque[QueuedWrite] = deque()
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._savepoint_batches = 0  # batches that are still to set savepoints
        self._quick_commits = 0  # in a row
        self._log_pages = 0  # after the last commit
        self._checkpoint_at = CHECKPOINT_PAGES
        self._retry: asyncio.TimerHandle | None = None
        self._owed_since: float | None = None  # when truncation was first tried, and the log was still read
        self._retry_seconds = RETRY_SECONDS
        connection.set_wal_hook(self._count_log_pages)

    @property
    def waiting(self) -> int:
        """How many writes wait for their batch."""
        return len(self._queue)

    @property
    def is_truncation_overdue(self) -> bool:
        """Whether the log was to be truncated for long, or is over its size, and is still read."""
        if self._owed_since is None:
            return False
        return self._log_pages >= MAX_LOG_PAGES or time.monotonic() - self._owed_since >= OWED_SECONDS

    def retry_truncation(self) -> None:
        """Truncate the log now, if it is owed: a snapshot that could not be asked to end has ended."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry_truncate()

    def submit(self, write: QueuedWrite) -> asyncio.Future[Any]:
        """Queue a write; its result, once it is on disk."""
        if self.broken or self._closed:
            raise Unavailable(1)
        self._queue.append(write)
        if not self.busy:
            self.busy = True
            write.loop.call_soon(self._next_batch)  # whatever else arrives in this turn of the loop comes along
        return write.future

    async def close(self) -> None:
        """Wait for the queued writes, then end the thread. The connection stays open."""
        if self._retry is not None:
            self._retry.cancel()
        while self.busy or self._checkpointer.running:  # noqa: ASYNC110 - an event for this would cost every write
            await asyncio.sleep(0.005)
        self._closed = True
        self._checkpointer.close()
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join()
            self._thread = None

    # Batches

    def _next_batch(self) -> None:
        """Start the next transaction with all that waits, up to a long write, which has one to itself."""
        self._waits_for_copy = self._checkpointer.running and self._must_wait_for_copy()
        if self._waits_for_copy:
            return
        batch: list[QueuedWrite] = []
        while self._queue and len(batch) < MAX_BATCH:
            if self._queue[0].long and batch:
                break
            write = self._queue.popleft()
            if not write.future.done():
                batch.append(write)
                if write.long:
                    break
        if not batch:
            self.busy = False
            return
        if batch[0].long:
            if batch[0].action is None:
                self._prepare_checkpoint(batch[0])
                self._run_on_thread(lambda: self._checkpoint(batch))
            else:
                self._run_on_thread(lambda: self._execute_on_thread(batch))
            return
        self._begin(batch)

    def _must_wait_for_copy(self) -> bool:
        """Whether the log has reached its bound, or a checkpoint is next: two at once would hinder each other."""
        return self._log_pages >= MAX_LOG_PAGES or (bool(self._queue) and self._queue[0].action is None)

    def _begin(self, batch: list[QueuedWrite]) -> None:
        self.connection.set_busy_timeout(0)
        try:
            self.connection.execute(BEGIN)
        except apsw.BusyError:  # another process is writing: wait for it on the thread, not on the loop
            self._run_on_thread(lambda: self._begin_on_thread(batch))
            return
        except apsw.Error as error:
            self._fail(batch, error)
            return
        self._execute_on_loop(batch)

    def _execute_on_loop(self, batch: list[QueuedWrite]) -> None:
        self._notifications.poll()
        if self.broken:
            self._roll_back(batch)
            return
        if not self._execute(batch):
            return
        if len(batch) == 1 and not self._queue and self._quick_commits >= QUICK_COMMITS:
            self._committed(batch, self._tx, self._commit(batch))
        else:
            self._run_on_thread(lambda: self._commit_on_thread(batch))

    def _begin_on_thread(self, batch: list[QueuedWrite]) -> None:
        if self._begin_waiting(batch):
            _call_on_loop(batch, self._execute_on_loop, batch)

    def _execute_on_thread(self, batch: list[QueuedWrite]) -> None:
        if self._begin_waiting(batch) and self._execute(batch):
            self._commit_on_thread(batch)

    def _begin_waiting(self, batch: list[QueuedWrite]) -> bool:
        try:
            self.connection.set_busy_timeout(BUSY_MS)
            self.connection.execute(BEGIN)
        except apsw.Error as error:
            _call_on_loop(batch, self._fail, batch, error)
            return False
        return True

    def _execute(self, batch: list[QueuedWrite]) -> bool:
        """Run each write in the open transaction. False if they are not to be committed: they failed, or begin again.

        A savepoint costs a write a twentieth of its time, and hardly one fails. So none is set at first; if a write
        fails that has changed something, all of them are rolled back and run again, each behind a savepoint. The next
        batches have savepoints from the beginning: a client that fails on purpose does not make the others run twice.
        """
        connection = self.connection
        tx = self._tx = Tx(connection, self._clock(), self._faults)
        savepoints = self._savepoint_batches > 0
        self._savepoint_batches -= savepoints
        try:
            left = self._execute_combined(batch, tx, savepoints=savepoints)
        except apsw.Error as error:
            _call_on_loop(batch, self._fail, batch, error)
            return False
        if left is None:
            self._begin_again(batch)
            return False
        for write in left:
            if savepoints:
                connection.execute("SAVEPOINT job")
            before = connection.total_changes()
            try:
                write.run(tx)
            except BaseException as error:  # noqa: BLE001 - stored in the write for its caller
                if self.broken:
                    _call_on_loop(batch, self._roll_back, batch)
                    return False
                if not connection.in_transaction:  # a full disk or a failed read undoes the whole transaction
                    _call_on_loop(batch, self._fail, batch, error)
                    return False
                if savepoints:
                    connection.execute("ROLLBACK TO job")
                elif len(batch) == 1:
                    connection.execute(ROLLBACK)
                elif connection.total_changes() != before:
                    self._begin_again(batch)
                    return False
            if savepoints:
                connection.execute("RELEASE job")
        return True

    def _begin_again(self, batch: list[QueuedWrite]) -> None:
        """Roll back, and run a batch again with savepoints."""
        self.connection.execute(ROLLBACK)
        self._savepoint_batches = SAVEPOINT_BATCHES
        self._begin(batch)

    def _execute_combined(self, batch: list[QueuedWrite], tx: Tx, *, savepoints: bool) -> list[QueuedWrite] | None:
        """Run writes of documents together, account by account; the writes that are left to be run by themselves.

        None: some of them are to be undone, and there is no savepoint.
        """
        connection = self.connection
        groups: dict[tuple[str, type[Any]], dict[str, QueuedWrite]] = {}
        for write in batch:
            if write.form is not None:
                groups.setdefault((write.owner, type(write.form)), {})[write.form.uid] = write
        done: set[int] = set()
        found: dict[Any, Any] = {}
        for (owner, _), group in groups.items():
            writes = [write for write in group.values() if self._passes(write, tx, found)]
            if savepoints:
                connection.execute("SAVEPOINT combined")
            before = connection.total_changes()
            if writes and self._run_combined(owner, writes, tx):
                done.update(map(id, writes))
            elif savepoints:
                connection.execute("ROLLBACK TO combined")
            elif connection.total_changes() != before:
                return None
            if savepoints:
                connection.execute("RELEASE combined")
            done.update(id(write) for write in group.values() if write.error is not None)
        return [write for write in batch if id(write) not in done] if done else batch

    def _passes(self, write: QueuedWrite, tx: Tx, found: dict[Any, Any]) -> bool:
        """Whether the session of a write's caller is valid; if not, the refusal is the write's outcome.

        `found` has what was read for the writes before: one session is read once, for none of them can end it.
        """
        write.result = write.error = None
        check = write.check
        if check is None or check.passed:
            return True
        try:
            session = check.sql, *check.parameters.values()
            if session not in found:
                found[session] = tx.read_check(check)
            check.resolve(found[session])
        except Refusal as refusal:
            write.error = refusal
            return False
        except Exception:
            if not self.connection.in_transaction:  # a failed read has undone the whole transaction
                raise
            return False  # run by itself, it meets the same, and its caller is told
        return True

    def _run_combined(self, owner: str, writes: list[QueuedWrite], tx: Tx) -> bool:
        """Run writes of one account together; False if that is to be undone, because one of them is to be refused.

        An error that is not SQLite's is the outcome of all of them.
        """
        forms = [write.form for write in writes if write.form is not None]
        try:
            stored = tx.run_combined(owner, forms)
        except apsw.Error:
            raise
        except Exception as error:  # noqa: BLE001 - stored in the writes for their callers
            for write in writes:
                write.error = error
            return False
        if stored is None:
            return False
        for write, form, document in zip(writes, forms, stored, strict=True):
            write.result = form.result(document)
            tx.notify(owner, form.vault_uid)
        return True

    def _roll_back(self, batch: list[QueuedWrite]) -> None:
        """Roll back and refuse a batch: the file is damaged."""
        if self.connection.in_transaction:
            with suppress(apsw.Error):
                self.connection.execute(ROLLBACK)
        for write in batch:
            write.error = Unavailable(1)
        self._complete(batch)

    def _commit_on_thread(self, batch: list[QueuedWrite]) -> None:
        """Commit, which waits for the disk, then let the responses go."""
        error = self._commit(batch)
        _call_on_loop(batch, self._committed, batch, self._tx, error)

    def _commit(self, batch: list[QueuedWrite]) -> apsw.Error | None:
        """Commit, which waits for the disk; the error, if it failed."""
        try:
            if self.connection.in_transaction:
                began = time.perf_counter()
                self.connection.execute(COMMIT)
                seconds = time.perf_counter() - began
                self._metrics.committed(len(batch), seconds)
                self._quick_commits = self._quick_commits + 1 if seconds < QUICK_SECONDS else 0
        except apsw.Error as error:
            if self.connection.in_transaction:
                with suppress(apsw.Error):
                    self.connection.execute(ROLLBACK)
            return error
        return None

    def _committed(self, batch: list[QueuedWrite], tx: Tx, error: apsw.Error | None) -> None:
        if error is not None:
            self._fail(batch, error, in_commit=True)
            return
        self._notifications.committed(tx.pending)  # before the responses leave
        if self._log_pages >= self._checkpoint_at:
            self._checkpoint_at = self._log_pages + CHECKPOINT_PAGES
            if not self._checkpointer.running:
                self._checkpointer.start(batch[0].loop, self._checkpoint_soon)
        elif self._log_pages < CHECKPOINT_PAGES:
            self._checkpoint_at = CHECKPOINT_PAGES
        self._complete(batch)

    def _checkpoint_soon(self) -> None:
        """Checkpoint before the writes that wait: what was committed while the log was copied."""
        if not self.broken:
            is_long = self._log_pages >= MAX_LOG_PAGES
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if is_long else apsw.SQLITE_CHECKPOINT_PASSIVE
            self._queue.appendleft(QueuedWrite(None, (mode,), {}, long=True))
        if self._waits_for_copy or not self.busy:
            self.busy = True
            self._next_batch()

    def _complete(self, batch: list[QueuedWrite]) -> None:
        for write in batch:
            write.complete()
        if self._queue:
            self._next_batch()
        else:
            self.busy = False

    def _fail(self, batch: list[QueuedWrite], error: BaseException, *, in_commit: bool = False) -> None:
        """Refuse a batch, of which nothing was written. A full disk and a busy file pass; anything else does not.

        After a failed commit what the disk holds is unknown, and the process ends at once.
        """
        refusal: BaseException = transient_refusal(error) or error
        if isinstance(refusal, DAMAGE) and not in_commit:
            refusal = self._faults.damaged(refusal)
        elif isinstance(refusal, apsw.Error):
            self.broken = True
            if isinstance(error, DAMAGE):
                self._faults.warn_of_damage(error)
            refusal = Unavailable(1)
        for write in batch:
            write.error = refusal
        self._complete(batch)
        if self.broken and (in_commit or not isinstance(error, DAMAGE)):
            self._faults.on_fatal(error)

    # The thread

    def _run_on_thread(self, work: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
            self._thread.start()
        self._inbox.put(work)

    def _work(self) -> None:
        while (work := self._inbox.get()) is not None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - without the thread, every caller would wait for ever
                self.broken = True
                self._faults.on_fatal(error)

    # Checkpoints

    async def truncate_log(self) -> bool:
        """Copy the log into the file and truncate it; False where it is still read, and tried again later."""
        truncated: bool = await self.submit(QueuedWrite(None, (apsw.SQLITE_CHECKPOINT_TRUNCATE,), {}, long=True))
        return truncated

    def _count_log_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Called with every commit. SQLite itself would checkpoint within a commit, and its caller would wait."""
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _prepare_checkpoint(self, write: QueuedWrite) -> None:
        """Before truncation, ask open snapshots to end, and let none begin until it was tried.

        A snapshot that cannot end keeps the log from being truncated: then new ones need not wait.
        """
        if write.args[0] != apsw.SQLITE_CHECKPOINT_TRUNCATE:
            return
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        for release in list(self._snapshots.values()):
            if release is not None:
                release()
        if None not in self._snapshots.values():
            self.truncating = write.loop.create_future()

    def _checkpoint(self, batch: list[QueuedWrite]) -> None:
        """On the thread: copy the log into the file, and perhaps truncate it."""
        [write] = batch
        error = None
        try:
            self.connection.set_busy_timeout(0 if self.truncating is None else TRUNCATE_WAIT_MS)
            logged, copied = self.connection.wal_checkpoint(mode=write.args[0])
            if copied < logged:  # a reader holds a snapshot of it: soon again
                self._checkpoint_at = logged + CHECKPOINT_PAGES // 16
            write.result = copied == logged
        except (apsw.BusyError, apsw.FullError):
            write.result = False  # the log is being read, or the file cannot grow: another time
        except apsw.Error as failed:
            error = failed
        _call_on_loop(batch, self._checkpointed, batch, error)

    def _checkpointed(self, batch: list[QueuedWrite], error: apsw.Error | None) -> None:
        [write] = batch
        if self.truncating is not None:
            self.truncating.set_result(None)
            self.truncating = None
        if error is not None:
            self._fail(batch, error)
            return
        if write.args[0] == apsw.SQLITE_CHECKPOINT_TRUNCATE:
            if write.result:
                self._retry_seconds, self._checkpoint_at = RETRY_SECONDS, CHECKPOINT_PAGES
                self._owed_since, self._log_pages = None, 0
            else:  # the log is still read, here or in another process
                self._owed_since = self._owed_since or time.monotonic()
                self._retry = write.loop.call_later(self._retry_seconds, self._retry_truncate)
                self._retry_seconds = min(2 * self._retry_seconds, MAX_RETRY_SECONDS)
        self._complete(batch)

    def _retry_truncate(self) -> None:
        self._retry = None
        if not self.broken and not self._closed:
            asyncio.ensure_future(self.truncate_log()).add_done_callback(
                lambda tried: tried.cancelled() or tried.exception()
            )


def _call_on_loop(batch: Sequence[QueuedWrite], method: Callable[..., None], *args: Any) -> None:
    """Go on upon the event loop of the callers."""
    batch[0].loop.call_soon_threadsafe(method, *args)
