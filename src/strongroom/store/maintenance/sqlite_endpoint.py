"""A SQLite file as a copy endpoint."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import apsw

from strongroom.store import file_owners, locks
from strongroom.store.exceptions import CannotOpen
from strongroom.store.maintenance import endpoint_protocol
from strongroom.store.maintenance.endpoint_protocol import CannotCopy, Unreadable, failed, in_use, quoted, rejected
from strongroom.store.sqlite import database_file, log_recovery
from strongroom.store.sqlite.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from strongroom.store.maintenance.endpoint_protocol import Row, Table
    from strongroom.store.migrations import Migration

_NAMES: Final = ("user_id", "vault_uid", "collection", "uid", "id")  # columns that identify a row without its content


class SqliteEndpoint:
    """A SQLite file. A transaction holds the file's one lock for writing from its beginning.

    Only a target, and a source that is to be locked, are opened for writing.
    """

    engine = "sqlite"
    begin = begin_reading = "BEGIN IMMEDIATE"
    begin_snapshot = "BEGIN"  # the first read fixes the snapshot, and no writer waits for it

    def __init__(self, role: str, address: str) -> None:
        self.role = role
        try:
            self._path = file_owners.real_path(Path(address).expanduser())
        except CannotOpen as error:
            raise CannotCopy(str(error)) from None
        self.identity = str(self._path)
        self._connection = apsw.Connection(":memory:")

    @property
    def named(self) -> str:
        """Its name in sentences for the operator."""
        return f"The {self.role} ({self._path})"

    @property
    def exists(self) -> bool:
        """Whether the file is there; CannotCopy if this user may not read it."""
        try:
            if file_owners.is_readable(self._path):
                return self._path.is_file()
        except PermissionError:
            pass
        raise CannotCopy(f"{self.named} may not be read by this user. {file_owners.run_as_owner(self._path)}")

    async def open(self, *, to_fill: bool, even_damaged: bool = False) -> None:
        """Connect."""
        if database_file.has_wal_fault(apsw.sqlite_lib_version()):
            raise CannotCopy(f"SQLite {apsw.sqlite_lib_version()} can corrupt databases; install a newer apsw.")
        with self.translate_errors():
            if not even_damaged:
                locks.refuse_interrupted(self._path)
            if not self.exists:
                raise CannotCopy(f"{self.named} does not exist.")
            if to_fill:
                self._connection = database_file.connect(self._path)
                return
            if not even_damaged and not locks.is_served(self._path):
                log_recovery.refuse(self._path)  # neither copy nor keep what is left of a log as if it were all of it
            if self.role == "source":
                self._connection = apsw.Connection(str(self._path), flags=database_file.READ_WRITE)
            else:
                self._connection = database_file.connect_read_only(self._path)
            self._connection.set_busy_timeout(endpoint_protocol.LOCK_MS)

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def translate_errors(self, table: str = "") -> Iterator[None]:
        """Raise CannotCopy in place of an error of the engine."""
        try:
            yield
        except CannotOpen as error:
            raise CannotCopy(str(error)) from None
        except apsw.BusyError:
            raise in_use(self) from None
        except apsw.ReadOnlyError:
            raise CannotCopy(
                f"{self.named} cannot be locked, for it may not be written to; run this as its owner."
            ) from None
        except apsw.NotADBError:
            raise CannotCopy(f"{self.named} is not a database of strongroom.") from None
        except apsw.CorruptError:
            raise CannotCopy(
                f"{self.named} is damaged; stop the server and run 'strongroom restore FILE' with a backup of it, or "
                "'strongroom salvage' if there is none."
            ) from None
        except UnicodeDecodeError:
            raise CannotCopy(f"{self.named} holds text that is not UTF-8, and cannot be copied.") from None
        except apsw.ConstraintError as error:
            raise rejected(self, table, error) from None
        except (apsw.Error, OSError) as error:
            raise failed(self, table, error) from None

    async def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement; its rows, if it gives any."""
        with self.translate_errors():
            return self._connection.execute(sql, parameters).fetchall()

    async def tables(self) -> set[str]:
        """The names of all tables."""
        return {name for (name,) in await self.query("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    async def build(self, steps: list[Migration], now: int) -> None:
        """Create the tables of these migrations."""
        with self.translate_errors():
            migrate(self._connection, now, steps)

    async def lock(self, names: Iterable[str]) -> None:
        """Nothing to lock: the transaction holds the one lock already. A source is made read-only."""
        del names
        if self.role == "source":
            await self.query("PRAGMA query_only = ON")

    async def add(self, table: Table, page: Sequence[Row]) -> None:
        """Insert rows."""
        values = ", ".join("?" * len(table.columns))
        with self.translate_errors(table.name):
            self._connection.executemany(
                f"INSERT INTO {quoted(table.name)} ({quoted(*table.columns)}) VALUES ({values})", page
            )

    async def empty(self, tables: Sequence[Table]) -> None:
        """Delete all rows of these tables."""
        for table in reversed(tables):
            await self.query(f"DELETE FROM {quoted(table.name)}")

    async def update_statistics(self, tables: Sequence[Table]) -> None:
        """Nothing to do: SQLite takes the right index without statistics."""

    async def unreadable(self, tables: Sequence[Table]) -> dict[str, list[Unreadable]]:
        """Rows that cannot be read, and rows that refer to one, by table."""
        found: dict[str, list[Unreadable]] = {}
        for table in tables:
            with self.translate_errors():
                rowids = self._unreadable(table) | self._orphans(table, found)
                found[table.name] = [Unreadable(rowid, self._name(table, rowid)) for rowid in sorted(rowids)]
        return {name: rows for name, rows in found.items() if rows}

    def _unreadable(self, table: Table) -> set[int]:
        """The rows that cannot be read. After one whose text is not text, the cursor goes on with the next."""
        listed = self._connection.execute('SELECT name FROM pragma_table_info(?) WHERE "notnull"', (table.name,))
        needed = {name for (name,) in listed}
        kinds: list[tuple[type, ...]] = [(int,)]
        for column in table.columns:
            kind = str if column in table.texts else int
            kinds.append((kind,) if column in needed else (kind, NoneType))
        cursor = self._connection.execute(
            f"SELECT rowid, {quoted(*table.columns)} FROM {quoted(table.name)} ORDER BY rowid"
        )
        bad: set[int] = set()
        last: Any = -(2**63)
        after = f"SELECT min(rowid) FROM {quoted(table.name)} WHERE rowid > ?"
        while True:
            try:
                for row in cursor:
                    last = row[0]
                    if not all(map(isinstance, row, kinds)):
                        bad.add(last)
            except UnicodeDecodeError:
                [(last,)] = self._connection.execute(after, (last,)).fetchall()
                bad.add(last)
            else:
                return bad

    def _orphans(self, table: Table, found: dict[str, list[Unreadable]]) -> set[int]:
        """The rows that refer to one that cannot be read."""
        references: dict[tuple[int, str], list[tuple[str, str]]] = {}
        listed: list[Any] = self._connection.execute(
            'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?)', (table.name,)
        ).fetchall()
        for number, parent, column, key in listed:
            references.setdefault((number, parent), []).append((column, key))
        orphans: set[int] = set()
        for (_, parent), pairs in references.items():
            same = " AND ".join(f"c.{quoted(column)} = p.{quoted(key)}" for column, key in pairs)
            for bad in found.get(parent, ()):
                rows = self._connection.execute(
                    f"SELECT c.rowid FROM {quoted(parent)} AS p JOIN {quoted(table.name)} AS c ON {same}"
                    " WHERE p.rowid = ?",
                    (bad.rowid,),
                )
                orphans.update(int(str(rowid)) for (rowid,) in rows)
        return orphans

    def _name(self, table: Table, rowid: int) -> str:
        """The name of a row: its account and its keys, as far as they can be read."""
        names = [column for column in _NAMES if column in table.columns]
        casts = ", ".join(f"CAST({quoted(name)} AS BLOB)" for name in names) or "NULL"
        [row] = self._connection.execute(
            f"SELECT {casts} FROM {quoted(table.name)} WHERE rowid = ?", (rowid,)
        ).fetchall()
        shown = [
            f"{name} {raw.decode('utf-8', 'backslashreplace')}"
            for name, raw in zip(names, row, strict=False)
            if isinstance(raw, bytes)
        ]
        return f"{table.name}: {', '.join(shown) or f'row {rowid}'}"

    async def pages(self, table: Table, without: Sequence[Unreadable] = ()) -> AsyncGenerator[list[Row], None]:
        """Pages of one open statement."""
        unreadable = ", ".join(str(row.rowid) for row in without)
        readable = f" WHERE rowid NOT IN ({unreadable})" if unreadable else ""
        with self.translate_errors():
            cursor = self._connection.execute(
                f"SELECT {quoted(*table.columns)} FROM {quoted(table.name)}{readable} ORDER BY {quoted(*table.key)}"
            )
        while page := self._page(cursor):
            yield page

    def _page(self, cursor: apsw.Cursor) -> list[Row]:
        page: list[Row] = []
        size = 0
        with self.translate_errors():
            while (
                size < endpoint_protocol.PAGE_BYTES
                and len(page) < endpoint_protocol.PAGE_ROWS
                and (row := cursor.fetchone()) is not None
            ):
                page.append(row)
                size += sum(len(value) for value in row if isinstance(value, str))
        return page
