"""Batches of the SQLite writer: many writes, one commit; and no write affects the others."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom import store
from strongroom.errors import Unauthorized, Unavailable
from strongroom.store import Tx
from strongroom.store.exceptions import RollbackWith
from strongroom.store.queries.sessions import session_check
from strongroom.store.session_check import SessionCheck
from strongroom.store.sqlite import writer
from strongroom.store.sqlite.checkpointer import Checkpointer
from strongroom.store.sqlite.engine import SqliteDatabase
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.waiting import until_async


class _Writers:
    """Writers that count how often each is run; some fail after they have written."""

    def __init__(self, db: SqliteDatabase) -> None:
        self.db = db
        self.runs: Counter[str] = Counter()

    async def _add(self, tx: Tx, name: str, failure: BaseException | None) -> str:
        self.runs[name] += 1
        assert await store.accounts.insert(tx, name, f"{name}@x", "hash") is not None
        if failure is not None:
            raise failure
        return name

    async def together(self, names: list[str], failing: dict[str, BaseException] | None = None) -> list[Any]:
        """All at once; what came of each."""
        failures = failing or {}
        asked = (self.db.write(self._add, name, failures.get(name)) for name in names)
        return await asyncio.gather(*asked, return_exceptions=True)

    async def there(self) -> set[str]:
        """Who is stored."""
        async with self.db.snapshot() as tx:
            return {account.id for account in await store.accounts.page(tx, "", 10_000)}


@async_test
@pytest.mark.parametrize("failure", [ValueError("no"), Unavailable(1), RollbackWith("kept")])
async def test_a_failure_touches_none_of_the_others(tmp_path: Path, clock: Clock, failure: BaseException) -> None:
    """Whatever it is and wherever in the round: what it wrote is gone, and the others' is there."""
    writers = _Writers(SqliteDatabase(str(tmp_path / "x.db"), clock))
    names = [f"n{number}" for number in range(9)]
    for at in (0, 4, 8):
        bad = f"{at}-{names[at]}"
        mine = [f"{at}-{name}" for name in names]
        outcomes = await writers.together(mine, {bad: failure})
        good = [name for name in mine if name != bad]
        assert [outcome for name, outcome in zip(mine, outcomes, strict=True) if name != bad] == good
        told = outcomes[at]
        assert told == "kept" if isinstance(failure, RollbackWith) else told is failure
        assert await writers.there() & set(mine) == set(good)
    await writers.db.close()


@async_test
async def test_repeated_failures_make_other_writes_run_twice_only_once_in_many_batches(
    tmp_path: Path, clock: Clock
) -> None:
    """The first failure costs its round a second run; after that each round is careful from the beginning."""
    writers = _Writers(SqliteDatabase(str(tmp_path / "x.db"), clock))
    for turn in range(20):
        await writers.together([f"{turn}a", f"{turn}b", f"{turn}c"], {f"{turn}b": ValueError("no")})
    assert writers.runs["0a"] == 2
    assert max(writers.runs[f"{turn}a"] for turn in range(1, 20)) == 1
    assert await writers.there() == {f"{turn}{letter}" for turn in range(20) for letter in "ac"}
    await writers.db.close()


@async_test
async def test_a_refusal_that_wrote_nothing_costs_the_others_nothing(tmp_path: Path, clock: Clock) -> None:
    """Most refusals are found by looking: there is nothing to undo."""
    writers = _Writers(SqliteDatabase(str(tmp_path / "x.db"), clock))

    async def refuse(_tx: Tx) -> None:
        raise Unauthorized

    *outcomes, refused = await asyncio.gather(
        *(writers.db.write(writers._add, name, None) for name in "abc"),
        writers.db.write(refuse),
        return_exceptions=True,
    )
    assert outcomes == ["a", "b", "c"]
    assert isinstance(refused, Unauthorized)
    assert set(writers.runs.values()) == {1}
    await writers.db.close()


@async_test
async def test_a_caller_that_fails_the_check_writes_nothing(tmp_path: Path, clock: Clock) -> None:
    """The proof is made in the transaction itself, and comes first; it is made anew when a round runs again."""
    writers = _Writers(SqliteDatabase(str(tmp_path / "x.db"), clock))
    judged: list[int | None] = []

    def judge(found: int | None) -> int:
        judged.append(found)
        raise Unauthorized

    def nobody() -> SessionCheck:
        return session_check("nobody", "no session", judge)

    with pytest.raises(Unauthorized):
        await writers.db.write_for("nobody", nobody(), writers._add, "alone", None)
    outcomes = await asyncio.gather(
        writers.db.write(writers._add, "a", None),
        writers.db.write(writers._add, "b", ValueError("no")),
        writers.db.write_for("nobody", nobody(), writers._add, "c", None),
        return_exceptions=True,
    )
    assert isinstance(outcomes[2], Unauthorized)
    assert await writers.there() == {"a"}
    assert judged == [None, None]
    assert writers.runs == {"a": 2, "b": 2}
    await writers.db.close()


class _Threads:
    """Which thread each commit was made on."""

    def __init__(self, db: SqliteDatabase, patch: pytest.MonkeyPatch) -> None:
        self.on_the_loop: list[bool] = []
        real: Callable[[Any], Any] = db._writer._commit

        def commit(jobs: Any) -> Any:
            self.on_the_loop.append(threading.current_thread() is threading.main_thread())
            return real(jobs)

        patch.setattr(db._writer, "_commit", commit)


async def _one_by_one(db: SqliteDatabase, first: int, many: int) -> None:
    for number in range(first, first + many):
        await db.write(store.accounts.insert, f"u{number}", f"e{number}@x", "hash")


@async_test
async def test_the_loop_waits_for_a_quick_disk_only(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single write stays on its thread after so many quick commits, and leaves it after one that was not."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    threads = _Threads(db, monkeypatch)
    monkeypatch.setattr(writer, "QUICK_SECONDS", 60)
    await _one_by_one(db, 0, writer.QUICK_COMMITS + 3)
    assert threads.on_the_loop == [False] * writer.QUICK_COMMITS + [True] * 3
    await asyncio.gather(*(_one_by_one(db, 1_000 * lane, 3) for lane in range(1, 4)))
    assert not all(threads.on_the_loop[writer.QUICK_COMMITS + 3 :]), "several at once do not make the loop wait"
    monkeypatch.setattr(writer, "QUICK_SECONDS", 0)
    threads.on_the_loop.clear()
    await _one_by_one(db, 100, 3)
    assert not any(threads.on_the_loop[1:]), "the first of them showed that the disk is slow"
    await db.close()


@async_test
async def test_a_commit_that_fails_on_the_loop_is_as_fatal(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short way has the same end."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    fatal: list[BaseException] = []
    db.on_fatal = fatal.append
    monkeypatch.setattr(writer, "QUICK_SECONDS", 60)
    await _one_by_one(db, 0, writer.QUICK_COMMITS)
    monkeypatch.setattr(writer, "COMMIT", "COMMIT to a disk that is gone")
    threads = _Threads(db, monkeypatch)
    with pytest.raises(Unavailable):
        await db.write(store.accounts.insert, "x", "x@x", "hash")
    assert threads.on_the_loop == [True]
    assert [type(error) for error in fatal] == [apsw.SQLError]
    with pytest.raises(Unavailable):
        await db.write(store.accounts.insert, "y", "y@x", "hash")


@async_test
async def test_the_log_does_not_grow_for_ever(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is copied into the file after a commit, and begun anew; a reader holds that up for as long as it reads."""
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 50)
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    log = tmp_path / "x.db-wal"
    async with db.snapshot() as tx:
        await store.accounts.page(tx, "", 1)
        await _one_by_one(db, 0, 60)
        held = log.stat().st_size
        assert held > 150 * 4_096
    await _one_by_one(db, 100, 60)
    await _copied(db)
    before = log.stat().st_size
    for first in range(200, 400, 10):
        await _one_by_one(db, first, 10)
        await _copied(db)  # on a busy machine, more would be written before the copy ends
    assert log.stat().st_size == before, "what is there is written over"
    await db.close()


async def _copied(db: SqliteDatabase) -> None:
    """Wait until no copy of the log is under way, nor the checkpoint that follows it."""
    await until_async(lambda: not db._writer._checkpointer.running and not db._writer.busy, "the end of the copy")


SLOW_COPY_SECONDS = 20  # before a test that did not let it go on has failed


class _SlowCopy:
    """A copy of the log into the file that takes as long as the test likes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        copy = Checkpointer._copy

        def slowly(checkpointer: Checkpointer) -> None:
            self.begun.set()
            assert self.go_on.wait(SLOW_COPY_SECONDS)
            copy(checkpointer)

        monkeypatch.setattr(Checkpointer, "_copy", slowly)
        monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 50)

    async def begin(self, path: Path, clock: Clock) -> SqliteDatabase:
        """A database whose log is being copied."""
        db = SqliteDatabase(str(path), clock)
        await _one_by_one(db, 0, 60)
        assert self.begun.is_set()
        return db


async def _waits(task: asyncio.Task[Any]) -> bool:
    """Whether it is not done after a moment."""
    return not (await asyncio.wait({task}, timeout=0.05))[0]


@async_test
async def test_writes_go_on_while_the_log_is_copied(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a disk that takes its time; what was written meanwhile is copied too, and the log begun anew."""
    slow = _SlowCopy(monkeypatch)
    db = await slow.begin(tmp_path / "x.db", clock)
    await _one_by_one(db, 100, 200)
    grown = (tmp_path / "x.db-wal").stat().st_size
    slow.go_on.set()
    await _copied(db)
    await _one_by_one(db, 400, 10)
    assert (tmp_path / "x.db-wal").stat().st_size == grown, "what is there is written over"
    await db.close()


@async_test
async def test_writes_wait_for_the_copy_once_the_log_has_reached_its_bound(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the disk is, the log does not grow beyond it; then they are written, and it is emptied."""
    monkeypatch.setattr(writer, "MAX_LOG_PAGES", 400)
    slow, log = _SlowCopy(monkeypatch), tmp_path / "x.db-wal"
    db = await slow.begin(tmp_path / "x.db", clock)
    writing = asyncio.create_task(_one_by_one(db, 100, 200))
    await until_async(lambda: db._writer._waits_for_copy, "writers that wait")
    assert await _waits(writing)
    assert log.stat().st_size < 420 * 4_120, "the bound, and what one commit adds"
    slow.go_on.set()
    await asyncio.wait_for(writing, SLOW_COPY_SECONDS)
    await _copied(db)
    assert await db.read(store.accounts.by_email, "e299@x") is not None
    assert log.stat().st_size < 420 * 4_120
    await db.close()


@async_test
async def test_the_log_is_truncated_once_it_is_copied(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who deletes something is not told that the log is still read: the two do not hinder each other."""
    slow = _SlowCopy(monkeypatch)
    db = await slow.begin(tmp_path / "x.db", clock)
    truncating = asyncio.create_task(db.truncate_log())
    assert await _waits(truncating)
    slow.go_on.set()
    assert await truncating
    assert (tmp_path / "x.db-wal").stat().st_size == 0
    await db.close()


@async_test
async def test_a_database_that_is_closed_waits_for_the_copy_of_its_log(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is in the file then, and there is no log any more."""
    slow = _SlowCopy(monkeypatch)
    db = await slow.begin(tmp_path / "x.db", clock)
    closing = asyncio.create_task(db.close())
    assert await _waits(closing)
    slow.go_on.set()
    await closing
    assert not (tmp_path / "x.db-wal").exists()


@async_test
async def test_damage_while_the_log_is_copied_leaves_no_write_waiting(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that waits for the copy is refused, as others are."""
    monkeypatch.setattr(writer, "MAX_LOG_PAGES", 400)
    slow = _SlowCopy(monkeypatch)
    db = await slow.begin(tmp_path / "x.db", clock)
    writing = asyncio.create_task(_one_by_one(db, 100, 200))
    await until_async(lambda: db._writer._waits_for_copy, "a writer that waits")
    db._writer.broken = True
    slow.go_on.set()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(writing, SLOW_COPY_SECONDS)
    await db.close()
