"""An open replica file. Its contents are encrypted, and only its owner can read it.

One process writes to it, others read. A transaction is on disk when it ends: what was queued survives any kill. The
writer holds a lock on a second, empty file, which the operating system releases when the process ends, however it ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from strongroom.client.errors import Locked, ReadOnlyReplica
from strongroom.client.replica.store.database_file import (
    create,
    damaged,
    erase_deleted,
    open_file,
    require_private,
    take_writer_lock,
    truncate_log,
)


class Database:
    """An open file: transactions, statements, and properties of the replica. A lock serialises threads.

    `read_only`: None writes unless another process does, and takes over when that one has ended.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool | None = None) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._path = Path(path)
        self._never_writes = read_only is True
        self._writer_lock: apsw.Connection | None = None
        if read_only is not True:
            create(self._path)
            require_private(self._path)
            self._writer_lock = take_writer_lock(self._path)
        if read_only is False and self._writer_lock is None:
            raise ReadOnlyReplica
        try:
            self._db = open_file(self._path, writes=self.is_writer)
        except BaseException:
            self._release()
            raise
        self._depth = 0
        self._erases = self.is_writer  # a process that was killed may have left replaced keys in the log
        self._erase()

    @property
    def is_closed(self) -> bool:
        """Whether the file was closed."""
        return self._closed

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._db.close()
            self._release()

    def _release(self) -> None:
        if self._writer_lock is not None:
            self._writer_lock.close()
            self._writer_lock = None

    @property
    def is_writer(self) -> bool:
        """Whether this process writes to the file."""
        return self._writer_lock is not None

    def require_writer(self) -> None:
        """Become the writer if there is none, or refuse to write."""
        with self._lock:
            self._require_open()
            if self._writer_lock is not None:
                return
            if self._never_writes:
                raise ReadOnlyReplica("This replica was opened for reading only.")
            self._writer_lock = take_writer_lock(self._path)
            if self._writer_lock is None:
                raise ReadOnlyReplica
            self._db.execute("PRAGMA query_only = 0")
            erase_deleted(self._db)
            self._erases = True

    def erase_replaced(self) -> None:
        """Leave nothing in the file's log of what was replaced or deleted, once the transaction has ended."""
        self._erases = True

    def _erase(self) -> None:
        if self._erases:
            self._erases = not truncate_log(self._db)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: on disk when it ends, or rolled back. Nested ones join the outer."""
        with self._lock:
            self._require_open()
            if self._depth:
                yield
                return
            self.require_writer()
            self._db.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                self._db.execute("COMMIT")
                self._erase()
            except BaseException:
                if self._db.in_transaction:  # SQLite itself rolls back where the disk is full
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the file as it is at one moment, whatever is written meanwhile."""
        with self._lock:
            self._require_open()
            if self._depth:
                yield
                return
            self._db.execute("BEGIN")
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                self._db.execute("ROLLBACK")

    def _require_open(self) -> None:
        if self._closed:
            raise Locked("This replica is closed, or its client was closed or has logged out.")

    def select(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._lock:
            self._require_open()
            try:
                return list(self._db.execute(statement, values))
            except (apsw.CorruptError, UnicodeDecodeError):
                raise damaged(self._path) from None

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement that writes."""
        with self._lock:
            self.require_writer()
            self._db.execute(statement, values)

    def run_many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> int:
        """Run a statement once for each row; the number of rows that it has changed."""
        with self._lock:
            self.require_writer()
            before = self._db.total_changes()
            self._db.executemany(statement, rows)
            return self._db.total_changes() - before

    def fact(self, name: str) -> str | None:
        """Get a property of the replica."""
        found = self.select("SELECT value FROM facts WHERE name = ?", name)
        return str(found[0][0]) if found else None

    def set_fact(self, name: str, value: str) -> None:
        """Set a property of the replica."""
        self.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", name, value)
