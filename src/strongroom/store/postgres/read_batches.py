"""Batches concurrent reads on PostgreSQL into one query, where each would cost a round trip.

Most reads are the same statement with other values: a session and a document, a session and a vault's clock. Those of
one turn of the loop are sent as one query over rows of values, and each gets its own row.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strongroom.errors import Refusal
from strongroom.store.session_check import combine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from strongroom.store.session_check import SessionCheck
    from strongroom.store.statement import Sql

MAX_READS: Final = 32  # in one query; with more, this process would wait for PostgreSQL and not work meanwhile
_NUMBERED = re.compile(r"\$(\d+)")
_TYPES: Final = {str: "text", int: "bigint"}


class _QueuedRead(NamedTuple):
    """A read that waits for its row."""

    values: list[Any]
    future: asyncio.Future[Any]


class ReadBatcher:
    """Collects the reads of one turn of the loop, by statement."""

    def __init__(
        self,
        fetch: Callable[[str, Sequence[Any]], Awaitable[list[Any]]],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._fetch = fetch
        self._on_failure = on_failure
        self._waiting: dict[tuple[str, tuple[type, ...]], list[_QueuedRead]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def row(self, sql: str, values: list[Any]) -> asyncio.Future[Any]:
        """The first row that the statement gives for these values, or None."""
        read = _QueuedRead(values, self.loop.create_future())
        kind = sql, tuple(map(type, values))
        waiting = self._waiting.get(kind)
        if waiting is None:
            self._waiting[kind] = [read]
            self.loop.call_soon(self._start, kind)
        else:
            waiting.append(read)
            if len(waiting) == MAX_READS:
                self._start(kind)
        return read.future

    def _start(self, kind: tuple[str, tuple[type, ...]]) -> None:
        reads = self._waiting.pop(kind, None)
        if reads is not None:  # else the batch was full, and has been sent already
            task = self.loop.create_task(self._run(*kind, reads))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, sql: str, types: tuple[type, ...], reads: list[_QueuedRead]) -> None:
        """Read all in one query; if it fails, read one by one, so that each failure reaches its own caller."""
        if len(reads) > 1 and all(kind in _TYPES for kind in types):
            columns = list(zip(*(read.values for read in reads), strict=True))
            try:
                rows = await self._fetch(_batched(sql, types), columns)
            except Refusal as refusal:  # the database cannot be reached: for all of them
                for read in reads:
                    _complete(read, refusal)
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, each will meet it or not
                self._on_failure(error)
            else:
                found = {row[0]: row[2:] for row in rows if row[1]}
                for number, read in enumerate(reads, 1):
                    _complete(read, found.get(number))
                return
        await asyncio.gather(*(self._run_single(sql, read) for read in reads))

    async def _run_single(self, sql: str, read: _QueuedRead) -> None:
        try:
            rows = await self._fetch(sql, read.values)
        except Exception as error:  # noqa: BLE001 - it belongs to one caller
            _complete(read, error)
        else:
            _complete(read, rows[0] if rows else None)


def _complete(read: _QueuedRead, outcome: Any) -> None:
    """Complete the future of the caller, unless the caller was cancelled meanwhile."""
    if read.future.done():
        return
    if isinstance(outcome, Exception):
        read.future.set_exception(outcome)
    else:
        read.future.set_result(outcome)


@lru_cache(maxsize=256)
def _batched(sql: str, types: tuple[type, ...]) -> str:
    """The statement for a list of each of its values: the number of each row, whether there is one, and the row.

    The limit keeps the statement apart, so that its indexes are searched for each row, however many there may be.
    """
    lists = ", ".join(f"${number}::{_TYPES[kind]}[]" for number, kind in enumerate(types, 1))
    names = ", ".join(f"v{number}" for number in range(1, len(types) + 1))
    one = _NUMBERED.sub(lambda match: f"batch.v{match[1]}", sql)
    return (
        f"SELECT batch.number, r.* FROM unnest({lists}) WITH ORDINALITY AS batch ({names}, number)"
        f" LEFT JOIN LATERAL (SELECT TRUE AS there, s.* FROM ({one}) AS s LIMIT 1) AS r ON TRUE"
    )


class BatchedReadTx:
    """A read-only transaction without a connection: each statement joins a batch of its own."""

    __slots__ = ("_check", "_read", "_read_batcher", "now")

    def __init__(
        self, read_batcher: ReadBatcher, check: SessionCheck, now: int, read: Callable[..., Awaitable[Any]]
    ) -> None:
        self._read_batcher = read_batcher
        self._check = check
        self._read = read
        self.now = now

    async def run_check(self) -> None:
        """Run the session check, unless it was combined with another query already."""
        check = self._check
        if not check.done:
            row = await self._read_batcher.row(check.sql.postgres, [check.parameters[name] for name in check.sql.names])
            check.resolve(None if row is None else row[0])

    async def _row(self, sql: Sql, parameters: dict[str, Any]) -> Any:
        check, values = self._check, [parameters[name] for name in sql.names]
        if check.passed:
            return await self._read_batcher.row(sql.postgres, values)
        batch = [check.parameters[name] for name in check.sql.names] + values
        row = await self._read_batcher.row(combine(check.sql, sql).postgres, batch)
        check.resolve(row[0])
        return row[2:] if row[1] else None

    async def one(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> Any:
        """The row that the statement gives, or None."""
        row = await self._row(sql, parameters)
        return None if row is None else kind(*row)

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        row = await self._row(sql, parameters)
        return None if row is None else row[0]

    async def all(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        """All rows, on a connection taken for them."""
        await self.run_check()
        rows: list[Any] = await self._read(_all, kind, sql, parameters)
        return rows

    async def few(self, kind: type[Any], sql: Sql, /, **parameters: Any) -> list[Any]:
        """All rows."""
        return await self.all(kind, sql, **parameters)


async def _all(tx: Any, kind: type[Any], sql: Sql, parameters: dict[str, Any]) -> Any:
    return await tx.all(kind, sql, **parameters)
