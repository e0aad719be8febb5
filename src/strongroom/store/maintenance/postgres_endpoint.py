"""A PostgreSQL database as a copy endpoint. Imported only for a PostgreSQL URL: the driver takes long to load."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from strongroom.store.exceptions import CannotOpen, reason
from strongroom.store.maintenance import endpoint_protocol
from strongroom.store.maintenance.endpoint_protocol import CannotCopy, failed, in_use, quoted, rejected
from strongroom.store.postgres import connection, migrate, pooler

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from strongroom.store.maintenance.endpoint_protocol import Row, Table, Unreadable
    from strongroom.store.migrations import Migration

_LONG: Final = 3600.0  # seconds that one statement may take; most take milliseconds


class PostgresEndpoint:
    """A PostgreSQL database. A source is read in one snapshot, with all its tables locked against writing."""

    engine = "postgresql"
    begin = "BEGIN"
    begin_reading = begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, role: str, address: str) -> None:
        self.role = role
        self._url = address
        try:
            self._hosts, self._database = connection.hosts_and_database(address)
        except ValueError as error:
            raise CannotCopy(f"The {role}'s address {error}.") from None
        self.identity = f"postgresql://{self._hosts}/{self._database}"
        self._connection: Any = None

    @property
    def named(self) -> str:
        """Its name in sentences for the operator."""
        return f"The {self.role} (PostgreSQL at {self._hosts or 'a local socket'}, database {self._database})"

    @property
    def exists(self) -> bool:
        """Whether there is anything to open."""
        return True

    async def open(self, *, to_fill: bool, even_damaged: bool = False) -> None:
        """Connect."""
        del to_fill, even_damaged
        try:
            self._connection = await connection.connect(self._url)
            await pooler.refuse_shared_session(self._url, self._connection)
        except ValueError:  # about the address; what the driver says of it may show a part of the password
            raise CannotCopy(f"{self.named} has an address that PostgreSQL does not take.") from None
        except CannotOpen as error:
            raise CannotCopy(str(error)) from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            if pooler.is_of_shared_session(error):
                raise CannotCopy(str(pooler.unfit())) from None
            raise CannotCopy(f"{self.named} cannot be reached: {reason(error)}.") from None
        for setting in (
            "statement_timeout = 0",  # a server's limits are made for requests
            "idle_in_transaction_session_timeout = 0",  # one endpoint waits for the other
            f"lock_timeout = {endpoint_protocol.LOCK_MS}",
            "enable_seqscan = off",  # a page comes by the key's index, also where PostgreSQL guesses that there
            "enable_sort = off",  # are few rows: or each page would cost a read of all of them
        ):
            await self.query(f"SET {setting}")

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is None:
            return
        try:
            await self._connection.close(timeout=2)
        except Exception:  # noqa: BLE001 - whatever is wrong with it, it is to go
            self._connection.terminate()

    @contextmanager
    def translate_errors(self, table: str = "") -> Iterator[None]:
        """Raise CannotCopy in place of an error of the engine."""
        try:
            yield
        except CannotOpen as error:
            raise CannotCopy(str(error)) from None
        except asyncpg.LockNotAvailableError:
            raise in_use(self) from None
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
            raise rejected(self, table, error) from None
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            raise failed(self, table, error) from None

    async def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement; its rows, if it gives any."""
        with self.translate_errors():
            return [tuple(row) for row in await self._connection.fetch(sql, *parameters, timeout=_LONG)]

    async def tables(self) -> set[str]:
        """The names of all tables."""
        return {
            name for (name,) in await self.query("SELECT tablename FROM pg_tables WHERE schemaname = current_schema")
        }

    async def build(self, steps: list[Migration], now: int) -> None:
        """Create the tables of these migrations."""
        with self.translate_errors():
            await migrate.build(self._connection, steps, now)

    async def lock(self, names: Iterable[str]) -> None:
        """Lock these tables against other writers."""
        # Before the first SELECT: the snapshot is then taken under the locks, and shows all that was ever written.
        await self.query(f"LOCK TABLE {quoted(*names)} IN SHARE MODE")

    async def add(self, table: Table, page: Sequence[Row]) -> None:
        """Insert rows."""
        with self.translate_errors(table.name):
            await self._connection.copy_records_to_table(table.name, records=page, columns=table.columns, timeout=_LONG)

    async def empty(self, tables: Sequence[Table]) -> None:
        """Delete all rows of these tables, and of those that are not copied and refer to them."""
        await self.query(f"TRUNCATE {quoted(*(table.name for table in tables))} CASCADE")

    async def update_statistics(self, tables: Sequence[Table]) -> None:
        """Run ANALYZE, or PostgreSQL may run statements without their indexes for a while."""
        for table in tables:
            await self.query(f"ANALYZE {quoted(table.name)}")

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
            listed = (
                f"SELECT {columns} FROM {quoted(table.name)} {where} ORDER BY {key} LIMIT {endpoint_protocol.PAGE_ROWS}"
            )
            before = f"sum({size}) OVER (ORDER BY {key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
            return (
                f"SELECT {columns} FROM (SELECT {columns}, {before} AS bytes_before FROM ({listed}) AS a) AS b "
                f"WHERE bytes_before IS NULL OR bytes_before < {endpoint_protocol.PAGE_BYTES} ORDER BY {key}"
            )

        key_indexes = [table.columns.index(name) for name in table.key]
        page = await self.query(page_of(""))
        while page:
            yield page
            page = await self.query(page_of(f"WHERE ({key}) > ({last})"), *(page[-1][index] for index in key_indexes))
