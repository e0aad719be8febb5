"""Transactions on one SQLite connection: every statement runs synchronously."""

from __future__ import annotations

from functools import lru_cache
from itertools import starmap, takewhile
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol, Union, get_args, get_type_hints

import apsw
from msgspec import Struct, ValidationError, convert

from strongroom.errors import InternalError
from strongroom.store.change_notifications import NotifyingTransaction
from strongroom.store.exceptions import Duplicate, MissingParent
from strongroom.store.session_check import combine
from strongroom.store.sqlite import combined_writes
from strongroom.store.sqlite.database_file import DAMAGE
from strongroom.store.statement import LARGE, Sql

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    from strongroom.errors import Refusal
    from strongroom.model import Document
    from strongroom.store.session_check import SessionCheck
    from strongroom.store.write_forms import Form

_NAMES: Final[tuple[str, ...]] = (
    "user_id",
    "vault_uid",
    "collection",
    "uid",
)  # what tells a row from others, and nothing of its content
PAGE_BYTES: Final = 128 * 1024  # a page of a list: small enough to be read between two requests


_DAMAGED: Final = (
    "What is stored here is damaged and cannot be read; the server's log names it to the operator. A client that has "
    "it may write it again."
)


_seen: dict[Any, set[tuple[type, ...]]] = {}  # the types of values that rows of a kind had, and may have


@lru_cache
def _rows_of(kind: Any, count: int) -> Any:
    """The type that msgspec validates rows of this kind with: text, integers, and None where it is allowed."""
    if not issubclass(kind, Struct):
        return Any
    columns = []
    for hint in list(get_type_hints(kind).values())[:count]:
        parts = {int if part is bool else part for part in get_args(hint) or (hint,)}
        columns.append(Union[*parts] if parts <= {str, int, NoneType} else Any)
    return list[tuple[*columns]]  # type: ignore[valid-type]


def _fits(rows: Sequence[tuple[Any, ...]], kind: Any) -> bool:
    """Whether the values of these rows are of the right types. Damage alone brings others: a table takes no others."""
    try:
        convert(rows, _rows_of(kind, len(rows[0])) if rows else Any)
    except ValidationError:
        return False
    return True


def _fits_one(row: tuple[Any, ...], kind: Any) -> bool:
    """Whether one row has values of the right types; quicker where these types were met before."""
    types = tuple(map(type, row))
    seen = _seen.setdefault(kind, set())
    if types in seen:
        return True
    if not _fits([row], kind):
        return False
    seen.add(types)
    return True


def run_sync(awaitable: Awaitable[Any]) -> Any:
    """The result of an action that awaits nothing but its transaction, and so never suspends."""
    coroutine: Coroutine[Any, Any, Any] = awaitable  # type: ignore[assignment]
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("an action awaited something other than its transaction")


class Faults(Protocol):
    """Receives reports of damage that transactions meet."""

    def damaged(self, error: apsw.Error) -> Refusal:
        """Pages cannot be read; the refusal for the caller."""

    def unreadable(self, names: dict[str, str]) -> None:
        """A row, identified by these columns, cannot be read."""


class Tx(NotifyingTransaction):
    """A transaction on one connection. Every method runs its statement before it returns to the loop."""

    __slots__ = ("_connection", "_cursor", "_execute", "_faults", "_open", "now")

    def __init__(self, connection: apsw.Connection, now: int, faults: Faults) -> None:
        super().__init__()
        self._connection = connection
        self._faults = faults
        self._renew_cursor()
        self._open: list[apsw.Cursor] = []
        self.now = now

    def close(self) -> None:
        """Close open cursors: an open statement would keep its snapshot alive for the next user of the connection."""
        for cursor in (self._cursor, *self._open):
            cursor.close(force=True)

    def _renew_cursor(self) -> None:
        self._cursor = self._connection.cursor()
        self._execute = self._cursor.execute

    def _close_statement(self) -> None:
        """Close a statement whose row was not text: left open, it would keep checkpoints from being made."""
        self._cursor.close(force=True)
        self._renew_cursor()

    def _rows(self, sql: Sql, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._execute(sql.numbered, sql.values(parameters)).fetchall()
        except apsw.ConstraintError as error:
            why = getattr(error, "extendedresult", 0)
            if why == apsw.SQLITE_CONSTRAINT_DATATYPE:  # of a value that is there: those that we write fit
                raise self._unreadable(parameters) from None
            raise (MissingParent if why == apsw.SQLITE_CONSTRAINT_FOREIGNKEY else Duplicate)(str(error)) from None
        except DAMAGE as error:
            raise self._faults.damaged(error) from None
        except UnicodeDecodeError:
            self._close_statement()
            raise

    def _unreadable(self, parameters: dict[str, Any]) -> InternalError:
        """Warn the operator of a row that cannot be read; the refusal for the caller."""
        self._faults.unreadable({name: parameters[name] for name in _NAMES if name in parameters})
        return InternalError(_DAMAGED)

    def _row(self, sql: Sql, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        try:
            rows = self._rows(sql, parameters)
        except UnicodeDecodeError:
            raise self._unreadable(parameters) from None
        return rows[0] if rows else None

    def run_check(self, check: SessionCheck) -> None:
        """Run the query of a session check, and refuse if it does not pass."""
        check.resolve(self.read_check(check))

    def read_check(self, check: SessionCheck) -> Any:
        """What the query of a session check finds."""
        row = self._row(check.sql, check.parameters)
        return None if row is None else row[0]

    async def one(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> Any:
        """The row that the statement gives, or None."""
        row = self._row(sql, parameters)
        if row is None:
            return None
        if not _fits_one(row, kind):
            raise self._unreadable(parameters)
        return kind(*row)

    async def all(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        """All rows; one whose text cannot be read is left out, and the operator is warned."""
        try:
            rows = self._rows(sql, parameters)
        except UnicodeDecodeError:
            if not sql.sqlite.startswith("SELECT"):
                raise
            self._unreadable(parameters)
            rows = self._readable(sql, parameters)
        good = [row for row in rows if _fits_one(row, kind)]
        if len(good) < len(rows):
            self._unreadable(parameters)
        return list(starmap(kind, good))

    async def few(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any] | None:
        """All rows; None where one of them cannot be read, or is large: `pages` has a way with it.

        It stops there. What lies behind the data of a row is read through all of the data, and others wait meanwhile.
        """
        heavy = kind.__struct_fields__.index("data")
        rows: list[tuple[Any, ...]] = []
        try:
            for row in self._execute(sql.numbered, sql.values(parameters)):
                if row[heavy] == LARGE:
                    self._close_statement()
                    return None
                rows.append(row)
        except DAMAGE as error:
            raise self._faults.damaged(error) from None
        except UnicodeDecodeError:
            self._close_statement()
            return None
        return list(starmap(kind, rows)) if _fits(rows, kind) else None

    def _readable(self, sql: Sql, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows whose text is text. After one that is not, the same cursor goes on with the next."""
        cursor = self._connection.cursor().execute(sql.numbered, sql.values(parameters))
        rows: list[tuple[Any, ...]] = []
        while True:
            try:
                rows.extend(cursor)
            except UnicodeDecodeError:
                continue
            return rows

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        row = self._row(sql, parameters)
        return None if row is None else row[0]

    async def run(self, sql: Sql, /, **parameters: Any) -> int:
        """How many rows the statement changed."""
        try:
            self._rows(sql, parameters)
        except UnicodeDecodeError:
            raise self._unreadable(parameters) from None
        return self._connection.changes()

    async def each(self, sql: Sql, rows: Sequence[dict[str, Any]], /, by: tuple[str, ...]) -> list[bool]:
        """Whether the statement changed anything, for each of these rows of parameters."""
        del by
        run, changes = self._rows, self._connection.changes
        outcomes = []
        for parameters in rows:
            run(sql, parameters)
            outcomes.append(changes() > 0)
        return outcomes

    async def combine(self, user_id: str, groups: Sequence[Sequence[Form]]) -> None:
        """None: here a statement costs no round trip, and those of the actions are as quick."""

    def run_combined(self, user_id: str, forms: Sequence[Form]) -> list[Document] | None:
        """Write documents of one account; None: one is to be refused, and what was written is to be undone."""
        try:
            stored: list[Document] | None = combined_writes.run(self._connection, user_id, forms, self.now)
        except (apsw.Error, UnicodeDecodeError):  # the action meets the same, and knows what it means
            if not self._connection.in_transaction:  # a full disk or a failed read undoes the whole transaction
                raise
            return None
        return stored

    async def pages(
        self, kind: type[Any], sql: Sql, /, after: str, by: str, mean_bytes: int | None = None, **parameters: Any
    ) -> AsyncGenerator[list[Any], None]:
        """Pages of one open statement: it reads one snapshot by itself, and needs no key to go on.

        A row that cannot be read is left out with a warning: another statement goes on behind it.
        """
        del mean_bytes  # all are read alike
        heavy = kind.__struct_fields__.index("data")
        statement, passed = sql.numbered, 0
        while True:
            cursor = self._connection.cursor()
            self._open.append(cursor)
            seen, is_bad = 0, False
            try:
                cursor.execute(statement, sql.values(parameters))
                while not is_bad:
                    rows: list[tuple[Any, ...]] = []
                    size, is_last = 0, False
                    try:
                        for row in cursor:
                            rows.append(row)
                            data = row[heavy]
                            size += 200 + (len(data) if data.__class__ is str else 0)
                            if size >= PAGE_BYTES:
                                break
                        else:
                            is_last = True
                    except UnicodeDecodeError:
                        is_bad = True
                    if rows and not _fits(rows, kind):
                        is_bad = True
                        rows = list(takewhile(lambda row: _fits_one(row, kind), rows))
                    seen += len(rows)
                    yield list(starmap(kind, rows))
                    if is_last and not is_bad:
                        return
            except DAMAGE as error:
                raise self._faults.damaged(error) from None
            finally:
                cursor.close(force=True)  # else it would raise again what its last step met
            passed += seen
            try:
                beyond = self._beyond_bad_row(kind, sql, by, parameters, passed)
            except UnicodeDecodeError:  # it is the key that is not text: go on by number
                self._close_statement()
                self._unreadable(parameters)
                passed += 1
                statement = f"SELECT * FROM ({sql.numbered}) LIMIT -1 OFFSET {passed}"
            else:
                parameters = {**parameters, after: beyond, "limit": parameters["limit"] - seen}
                statement, passed = sql.numbered, 0

    def _beyond_bad_row(self, kind: type[Any], sql: Sql, by: str, parameters: dict[str, Any], offset: int) -> Any:
        """Warn of the row at this offset of a list; the key after which the list goes on."""
        shown = [name for name in _NAMES if name in kind.__struct_fields__ and name not in parameters]
        casts = "".join(f", CAST({name} AS BLOB)" for name in shown)
        found: list[Any] = self._execute(
            f"SELECT {by}{casts} FROM ({sql.numbered}) LIMIT 1 OFFSET {offset}", sql.values(parameters)
        ).fetchall()
        [(key, *names)] = found
        named = {name: parameters[name] for name in _NAMES if name in parameters}
        named |= {name: bytes(raw or b"").decode("utf-8", "replace") for name, raw in zip(shown, names, strict=True)}
        self._faults.unreadable(named)
        return key


class ReadTx(Tx):
    """The transaction that all short reads share: no state lasts from one to the next."""

    __slots__ = ("_check", "_clock")

    def __init__(self, connection: apsw.Connection, clock: Callable[[], int], faults: Faults) -> None:
        super().__init__(connection, 0, faults)
        self._clock = clock
        self._check: SessionCheck | None = None

    @property
    def now(self) -> int:
        """The current time, read when it is needed."""
        return self._clock()

    @now.setter
    def now(self, _now: int) -> None:
        pass

    def run_checked(self, check: SessionCheck, action: Callable[..., Awaitable[Any]], args: Any, keywords: Any) -> Any:
        """Run an action for a caller whose session is checked by the action's first statement."""
        self._check = check
        try:
            return run_sync(action(self, *args, **keywords))
        finally:
            self._finish_check()  # a caller that does not pass learns nothing else

    def _finish_check(self) -> None:
        check, self._check = self._check, None
        if check is not None:
            self.run_check(check)

    def _row(self, sql: Sql, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        check = self._check
        if check is None:
            return super()._row(sql, parameters)
        self._check = None
        values = check.sql.values(check.parameters) + sql.values(parameters)
        try:
            row = self._execute(combine(check.sql, sql).sqlite, values).fetchall()[0]
        except DAMAGE as error:
            raise self._faults.damaged(error) from None
        except UnicodeDecodeError:
            self.run_check(check)  # which also closes the statement
            raise self._unreadable(parameters) from None
        check.resolve(row[0])
        return row[2:] if row[1] else None

    def _rows(self, sql: Sql, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        self._finish_check()
        return super()._rows(sql, parameters)
