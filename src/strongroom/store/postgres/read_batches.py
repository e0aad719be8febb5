"""Looks that are asked for at the same time are one question to PostgreSQL, where each would cost a round trip.

Most looks are the same statement with other values: a session and a document, a session and a vault's clock. Those that
come in one turn of the loop are asked together, as rows of values, each with an answer of its own.
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

MOST: Final = 64  # looks in one question
_NUMBERED = re.compile(r"\$(\d+)")
_TYPES: Final = {str: "text", int: "bigint"}


class _Look(NamedTuple):
    """One who waits for a row."""

    values: list[Any]
    future: asyncio.Future[Any]


class ReadBatcher:
    """What is asked in this turn of the loop, by statement."""

    def __init__(self, fetch: Callable[[str, Sequence[Any]], Awaitable[list[Any]]]) -> None:
        self.loop = asyncio.get_running_loop()
        self._fetch = fetch
        self._waiting: dict[tuple[str, tuple[type, ...]], list[_Look]] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def row(self, sql: str, values: list[Any]) -> asyncio.Future[Any]:
        """The first row that the statement gives for these values, or None."""
        look = _Look(values, self.loop.create_future())
        kind = sql, tuple(map(type, values))
        waiting = self._waiting.get(kind)
        if waiting is None:
            self._waiting[kind] = [look]
            self.loop.call_soon(self._ask, kind)
        else:
            waiting.append(look)
            if len(waiting) == MOST:
                self._ask(kind)
        return look.future

    def _ask(self, kind: tuple[str, tuple[type, ...]]) -> None:
        looks = self._waiting.pop(kind, None)
        if looks is not None:  # else they were many, and have gone already
            task = self.loop.create_task(self._answer(*kind, looks))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _answer(self, sql: str, types: tuple[type, ...], looks: list[_Look]) -> None:
        """Ask for all at once; what one of them makes impossible is asked for one by one, and is its own failure."""
        if len(looks) > 1 and all(kind in _TYPES for kind in types):
            columns = list(zip(*(look.values for look in looks), strict=True))
            try:
                rows = await self._fetch(_for_many(sql, types), columns)
            except Refusal as refusal:  # the database is away: for all of them
                for look in looks:
                    _settle(look, refusal)
                return
            except Exception:  # noqa: BLE001, S110 - whatever it is, each will meet it or not
                pass
            else:
                found = {row[0]: row[2:] for row in rows if row[1]}
                for number, look in enumerate(looks, 1):
                    _settle(look, found.get(number))
                return
        await asyncio.gather(*(self._alone(sql, look) for look in looks))

    async def _alone(self, sql: str, look: _Look) -> None:
        try:
            rows = await self._fetch(sql, look.values)
        except Exception as error:  # noqa: BLE001 - it belongs to the one who asked
            _settle(look, error)
        else:
            _settle(look, rows[0] if rows else None)


def _settle(look: _Look, outcome: Any) -> None:
    """Tell the one who waits. A request that was cancelled meanwhile has nobody waiting."""
    if look.future.done():
        return
    if isinstance(outcome, Exception):
        look.future.set_exception(outcome)
    else:
        look.future.set_result(outcome)


@lru_cache(maxsize=256)
def _for_many(sql: str, types: tuple[type, ...]) -> str:
    """The statement for a list of each of its values: the number of each row, whether there is one, and the row.

    The limit keeps the statement apart, so that its indexes are searched for each row, however many there may be.
    """
    lists = ", ".join(f"${number}::{_TYPES[kind]}[]" for number, kind in enumerate(types, 1))
    names = ", ".join(f"v{number}" for number in range(1, len(types) + 1))
    one = _NUMBERED.sub(lambda match: f"asked.v{match[1]}", sql)
    return (
        f"SELECT asked.number, r.* FROM unnest({lists}) WITH ORDINALITY AS asked ({names}, number)"
        f" LEFT JOIN LATERAL (SELECT TRUE AS there, s.* FROM ({one}) AS s LIMIT 1) AS r ON TRUE"
    )


class Looks:
    """A transaction that only looks, and holds no connection: each statement goes its own way, with those of others."""

    __slots__ = ("_check", "_read", "_read_batcher", "now")

    def __init__(
        self, read_batcher: ReadBatcher, check: SessionCheck, now: int, read: Callable[..., Awaitable[Any]]
    ) -> None:
        self._read_batcher = read_batcher
        self._check = check
        self._read = read
        self.now = now

    async def prove(self) -> None:
        """Look for what must be there, unless it was found along with something else."""
        check = self._check
        if not check.done:
            row = await self._read_batcher.row(check.sql.postgres, [check.parameters[name] for name in check.sql.names])
            check.resolve(None if row is None else row[0])

    async def _row(self, sql: Sql, parameters: dict[str, Any]) -> Any:
        check, values = self._check, [parameters[name] for name in sql.names]
        if check.passed:
            return await self._read_batcher.row(sql.postgres, values)
        asked = [check.parameters[name] for name in check.sql.names] + values
        row = await self._read_batcher.row(combine(check.sql, sql).postgres, asked)
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
        await self.prove()
        rows: list[Any] = await self._read(_all, kind, sql, parameters)
        return rows


async def _all(tx: Any, kind: type[Any], sql: Sql, parameters: dict[str, Any]) -> Any:
    return await tx.all(kind, sql, **parameters)
