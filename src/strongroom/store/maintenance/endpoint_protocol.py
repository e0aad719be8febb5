"""The protocol of a copy endpoint: a whole database that is copied from or into, reached through one connection.

An endpoint locks, pages and fills; it decides nothing (see copy.py). Whatever goes wrong with it becomes a sentence
that says which endpoint it was, and never shows a password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from strongroom.store.exceptions import reason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence
    from contextlib import AbstractContextManager

    from strongroom.store.migrations import Migration

PAGE_BYTES: Final = 1024 * 1024  # a page ends with the row that reaches this, and no more than one is in memory
PAGE_ROWS: Final = 500
LOCK_MS: Final = 10_000  # how long to wait for writers

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
    """A row that cannot be read, or that refers to one: its rowid, and its name without its content."""

    rowid: int
    name: str


class CopyEndpoint(Protocol):
    """A database to copy from or into. Statements take parameters as $1, $2, in the order in which they appear."""

    role: str  # source or target
    identity: str  # where it is, without user and password
    engine: str
    begin: str
    begin_reading: str
    begin_snapshot: str

    @property
    def named(self) -> str:
        """Its name in sentences for the operator."""

    @property
    def exists(self) -> bool:
        """Whether there is anything to open."""

    async def open(self, *, to_fill: bool, even_damaged: bool = False) -> None:
        """Connect. Without `to_fill`, nothing is changed.

        A file whose write-ahead log is damaged is refused, unless `even_damaged` says otherwise.
        """

    async def close(self) -> None:
        """Close the connection; what was not committed is rolled back."""

    def translate_errors(self, table: str = "") -> AbstractContextManager[None]:
        """Raise CannotCopy, with a sentence for the operator, in place of an error of the engine."""

    async def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement; its rows, if it gives any."""

    async def tables(self) -> set[str]:
        """The tables that there are."""

    async def build(self, steps: list[Migration], now: int) -> None:
        """Make the tables of these steps, where there are none."""

    async def lock(self, names: Iterable[str]) -> None:
        """Lock these tables against other writers until the end of the transaction that has just begun."""

    async def add(self, table: Table, page: Sequence[Row]) -> None:
        """Insert rows."""

    async def empty(self, tables: Sequence[Table]) -> None:
        """Delete all rows of these tables, of which the later refer to the earlier."""

    async def update_statistics(self, tables: Sequence[Table]) -> None:
        """Update what the query planner knows of these tables, after they were filled."""

    async def unreadable(self, tables: Sequence[Table]) -> dict[str, list[Unreadable]]:
        """Rows whose text is not UTF-8 or whose values are of the wrong kind, and those that refer to one, by table.

        A table comes after those that it refers to. Every row is read for it.
        """

    def pages(self, table: Table, without: Sequence[Unreadable] = ()) -> AsyncGenerator[list[Row], None]:
        """All rows but these, in the order of the key, in pages of bounded bytes."""


def in_use(endpoint: CopyEndpoint) -> CannotCopy:
    """The refusal where another process holds a lock."""
    return CannotCopy(f"{endpoint.named} is in use; stop the server that writes to it, and try again.")


def rejected(endpoint: CopyEndpoint, table: str, error: BaseException) -> CannotCopy:
    """The refusal where a table does not accept rows."""
    return CannotCopy(f"{endpoint.named} does not take the rows of {table or 'a table'}: {reason(error)}.")


def failed(endpoint: CopyEndpoint, table: str, error: BaseException) -> CannotCopy:
    """The refusal after any other error of the engine."""
    at = f" at {table}" if table else ""
    return CannotCopy(f"{endpoint.named} failed{at}: {reason(error)}; run the same command again to go on.")


def quoted(*names: str) -> str:
    """Quote names for SQL, so that reserved words can be names on both engines."""
    return ", ".join(f'"{name}"' for name in names)
