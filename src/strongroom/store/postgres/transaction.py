"""A transaction, or a short read, on one connection to PostgreSQL."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

import asyncpg
from asyncpg import Connection

from strongroom.store.change_notifications import NotifyingTransaction
from strongroom.store.exceptions import Duplicate, MissingParent
from strongroom.store.postgres import combined_writes
from strongroom.store.statement import LARGE, Sql, data_up_to

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from strongroom.model import Document
    from strongroom.store.write_forms import Form

PAGE_BYTES: Final = 1280 * 1024
PAGE_ROWS: Final = 2_048
SMALL_ROWS: Final = 1_024  # of rows so small that a page holds as many: their sizes need not be added up
_LOCK: Final = "SELECT 1 FROM ledgers WHERE user_id = $1 FOR UPDATE"


class _Refused(Exception):  # noqa: N818 - a way to leave a transaction
    """One of several combined writes is to be refused."""


class Tx(NotifyingTransaction):
    """A transaction, or a short read, on one connection."""

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
        with _translate_errors():
            rows: list[Any] = await self._connection.fetch(sql.postgres, *[parameters[name] for name in sql.names])
        return rows

    async def one(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> Any:
        """The row that the statement gives, or None."""
        row = await self._row(sql, parameters)
        return None if row is None else kind(*row)

    async def all(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        """All rows."""
        return [kind(*row) for row in await self._rows(sql, parameters)]

    async def few(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        """All rows."""
        return await self.all(kind, sql, **parameters)

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        row = await self._row(sql, parameters)
        return None if row is None else row[0]

    async def run(self, sql: Sql, /, **parameters: Any) -> int:
        """How many rows the statement changed."""
        arguments = [parameters[name] for name in sql.names]
        with _translate_errors():
            done = await self._connection.execute(sql.postgres, *arguments)
        count = done.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def each(self, sql: Sql, rows: Sequence[dict[str, Any]], /, by: tuple[str, ...]) -> list[bool]:
        """Pipeline all statements, then await the results. The returned keys show, in order, what changed."""
        if not rows:
            return []
        arguments = [[parameters[name] for name in sql.names] for parameters in rows]
        with _translate_errors():
            changed = await self._connection.fetchmany(f"{sql.postgres} RETURNING {', '.join(by)}", arguments)
        returned = deque(tuple(row) for row in changed)
        outcomes = []
        for parameters in rows:
            key = tuple(parameters[name] for name in by)
            outcomes.append(bool(returned) and returned[0] == key)
            while returned and returned[0] == key:
                returned.popleft()
        return outcomes

    async def combine(self, user_id: str, groups: Sequence[Sequence[Form]]) -> list[list[Document]] | None:
        """Lock the account, then one statement for each group, behind a savepoint."""
        connection = self._connection
        await connection.execute("SAVEPOINT combined")
        try:
            await connection.execute(_LOCK, user_id)
            stored = [await self._write_group(user_id, group) for group in groups]
        except (_Refused, asyncpg.UniqueViolationError, asyncpg.ForeignKeyViolationError):
            await connection.execute("ROLLBACK TO SAVEPOINT combined")
            return None
        await connection.execute("RELEASE SAVEPOINT combined")
        return stored

    async def _write_group(self, user_id: str, group: Sequence[Form]) -> list[Document]:
        stored = await combined_writes.run(self._connection, user_id, group, self.now)
        if stored is None:
            raise _Refused
        return stored

    async def pages(
        self, kind: type[Any], sql: Sql, /, after: str, by: str, mean_bytes: int | None = None, **parameters: Any
    ) -> AsyncGenerator[list[Any], None]:
        """Pages by key. One that holds everything is one statement; more than one are read in one snapshot."""
        limit: int = parameters["limit"]
        small = PAGE_BYTES // SMALL_ROWS
        if mean_bytes is not None and mean_bytes <= small:
            page = await self._page(kind, _of_small_rows(kind, sql, by, small), sql, parameters, SMALL_ROWS)
            if (len(page) < SMALL_ROWS or len(page) == limit) and all(row.data != LARGE for row in page):
                yield page
                return
        bounded = _bounded(kind, sql, by)
        page = await self._page(kind, bounded, sql, parameters, PAGE_ROWS)
        if not _full(page, limit):
            yield page
            return
        async with consistent_read(self._connection):
            while True:
                page = await self._page(kind, bounded, sql, parameters, PAGE_ROWS)
                yield page
                if not page:
                    return
                limit -= len(page)
                parameters = {**parameters, after: getattr(page[-1], by), "limit": limit}
                if limit <= 0:
                    return

    async def _page(self, kind: type[Any], text: str, sql: Sql, parameters: dict[str, Any], most: int) -> list[Any]:
        """The first rows of a statement, at most so many."""
        arguments = [min(parameters[name], most) if name == "limit" else parameters[name] for name in sql.names]
        return list(starmap(kind, await self._connection.fetch(text, *arguments)))


def consistent_read(connection: Connection) -> Any:
    """A transaction in which all reads are of one snapshot; within another such one, a part of that."""
    return connection.transaction(isolation="repeatable_read", readonly=True)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the store's exceptions in place of the driver's."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise Duplicate(error.constraint_name or "") from None
    except asyncpg.ForeignKeyViolationError as error:
        raise MissingParent(error.constraint_name or "") from None


def _full(page: list[Any], limit: int) -> bool:
    """Whether there may be more rows than this page has."""
    if len(page) >= limit:
        return False
    return len(page) >= PAGE_ROWS or sum(len((row.data or "").encode()) for row in page) >= PAGE_BYTES


_statements: dict[tuple[Any, ...], str] = {}


def _of_small_rows(kind: type[Any], sql: Sql, by: str, small: int) -> str:
    """The statement, with a mark in place of data that has more bytes than these."""
    statement = _statements.get((kind, sql.postgres, small))
    if statement is None:
        fields = ", ".join(data_up_to(small) if name == "data" else name for name in kind.__struct_fields__)
        statement = f"SELECT {fields} FROM ({sql.postgres}) AS listed ORDER BY {by}"
        _statements[kind, sql.postgres, small] = statement
    return statement


def _bounded(kind: type[Any], sql: Sql, by: str) -> str:
    """The statement, up to a number of bytes: PostgreSQL adds up the sizes, so a page is never larger."""
    statement = _statements.get((kind, sql.postgres))
    if statement is None:
        fields = ", ".join(kind.__struct_fields__)
        statement = _statements[kind, sql.postgres] = (
            f"SELECT {fields} FROM (SELECT *, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY {by}"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ({sql.postgres}) AS listed) AS weighed"
            f" WHERE before IS NULL OR before < {PAGE_BYTES} ORDER BY {by}"
        )
    return statement
