"""Batches of concurrent reads on a real PostgreSQL: each read gets its own row, and its own failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from strongroom import store
from strongroom.errors import Unauthorized, Unavailable
from strongroom.model import Login
from strongroom.store import Tx, open_database
from strongroom.store.postgres.engine import PostgresDatabase
from strongroom.store.postgres.read_batches import MAX_READS, ReadBatcher
from strongroom.store.queries.accounts import _BY_EMAIL, _WITH_HASH
from strongroom.store.session_check import SessionCheck
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres

PEOPLE = [f"p{number:03}" for number in range(150)]


class _Asked:
    """A database that counts its questions."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self.questions: list[str] = []
        self.failures: list[Exception] = []

    async def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        async with self._turn:
            self.questions.append(text)
            rows: list[Any] = await self._connection.fetch(text, *values)
            return rows


@asynccontextmanager
async def _people() -> AsyncIterator[_Asked]:
    """A database with people in it."""
    url = postgres().fresh()
    await open_database(url, lambda: 1).close()
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.executemany(
            "INSERT INTO users (id, email, password_hash, created_at, updated_at) VALUES ($1, $2, $3, 1, 1)",
            [(name, f"{name}@x", f"hash of {name}") for name in PEOPLE],
        )
        yield _Asked(connection)
    finally:
        await connection.close()


@async_test
async def test_many_reads_are_few_queries_and_each_has_its_own_row() -> None:
    """Rows that exist, rows that do not, and the same one twice."""
    async with _people() as asked:
        read_batcher = ReadBatcher(asked.fetch, asked.failures.append)
        names = [*PEOPLE, "nobody", *PEOPLE[:7]]
        rows = await asyncio.gather(*(read_batcher.row(_WITH_HASH.postgres, [name]) for name in names))
        assert [row and Login(*row).password_hash for row in rows] == [
            None if name == "nobody" else f"hash of {name}" for name in names
        ]
        assert len(asked.questions) == -(-len(names) // MAX_READS)


@async_test
async def test_different_statements_do_not_mix() -> None:
    """One question for each statement."""
    async with _people() as asked:
        read_batcher = ReadBatcher(asked.fetch, asked.failures.append)
        asks = [read_batcher.row(_WITH_HASH.postgres, [name]) for name in PEOPLE[:5]]
        asks += [read_batcher.row(_BY_EMAIL.postgres, [f"{name}@x"]) for name in PEOPLE[:5]]
        asks.append(read_batcher.row("SELECT $1::bigint + 1", [41]))
        rows = await asyncio.gather(*asks)
        assert [row[0] for row in rows] == [*PEOPLE[:5], *PEOPLE[:5], 42]
        assert len(asked.questions) == 3


@async_test
async def test_a_read_that_fails_fails_alone() -> None:
    """PostgreSQL takes no NUL: a read with one fails, and the others get their rows."""
    async with _people() as asked:
        read_batcher = ReadBatcher(asked.fetch, asked.failures.append)
        names = [*PEOPLE[:3], "p\0", *PEOPLE[3:6]]
        rows = await asyncio.gather(
            *(read_batcher.row(_WITH_HASH.postgres, [name]) for name in names), return_exceptions=True
        )
        assert isinstance(rows.pop(3), asyncpg.PostgresError)
        assert [Login(*row).id for row in rows if not isinstance(row, BaseException)] == PEOPLE[:6]
        assert [type(failure) for failure in asked.failures] == [asyncpg.CharacterNotInRepertoireError]


@async_test
async def test_a_batch_that_is_refused_is_counted_and_logged_once(clock: Clock) -> None:
    """Each time it is counted; the log names the first of a kind, and no value that was read with."""
    db = open_database(postgres().fresh(), clock)
    said: list[str] = []
    db.warn = said.append

    async def read(tx: Any, name: str) -> Any:
        return await tx.one(Login, _WITH_HASH, id=name)

    for rounds in (1, 2):
        checks = [SessionCheck(Sql("SELECT :name"), lambda _found: None, name="x") for _ in range(3)]
        names = ["p", "secret\0", "q"]
        outcomes = await asyncio.gather(
            *(db.read_checked(check, read, name) for check, name in zip(checks, names, strict=True)),
            return_exceptions=True,
        )
        assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, False]
        assert db.commit_metrics.failed_batches == rounds
    assert len(said) == 1
    assert "CharacterNotInRepertoireError" in said[0]
    assert "strongroom_read_batch_failures_total" in said[0]
    assert "secret" not in said[0]
    await db.close()


@async_test
async def test_a_database_that_is_away_is_away_for_all() -> None:
    """No caller waits for it a second time."""
    asked = 0
    failures: list[Exception] = []

    async def away(_text: str, _values: Sequence[Any]) -> list[Any]:
        nonlocal asked
        asked += 1
        raise Unavailable(1)

    read_batcher = ReadBatcher(away, failures.append)
    outcomes = await asyncio.gather(*(read_batcher.row("SELECT $1", [name]) for name in "abc"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert asked == 1
    assert failures == []


@async_test
async def test_a_cancelled_read_delays_no_other() -> None:
    """A read whose caller was cancelled is not completed."""
    async with _people() as asked:
        read_batcher = ReadBatcher(asked.fetch, asked.failures.append)
        left, stayed = (read_batcher.row(_WITH_HASH.postgres, [name]) for name in PEOPLE[:2])
        left.cancel()
        assert Login(*await stayed).id == PEOPLE[1]


@async_test
async def test_a_caller_that_fails_the_check_learns_nothing_from_a_shared_batch(clock: Clock) -> None:
    """Checks and reads share a query, and each check is validated by itself."""
    db = open_database(postgres().fresh(), clock)
    for name in PEOPLE[:4]:
        await db.write(store.accounts.insert, name, f"{name}@x", f"hash of {name}")
    seen: list[str] = []

    def judge(found: str | None) -> str:
        if found is None:
            raise Unauthorized
        return found

    def check(name: str) -> SessionCheck:
        return SessionCheck(Sql("SELECT email FROM users WHERE id = :id"), judge, id=name)

    async def look(tx: Tx, name: str) -> str:
        login = await store.accounts.with_hash(tx, name)
        assert login is not None
        seen.append(name)
        return login.id

    outcomes = await asyncio.gather(
        *(db.read_checked(check(name), look, name) for name in PEOPLE[:3]),
        db.read_checked(check("stranger"), look, PEOPLE[3]),
        return_exceptions=True,
    )
    assert outcomes[:3] == PEOPLE[:3]
    assert isinstance(outcomes[3], Unauthorized)
    assert PEOPLE[3] not in seen
    await db.close()


@async_test
@pytest.mark.parametrize("write", [False, True])
async def test_a_database_that_cannot_be_reached_is_tried_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, *, write: bool
) -> None:
    """A caller that waited in vain does not wait again for its session check."""
    db = open_database(postgres().fresh(), clock)
    asked: list[object] = []

    async def away(*about: object) -> None:
        asked.append(about)
        raise Unavailable(1)

    async def look(tx: Tx) -> None:
        await store.accounts.with_hash(tx, "p")

    monkeypatch.setattr(db, "_attempts", away)
    check = SessionCheck(Sql("SELECT email FROM users WHERE id = :id"), lambda found: found, id="p")
    with pytest.raises(Unavailable):
        await (db.write_for("p", check, look) if write else db.read_checked(check, look))
    assert len(asked) == 1
    monkeypatch.undo()
    await db.close()


@async_test
async def test_a_check_that_failed_is_not_run_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check is run once, whatever its result."""
    db = PostgresDatabase(postgres().fresh(), clock)
    asked: list[object] = []
    real = db._attempts

    async def counted(*about: Any) -> Any:
        asked.append(about)
        return await real(*about)

    def refuse(_found: object) -> None:
        raise Unauthorized

    async def look(tx: Tx) -> None:
        await store.accounts.with_hash(tx, "p")

    monkeypatch.setattr(db, "_attempts", counted)
    with pytest.raises(Unauthorized):
        await db.read_checked(SessionCheck(Sql("SELECT email FROM users WHERE id = :id"), refuse, id="p"), look)
    assert len(asked) == 1
    monkeypatch.undo()
    await db.close()
