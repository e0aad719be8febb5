"""The SQLite engine, which is the default: one file through apsw, in WAL mode with synchronous=FULL.

Writes share transactions (writer.py). Reads use connections of their own, and wait for no writer.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from strongroom.errors import InternalError, Unavailable
from strongroom.store import file_owners, migrations
from strongroom.store.commit_metrics import CommitMetrics
from strongroom.store.exceptions import CannotOpen
from strongroom.store.queries import deletions
from strongroom.store.sqlite import log_recovery
from strongroom.store.sqlite.change_watch import FileNotifications
from strongroom.store.sqlite.checkpointer import Checkpointer
from strongroom.store.sqlite.damage import BAD_VALUE
from strongroom.store.sqlite.database_file import (
    DAMAGE,
    bytes_of,
    connect,
    damaged,
    has_wal_fault,
    make_file,
    stop_process,
    vacuum,
)
from strongroom.store.sqlite.migrate import migrate as migrate_file
from strongroom.store.sqlite.transaction import ReadTx, Tx, run_sync
from strongroom.store.sqlite.write_queue import QueuedWrite, transient_refusal
from strongroom.store.sqlite.writer import BEGIN, COMMIT, OWED_SECONDS, ROLLBACK, Writer
from strongroom.store.write_forms import form_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from strongroom.store.session_check import SessionCheck

STOP_SECONDS: Final = 0.25  # between the first sign of damage and the end: requests in hand get their response
EXAMINE_SECONDS: Final = 5.0  # how long a start looks for damage
READ_CACHE_KIB: Final = 16 * 1024  # of pages that short reads find in memory; taken as they are read
WAIT_SECONDS: Final = 5.0  # that a snapshot which cannot be asked to end waits for the log to be truncated
LOOK_SECONDS: Final = 0.05  # between two looks whether it was
RETRY_AFTER: Final = 5  # seconds, for who waited in vain
_LOG_FIRST: Final = (
    "Deleted data is being removed from the server's disk, for which running exports must end first; try again shortly."
)
IDLE_READERS: Final = 8  # connections for snapshots that stay open when they are idle, with a cache worth keeping


class SqliteDatabase:
    """One file, one writer, many readers."""

    waits = False

    def __init__(self, path: str, clock: Callable[[], int], *, migrate: bool = True, recover: bool = False) -> None:
        if has_wal_fault(apsw.sqlite_lib_version()):
            raise CannotOpen(f"SQLite {apsw.sqlite_lib_version()} can corrupt databases; install a newer apsw.")
        self._path = file_owners.real_path(Path(path).expanduser())  # where SQLite puts the log, and others the lock
        self._clock = clock
        self._readers: list[apsw.Connection] = []
        self._snapshots: dict[Tx, Callable[[], None] | None] = {}  # those that are open, and how to ask them to end
        self.commit_metrics = CommitMetrics()
        self.notice: str | None = None
        self.on_fatal: Callable[[BaseException], None] = partial(stop_process, self._path)
        self.warn: Callable[[str], None] = lambda _sentence: None
        self._unreadable: set[tuple[tuple[str, str], ...]] = set()
        if not migrate and not self._path.exists():
            raise migrations.not_current(migrations.load(), {})
        with self._opening():
            self._lock = make_file(self._path, partial(self._check_log, recover=recover))
            writer = self._connect()
            migrate_file(writer, clock(), apply=migrate)
            self._reader = self._connect(read_only=True, cache_kib=READ_CACHE_KIB)
            self._read_tx = ReadTx(self._reader, clock, self)
            self.notifications = FileNotifications(writer, lambda: self._writer.busy, self.damaged)
            checkpointer = Checkpointer(lambda: connect(self._path))
            self._writer = Writer(
                writer, clock, self.notifications, self.commit_metrics, self, self._snapshots, checkpointer
            )
            self._submit = self._writer.submit

    def _check_log(self, *, recover: bool) -> None:
        """Check the log before SQLite reads it: a server sets a damaged one aside, a command refuses it."""
        if recover:
            self.notice = log_recovery.recover(self._path, self._clock())
        else:
            log_recovery.refuse(self._path)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Raise CannotOpen, with a sentence for the operator, in place of an error."""
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
        """Run an action in a transaction at once, before the server accepts requests."""
        with self._opening():
            connection = self._writer.connection
            connection.execute(BEGIN)
            try:
                result = run_sync(action(Tx(connection, self._clock(), self)))
                connection.execute(COMMIT)
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute(ROLLBACK)
                if isinstance(error, InternalError):  # a value that cannot be read
                    raise self._damaged() from None
                raise
        return result

    def _damaged(self) -> CannotOpen:
        return CannotOpen(
            f"The database {self._path} is damaged. 'strongroom doctor' says where; 'strongroom restore FILE' puts a "
            "backup in its place, and keeps this file; without a backup, 'strongroom salvage' brings what can be read "
            "into a new file."
        )

    def damaged(self, error: apsw.Error) -> Unavailable:
        """Stop soon, because pages cannot be read: requests in hand get a response, and nothing is written any more."""
        if not self._writer.broken:
            self._writer.broken = True
            self.notice = damaged(self._path, error)
            self.warn(self.notice)
            timer = threading.Timer(STOP_SECONDS, self.on_fatal, (error,))
            timer.daemon = True
            timer.start()
        return Unavailable(1)

    def warn_of_damage(self, error: BaseException) -> None:
        """Warn the operator that pages cannot be read."""
        self.warn(damaged(self._path, error))

    def unreadable(self, names: dict[str, str]) -> None:
        """Warn the operator, once, of a row that cannot be read."""
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

    async def begin_serving(self, epoch: str) -> None:
        """Nothing: the file is locked since it was opened."""

    def examine(self) -> None:
        """Check the pages and the indexes of the file, for a few seconds at most.

        A value of the wrong kind in a sound page is no reason to refuse the file: its row is left out with a warning.
        """
        began = time.monotonic()
        with self._opening():
            connection = self._connect(read_only=True)
            connection.set_progress_handler(lambda: time.monotonic() - began > EXAMINE_SECONDS, 10_000)
            sound = True
            try:
                for check in ("quick_check", "integrity_check"):  # all pages first, then all indexes
                    found = [str(line) for (line,) in connection.execute(f"PRAGMA {check}")]
                    sound = sound and all(line == "ok" or BAD_VALUE.match(line) for line in found)
            except apsw.InterruptError:
                pass  # sound as far as it was read
            finally:
                connection.close()
        if not sound:
            raise self._damaged()

    @property
    def is_damaged(self) -> bool:
        """Whether pages were met that cannot be read, or a commit has failed."""
        return self._writer.broken

    @property
    def describe(self) -> str:
        """The path of the file."""
        return str(self._path)

    def _connect(self, *, read_only: bool = False, cache_kib: int = 2_048) -> apsw.Connection:
        connection = connect(self._path)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = {-cache_kib}")
        return connection

    # Reading

    async def read(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a short read at once, on the event loop's thread."""
        return run_sync(action(self._read_tx, *args, **keywords))

    async def read_checked(
        self, check: SessionCheck, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any
    ) -> Any:
        """Run a short read for a caller whose session is checked in the same statement."""
        if check.passed:
            return run_sync(action(self._read_tx, *args, **keywords))
        return self._read_tx.run_checked(check, action, args, keywords)

    @asynccontextmanager
    async def snapshot(self, *, steady: bool = False, release: Callable[[], None] | None = None) -> AsyncIterator[Tx]:
        """A snapshot on a connection of its own, for a read that takes its time; always steady."""
        del steady
        if release is None:
            await self._until_truncated()
        while self._writer.truncating is not None:
            await asyncio.shield(self._writer.truncating)
        try:
            if self._readers:
                connection = self._readers.pop()  # the one used last: its cache is warm
            else:
                cache_kib = 2_048 if len(self._snapshots) < IDLE_READERS else 128
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
                    connection.execute(COMMIT)
            except DAMAGE as error:  # which the reader has met already
                self.damaged(error)
            if len(self._readers) < IDLE_READERS and not self._writer.broken:
                self._readers.append(connection)
            else:
                connection.close(force=True)
            if release is None:
                self._writer.retry_truncation()

    async def _until_truncated(self) -> None:
        """Wait while truncation of the log is overdue, in this process or another; refused if that takes too long.

        Snapshots that cannot be asked to end, one after the other, would keep the log for ever.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while self.is_truncation_overdue:
            if time.monotonic() >= deadline:
                raise Unavailable(RETRY_AFTER, _LOG_FIRST)
            await asyncio.sleep(LOOK_SECONDS)

    @property
    def is_truncation_overdue(self) -> bool:
        """Whether the log was to be truncated for long, and is still read; of another process, after a deletion."""
        since: int | None = run_sync(deletions.emptied_since(self._read_tx))
        return self._writer.is_truncation_overdue or (
            since is not None and self._clock() - since >= OWED_SECONDS * 1_000
        )

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
        form = None if keywords else form_of(action, self._clock(), args)
        if form is not None:
            args = form.args
        return await self._submit(QueuedWrite(action, args, keywords, check=check, owner=owner, form=form))

    async def write_long(self, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        """Run a write that may take long: its statements run on the writer's thread too."""
        return await self._submit(QueuedWrite(action, args, keywords, long=True))

    async def write_long_checked(
        self, check: SessionCheck, action: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any
    ) -> Any:
        """Run a long write for a caller, whose session is checked within the transaction."""
        return await self._submit(QueuedWrite(action, args, keywords, check=check, long=True))

    async def truncate_log(self) -> bool:
        """Checkpoint and truncate the log: what was deleted is overwritten in the file, and gone from the log.

        Where the log is still read, it is tried again in the background until it is done.
        """
        return await self._writer.truncate_log()

    @property
    def waiting(self) -> int:
        """How many writes wait for their batch."""
        return self._writer.waiting

    @property
    def free_bytes(self) -> int | None:
        """Free space on the disk of the file."""
        return shutil.disk_usage(self._path.parent).free

    async def size(self) -> int:
        """The bytes of the file and of its log."""
        return bytes_of(f"{self._path}") + bytes_of(f"{self._path}-wal")

    def release_memory(self) -> None:
        """Give up the cached pages of all connections but those that are in use."""
        for connection in (self._reader, *self._readers, *(() if self._writer.busy else (self._writer.connection,))):
            connection.release_memory()

    async def vacuum(self) -> None:
        """Run VACUUM on a thread of its own: writers wait meanwhile."""
        try:
            await asyncio.to_thread(self._vacuum)
        except DAMAGE as error:
            raise self.damaged(error) from None
        except apsw.Error as error:
            raise transient_refusal(error) or error from None

    def _vacuum(self) -> None:
        connection = connect(self._path)
        try:
            vacuum(connection, self._path.parent)
        finally:
            connection.close()

    async def close(self) -> None:
        """Wait for the queued writes, then close: the last connection checkpoints the log."""
        await self.notifications.close()
        await self._writer.close()
        for connection in (*self._readers, self._reader, self._writer.connection):
            connection.close()
        self._readers.clear()
        self._lock.close()
