"""Transactions on one SQLite connection. A statement has run before the loop gets its turn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import apsw

from strongroom.store.db import Duplicate, Orphan, Sql
from strongroom.store.disk import DAMAGE
from strongroom.store.nudges import Telling
from strongroom.store.riding import together

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    from strongroom.errors import Refusal
    from strongroom.store.riding import Proof

_NAMES: Final[tuple[str, ...]] = (
    "user_id",
    "vault_uid",
    "collection",
    "uid",
)  # what tells a row from others, and nothing of its content
PAGE_BYTES: Final = 128 * 1024  # a page of a list: small enough to be read between two requests


def at_once(awaitable: Awaitable[Any]) -> Any:
    """The result of an action that awaits nothing but its transaction, and so never suspends."""
    coroutine: Coroutine[Any, Any, Any] = awaitable  # type: ignore[assignment]
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("an action awaited something other than its transaction")


class Faults(Protocol):
    """Who is told when a file turns out to be damaged."""

    def damaged(self, error: apsw.Error) -> Refusal:
        """Pages cannot be read; what the one who asked is answered."""

    def unreadable(self, names: dict[str, str]) -> None:
        """One row, of these names, holds what no row may hold."""


class Tx(Telling):
    """A transaction on one connection. Every method runs its statement before it returns to the loop."""

    __slots__ = ("_connection", "_execute", "_faults", "_open", "now")

    def __init__(self, connection: apsw.Connection, now: int, faults: Faults) -> None:
        super().__init__()
        self._connection = connection
        self._faults = faults
        self._execute = connection.cursor().execute
        self._open: list[apsw.Cursor] = []
        self.now = now

    def close(self) -> None:
        """End what is still being read: an open statement would keep its moment alive for whoever comes next."""
        for cursor in self._open:
            cursor.close(force=True)

    def _rows(self, sql: Sql, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._execute(sql.numbered, sql.values(parameters)).fetchall()
        except apsw.ConstraintError as error:
            gone = getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_FOREIGNKEY
            raise (Orphan if gone else Duplicate)(str(error)) from None
        except DAMAGE as error:
            raise self._faults.damaged(error) from None
        except UnicodeDecodeError:
            self._faults.unreadable({name: parameters[name] for name in _NAMES if name in parameters})
            raise

    def _row(self, sql: Sql, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        rows = self._rows(sql, parameters)
        return rows[0] if rows else None

    def prove(self, proof: Proof) -> None:
        """Look for what must be there, and refuse if it is not."""
        row = self._row(proof.sql, proof.parameters)
        proof.make(None if row is None else row[0])

    async def one(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> Any:
        """The row that the statement gives, or None."""
        row = self._row(sql, parameters)
        return None if row is None else kind(*row)

    async def all(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        """All rows; one whose text cannot be read is left out, and told of."""
        try:
            rows = self._rows(sql, parameters)
        except UnicodeDecodeError:
            if not sql.sqlite.startswith("SELECT"):
                raise
            rows = self._readable(sql, parameters)
        return [kind(*row) for row in rows]

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
        self._rows(sql, parameters)
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

    async def pages(
        self, kind: type[Any], sql: Sql, /, after: str, by: str, **parameters: Any
    ) -> AsyncGenerator[list[Any], None]:
        """Pages of one open statement: it shows one moment by itself, and needs no key to go on.

        A row that cannot be read is told of and left out: another statement goes on behind it.
        """
        heavy = kind.__struct_fields__.index("data")
        while True:
            cursor = self._connection.cursor()
            self._open.append(cursor)
            seen, is_bad = 0, False
            try:
                cursor.execute(sql.numbered, sql.values(parameters))
                while True:
                    page: list[Any] = []
                    size = 0
                    try:
                        for row in cursor:
                            data = row[heavy]
                            if data.__class__ is not str and data is not None:
                                is_bad = True
                                break
                            page.append(kind(*row))
                            size += 200 + len(data or "")
                            if size >= PAGE_BYTES:
                                break
                        else:
                            yield page
                            return
                    except UnicodeDecodeError:
                        is_bad = True
                    seen += len(page)
                    yield page
                    if is_bad:
                        break
            except DAMAGE as error:
                raise self._faults.damaged(error) from None
            finally:
                cursor.close(force=True)  # else it would raise again what its last step met
            beyond = self._beyond_bad_row(kind, sql, by, parameters, seen)
            parameters = {**parameters, after: beyond, "limit": parameters["limit"] - seen}

    def _beyond_bad_row(self, kind: type[Any], sql: Sql, by: str, parameters: dict[str, Any], place: int) -> Any:
        """Name the row at this place of a list; the key behind which the list goes on."""
        shown = [name for name in _NAMES if name in kind.__struct_fields__ and name not in parameters]
        casts = "".join(f", CAST({name} AS BLOB)" for name in shown)
        found: list[Any] = self._execute(
            f"SELECT {by}{casts} FROM ({sql.numbered}) LIMIT 1 OFFSET {place}", sql.values(parameters)
        ).fetchall()
        [(key, *names)] = found
        told = {name: parameters[name] for name in _NAMES if name in parameters}
        told |= {name: bytes(raw or b"").decode("utf-8", "replace") for name, raw in zip(shown, names, strict=True)}
        self._faults.unreadable(told)
        return key


class Look(Tx):
    """What short reads share: nothing of it lasts from one to the next."""

    __slots__ = ("_clock", "_proof")

    def __init__(self, connection: apsw.Connection, clock: Callable[[], int], faults: Faults) -> None:
        super().__init__(connection, 0, faults)
        self._clock = clock
        self._proof: Proof | None = None

    @property
    def now(self) -> int:
        """The moment, asked for when it matters."""
        return self._clock()

    @now.setter
    def now(self, _moment: int) -> None:
        pass

    def run_if(self, proof: Proof, action: Callable[..., Awaitable[Any]], args: Any, keywords: Any) -> Any:
        """Run an action for one who is still to be proven: its first statement asks for the proof as well."""
        self._proof = proof
        try:
            return at_once(action(self, *args, **keywords))
        finally:
            self._prove_alone()  # whatever came of it, the one who is not proven learns nothing but that

    def _prove_alone(self) -> None:
        proof, self._proof = self._proof, None
        if proof is not None:
            self.prove(proof)

    def _row(self, sql: Sql, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        proof = self._proof
        if proof is None:
            return super()._row(sql, parameters)
        self._proof = None
        values = proof.sql.values(proof.parameters) + sql.values(parameters)
        try:
            row = self._execute(together(proof.sql, sql).sqlite, values).fetchall()[0]
        except DAMAGE as error:
            raise self._faults.damaged(error) from None
        except UnicodeDecodeError:
            self._faults.unreadable({name: parameters[name] for name in _NAMES if name in parameters})
            raise
        proof.make(row[0])
        return row[2:] if row[1] else None

    def _rows(self, sql: Sql, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        self._prove_alone()
        return super()._rows(sql, parameters)
