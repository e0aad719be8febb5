"""The two sides of a copy: a SQLite file or a PostgreSQL database, each reached through one connection.

A side locks, pages and fills; it decides nothing (see copy.py). Whatever goes wrong with it becomes a sentence that
says which side it was, and never shows a password.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import apsw
import asyncpg

from strongroom.store import file_owners, locks, migrations
from strongroom.store.exceptions import CannotOpen
from strongroom.store.postgres import pool
from strongroom.store.sqlite import database_file, log_recovery

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence

    from strongroom.store.migrations import Migration

PAGE_BYTES: Final = 1024 * 1024  # a page ends with the row that reaches this, and no more than one is in memory
PAGE_ROWS: Final = 500
LOCK_MS: Final = 10_000  # how long to wait for those who are writing
LONG: Final = 3600.0  # seconds that one statement may take; most take milliseconds

NAMES: Final = ("user_id", "vault_uid", "collection", "uid", "id")  # what tells a row, and nothing of its content

Row = tuple[Any, ...]


class CannotCopy(Exception):  # noqa: N818 - said to the operator in one sentence
    """The copy cannot be made, or not now; the message is a sentence for the operator."""


class Table(NamedTuple):
    """A table as the migrations make it."""

    name: str
    columns: tuple[str, ...]
    texts: tuple[str, ...]  # the columns that can be large
    key: tuple[str, ...]


class Unreadable(NamedTuple):
    """A row that cannot be read, or that refers to one: by its place in the table, and by name without its content."""

    place: int
    name: str


class CopyEndpoint(Protocol):
    """One side. Statements take parameters as $1, $2, in the order in which they appear."""

    role: str  # source or target
    identity: str  # where it is, without user and password
    engine: str
    begin: str
    begin_reading: str
    begin_snapshot: str

    @property
    def named(self) -> str:
        """What a sentence calls it."""

    @property
    def exists(self) -> bool:
        """Whether there is anything to open."""

    async def open(self, *, to_fill: bool, even_damaged: bool = False) -> None:
        """Connect. Unless it is to be filled, nothing about it is changed.

        A file whose write-ahead log is damaged is refused, unless it is to be looked at all the same.
        """

    async def close(self) -> None:
        """Let go; what was not committed never was."""

    async def ask(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement; its rows, if it gives any."""

    async def tables(self) -> set[str]:
        """The tables that there are."""

    async def build(self, steps: list[Migration], now: int) -> None:
        """Make the tables of these steps, where there are none."""

    async def lock(self, names: Iterable[str]) -> None:
        """Let nobody else write to these tables until the end of the transaction that has just begun."""

    async def add(self, table: Table, page: Sequence[Row]) -> None:
        """Insert rows."""

    async def empty(self, tables: Sequence[Table]) -> None:
        """Delete all rows of these tables, of which the later refer to the earlier."""

    async def settle(self, tables: Sequence[Table]) -> None:
        """Make ready for being served."""

    async def unreadable(self, tables: Sequence[Table]) -> dict[str, list[Unreadable]]:
        """Rows whose text is not UTF-8 or whose values are of the wrong kind, and those that refer to one, by table.

        A table comes after those that it refers to. Every row is read for it.
        """

    def pages(self, table: Table, without: Sequence[Unreadable] = ()) -> AsyncGenerator[list[Row], None]:
        """All rows but these, in the order of the key, in pages of bounded bytes."""


class _SqliteSide:
    """A SQLite file. A transaction holds the file's one lock for writing from its beginning.

    Only a target, and a source that is to be locked, are opened for writing.
    """

    engine = "sqlite"
    begin = begin_reading = "BEGIN IMMEDIATE"
    begin_snapshot = "BEGIN"  # the first look fixes the moment, and nobody waits for it

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
        return f"The {self.role} ({self._path})"

    @property
    def exists(self) -> bool:
        try:
            if file_owners.is_readable(self._path):
                return self._path.is_file()
        except PermissionError:
            pass
        raise CannotCopy(f"{self.named} may not be read by this user. {file_owners.run_as_owner(self._path)}")

    async def open(self, *, to_fill: bool, even_damaged: bool = False) -> None:
        if database_file.has_wal_fault(apsw.sqlite_lib_version()):
            raise CannotCopy(f"SQLite {apsw.sqlite_lib_version()} can corrupt databases; install a newer apsw.")
        with in_words(self):
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
                self._connection = apsw.Connection(str(self._path), flags=file_owners.READ_WRITE)
            else:
                self._connection = database_file.connect_read_only(self._path)
            self._connection.set_busy_timeout(LOCK_MS)

    async def close(self) -> None:
        self._connection.close()

    async def ask(self, sql: str, *parameters: Any) -> list[Row]:
        with in_words(self):
            return self._connection.execute(sql, parameters).fetchall()

    async def tables(self) -> set[str]:
        return {name for (name,) in await self.ask("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    async def build(self, steps: list[Migration], now: int) -> None:
        with in_words(self):
            migrations.migrate_sqlite(self._connection, now, steps)

    async def lock(self, names: Iterable[str]) -> None:
        del names  # the transaction holds the one lock already
        if self.role == "source":
            await self.ask("PRAGMA query_only = ON")

    async def add(self, table: Table, page: Sequence[Row]) -> None:
        places = ", ".join("?" * len(table.columns))
        with in_words(self, table.name):
            self._connection.executemany(
                f"INSERT INTO {quoted(table.name)} ({quoted(*table.columns)}) VALUES ({places})", page
            )

    async def empty(self, tables: Sequence[Table]) -> None:
        for table in reversed(tables):
            await self.ask(f"DELETE FROM {quoted(table.name)}")

    async def settle(self, tables: Sequence[Table]) -> None:
        """Nothing to do: SQLite takes the right index without being told how many rows there are."""

    async def unreadable(self, tables: Sequence[Table]) -> dict[str, list[Unreadable]]:
        found: dict[str, list[Unreadable]] = {}
        for table in tables:
            with in_words(self):
                places = self._unreadable(table) | self._loose(table, found)
                found[table.name] = [Unreadable(place, self._name(table, place)) for place in sorted(places)]
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

    def _loose(self, table: Table, found: dict[str, list[Unreadable]]) -> set[int]:
        """The rows that refer to one that cannot be read."""
        references: dict[tuple[int, str], list[tuple[str, str]]] = {}
        listed: list[Any] = self._connection.execute(
            'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?)', (table.name,)
        ).fetchall()
        for number, parent, column, key in listed:
            references.setdefault((number, parent), []).append((column, key))
        loose: set[int] = set()
        for (_, parent), pairs in references.items():
            same = " AND ".join(f"c.{quoted(column)} = p.{quoted(key)}" for column, key in pairs)
            for bad in found.get(parent, ()):
                rows = self._connection.execute(
                    f"SELECT c.rowid FROM {quoted(parent)} AS p JOIN {quoted(table.name)} AS c ON {same}"
                    " WHERE p.rowid = ?",
                    (bad.place,),
                )
                loose.update(int(str(place)) for (place,) in rows)
        return loose

    def _name(self, table: Table, place: int) -> str:
        """Whose row it is and which, as far as that can be read."""
        names = [column for column in NAMES if column in table.columns]
        casts = ", ".join(f"CAST({quoted(name)} AS BLOB)" for name in names) or "NULL"
        [row] = self._connection.execute(
            f"SELECT {casts} FROM {quoted(table.name)} WHERE rowid = ?", (place,)
        ).fetchall()
        shown = [
            f"{name} {raw.decode('utf-8', 'backslashreplace')}"
            for name, raw in zip(names, row, strict=False)
            if isinstance(raw, bytes)
        ]
        return f"{table.name}: {', '.join(shown) or f'row {place}'}"

    async def pages(self, table: Table, without: Sequence[Unreadable] = ()) -> AsyncGenerator[list[Row], None]:
        """Pages of one open statement."""
        places = ", ".join(str(one.place) for one in without)
        readable = f" WHERE rowid NOT IN ({places})" if places else ""
        with in_words(self):
            cursor = self._connection.execute(
                f"SELECT {quoted(*table.columns)} FROM {quoted(table.name)}{readable} ORDER BY {quoted(*table.key)}"
            )
        while page := self._page(cursor):
            yield page

    def _page(self, cursor: apsw.Cursor) -> list[Row]:
        page: list[Row] = []
        size = 0
        with in_words(self):
            while size < PAGE_BYTES and len(page) < PAGE_ROWS and (row := cursor.fetchone()) is not None:
                page.append(row)
                size += sum(len(value) for value in row if isinstance(value, str))
        return page


class _PostgresSide:
    """A PostgreSQL database. A source is read in one snapshot, with all its tables locked against writing."""

    engine = "postgresql"
    begin = "BEGIN"
    begin_reading = begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, role: str, address: str) -> None:
        self.role = role
        self._url = address
        try:
            self._hosts, self._database = pool.place(address)
        except ValueError as error:
            raise CannotCopy(f"The {role}'s address {error}.") from None
        self.identity = f"postgresql://{self._hosts}/{self._database}"
        self._connection: Any = None

    @property
    def named(self) -> str:
        return f"The {self.role} (PostgreSQL at {self._hosts or 'a local socket'}, database {self._database})"

    @property
    def exists(self) -> bool:
        return True

    async def open(self, *, to_fill: bool, even_damaged: bool = False) -> None:
        del to_fill, even_damaged
        try:
            self._connection = await pool.connect(self._url)
        except ValueError:  # about the address; what the driver says of it may show a part of the password
            raise CannotCopy(f"{self.named} has an address that PostgreSQL does not take.") from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise CannotCopy(f"{self.named} cannot be reached: {_reason(error)}.") from None
        for setting in (
            "statement_timeout = 0",  # a server's limits are made for requests
            "idle_in_transaction_session_timeout = 0",  # one side waits for the other
            f"lock_timeout = {LOCK_MS}",
            "enable_seqscan = off",  # a page comes by the key's index, also where PostgreSQL guesses that there
            "enable_sort = off",  # are few rows: or each page would cost a look at all of them
        ):
            await self.ask(f"SET {setting}")

    async def close(self) -> None:
        if self._connection is None:
            return
        try:
            await self._connection.close(timeout=2)
        except Exception:  # noqa: BLE001 - whatever is wrong with it, it is to go
            self._connection.terminate()

    async def ask(self, sql: str, *parameters: Any) -> list[Row]:
        with in_words(self):
            return [tuple(row) for row in await self._connection.fetch(sql, *parameters, timeout=LONG)]

    async def tables(self) -> set[str]:
        return {name for (name,) in await self.ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema")}

    async def build(self, steps: list[Migration], now: int) -> None:
        with in_words(self):
            await migrations.build_postgres(self._connection, steps, now)

    async def lock(self, names: Iterable[str]) -> None:
        # Before the first SELECT: the snapshot is then taken under the locks, and shows all that was ever written.
        await self.ask(f"LOCK TABLE {quoted(*names)} IN SHARE MODE")

    async def add(self, table: Table, page: Sequence[Row]) -> None:
        with in_words(self, table.name):
            await self._connection.copy_records_to_table(table.name, records=page, columns=table.columns, timeout=LONG)

    async def empty(self, tables: Sequence[Table]) -> None:
        await self.ask(f"TRUNCATE {quoted(*(table.name for table in tables))}")

    async def settle(self, tables: Sequence[Table]) -> None:
        """Let PostgreSQL see how much there is, or it may run statements without their indexes for a while."""
        for table in tables:
            await self.ask(f"ANALYZE {quoted(table.name)}")

    async def unreadable(self, tables: Sequence[Table]) -> dict[str, list[Unreadable]]:
        """PostgreSQL takes no text that is not UTF-8, and no value of another kind."""
        del tables
        return {}

    async def pages(self, table: Table, without: Sequence[Unreadable] = ()) -> AsyncGenerator[list[Row], None]:
        """Pages by key. PostgreSQL sums up the sizes, which it knows without reading the texts themselves."""
        del without
        columns, key = quoted(*table.columns), quoted(*table.key)
        size = " + ".join(f"coalesce(octet_length({quoted(name)}), 0)" for name in table.texts) or "0"
        last = ", ".join(f"${n + 1}" for n in range(len(table.key)))

        def page_of(where: str) -> str:
            listed = f"SELECT {columns} FROM {quoted(table.name)} {where} ORDER BY {key} LIMIT {PAGE_ROWS}"
            before = f"sum({size}) OVER (ORDER BY {key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
            return (
                f"SELECT {columns} FROM (SELECT {columns}, {before} AS bytes_before FROM ({listed}) AS a) AS b "
                f"WHERE bytes_before IS NULL OR bytes_before < {PAGE_BYTES} ORDER BY {key}"
            )

        places = [table.columns.index(name) for name in table.key]
        page = await self.ask(page_of(""))
        while page:
            yield page
            page = await self.ask(page_of(f"WHERE ({key}) > ({last})"), *(page[-1][place] for place in places))


def side(role: str, address: str) -> CopyEndpoint:
    """The side at this address: a URL of PostgreSQL, or the path of a file."""
    if address.startswith(("postgresql://", "postgres://")):
        return _PostgresSide(role, address)
    if not address or "://" in address:
        raise CannotCopy(f"The {role} is neither the path of a file nor an address like postgresql://user@host/name.")
    return _SqliteSide(role, address)


def quoted(*names: str) -> str:
    """Names as both engines take them, whatever words they keep for themselves."""
    return ", ".join(f'"{name}"' for name in names)


@contextmanager
def in_words(side: CopyEndpoint, table: str = "") -> Iterator[None]:
    """Turn a failure into a sentence."""
    try:
        yield
    except CannotOpen as error:
        raise CannotCopy(str(error)) from None
    except (apsw.BusyError, asyncpg.LockNotAvailableError):
        raise CannotCopy(f"{side.named} is in use; stop the server that writes to it, and try again.") from None
    except apsw.ReadOnlyError:
        raise CannotCopy(
            f"{side.named} cannot be locked, for it may not be written to; run this as its owner."
        ) from None
    except apsw.NotADBError:
        raise CannotCopy(f"{side.named} is not a database of strongroom.") from None
    except apsw.CorruptError:
        raise CannotCopy(
            f"{side.named} is damaged; stop the server and run 'strongroom restore FILE' with a backup of it, or "
            "'strongroom salvage' if there is none."
        ) from None
    except UnicodeDecodeError:
        raise CannotCopy(f"{side.named} holds text that is not UTF-8, and cannot be copied.") from None
    except (apsw.ConstraintError, asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
        raise CannotCopy(f"{side.named} does not take the rows of {table or 'a table'}: {_reason(error)}.") from None
    except (apsw.Error, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        failed = f"failed at {table}" if table else "failed"
        raise CannotCopy(f"{side.named} {failed}: {_reason(error)}; run the same command again to go on.") from None


def _reason(error: Exception) -> str:
    """Why, in the database's words; they name the user and the database, never the password."""
    if isinstance(error, TimeoutError):
        return "no answer"
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")


@asynccontextmanager
async def opened(side: CopyEndpoint, *, to_fill: bool = False, even_damaged: bool = False) -> AsyncIterator[None]:
    """Have a side open."""
    try:
        await side.open(to_fill=to_fill, even_damaged=even_damaged)
        yield
    finally:
        await side.close()


@asynccontextmanager
async def transaction(side: CopyEndpoint, begin: str = "") -> AsyncIterator[None]:
    """All of it or nothing."""
    await side.ask(begin or side.begin)
    try:
        yield
    except BaseException:
        with suppress(CannotCopy):
            await side.ask("ROLLBACK")
        raise
    await side.ask("COMMIT")
