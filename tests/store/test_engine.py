"""The contract of a transaction, on every engine."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom import store, wire
from strongroom.actions import documents
from strongroom.errors import DocumentConflict, UidTaken, Unavailable, VaultNotFound
from strongroom.model import AccountLimits, Actor, Document
from strongroom.store import RollbackWith, Tx, open_database
from strongroom.store.queries.documents import Show
from strongroom.store.sqlite.engine import SqliteDatabase
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import Postgres
from tests.store.engine_rows import OpenDb, add, everything, owner, vault


async def advance(tx: Tx, vault_uid: str = "v") -> int:
    drawn = await store.ledgers.advance(tx, "u", 1, 0, 0)
    assert drawn is not None
    assert await store.vaults.add_usage(tx, "u", vault_uid, drawn.clock, 0, 0, 0)
    return drawn.clock


@async_test
async def test_what_was_written_is_there_after_reopening(open_db: OpenDb) -> None:
    """A write that returned is kept."""
    db = open_db()
    await owner(db)
    await vault(db)
    await db.write(add, "a", "AA", "any\x00text é")
    await db.close()
    db = open_db()
    assert [(document.uid, document.hmac) for document in await everything(db)] == [("a", "any\x00text é")]
    await db.close()


@async_test
async def test_one_failure_does_not_touch_the_others(open_db: OpenDb) -> None:
    """Writes that share a commit fail alone: the refused one leaves nothing, the rest is there."""
    db = open_db()
    await owner(db)
    await vault(db)

    async def half_done(tx: Tx, uid: str) -> None:
        await add(tx, uid)
        raise DocumentConflict(1, 1)

    jobs: list[Any] = [db.write(half_done if n % 3 == 0 else add, f"d{n}") for n in range(30)]
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[:3]] == [DocumentConflict, Document, Document]
    assert {document.uid for document in await everything(db)} == {f"d{n}" for n in range(30) if n % 3}
    await db.close()


@async_test
async def test_undo_answers_and_writes_nothing(open_db: OpenDb) -> None:
    """A retry is answered with what is stored, and the vault's clock does not move for it."""
    db = open_db()
    await owner(db)
    await vault(db)
    before = await db.read(store.vaults.clock, "u", "v")

    async def again(tx: Tx) -> str:
        await advance(tx)
        raise RollbackWith("stored")

    assert set(await asyncio.gather(db.write(again), db.write(again))) == {"stored"}
    assert await db.read(store.vaults.clock, "u", "v") == before
    await db.close()


@async_test
async def test_times_of_a_vault_never_repeat_and_never_run_back(open_db: OpenDb, clock: Clock) -> None:
    """However many write at once, and whatever the machine's clock does."""
    db = open_db()
    await owner(db)
    await vault(db)
    await asyncio.gather(*(db.write(add, f"a{n}") for n in range(50)))
    clock.pass_(-3_600_000)
    await asyncio.gather(*(db.write(add, f"b{n}") for n in range(50)))
    clock.pass_(86_400_000)
    await asyncio.gather(*(db.write(add, f"c{n}") for n in range(50)))
    times = [document.updated_at for document in await everything(db)]
    assert len(set(times)) == 150
    assert times == sorted(times)
    order = [document.uid[0] for document in await everything(db)]
    assert order == sorted(order)
    await db.close()


@async_test
async def test_a_snapshot_does_not_change_while_it_is_open(open_db: OpenDb) -> None:
    """What is written while a list is read does not appear in it, nor move within it."""
    db = open_db()
    await owner(db)
    await vault(db)
    for n in range(5):
        await db.write(add, f"d{n}", "A" * 100_000)
    seen: list[str] = []
    numbers = itertools.count()
    async with db.snapshot() as tx:
        async for page in store.documents.after(tx, "u", "v", 0, None, show=Show.LIVE, limit=100):
            seen += [document.uid for document in page]
            await db.write(add, f"late{next(numbers)}")
            moment = await db.write(advance)
            stored = await db.read(store.documents.head, "u", "v", "d4")
            assert stored is not None
            await db.write(store.documents.replace, "u", "v", stored, moment, "BB", None, stored.version + 1)
    assert seen == ["d0", "d1", "d2", "d3", "d4"]
    await db.close()


@async_test
async def test_pages_are_bounded_by_bytes(open_db: OpenDb) -> None:
    """However large the documents are, only a few of them are in memory."""
    db = open_db()
    await owner(db)
    await vault(db)
    for n in range(6):
        await db.write(add, f"d{n}", "A" * 1_000_000)
    async with db.snapshot() as tx:
        pages = [len(page) async for page in store.documents.after(tx, "u", "v", 0, None, show=Show.LIVE, limit=100)]
    assert sum(pages) == 6
    assert max(pages) <= 2
    await db.close()


@pytest.mark.parametrize(
    "stored",
    [
        ["A" * 1_000, "", "é" * 500, *"defghijklmnop"],
        ["A" * 1_000, "B" * 1_001, "é" * 600],
        ["A", "B" * 50_000, "C" * 50_000, *"defghijkl", "M" * 50_000],
        ["A", "?"],
    ],
    ids=["small", "little larger", "large", "a mark"],
)
@async_test
async def test_lists_of_small_documents_are_whole_and_bounded(
    stored: list[str], open_db: OpenDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the mean size lets one expect: larger documents, any data, more of them than a page holds."""
    monkeypatch.setattr("strongroom.store.postgres.transaction.SMALL_ROWS", 8)
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"strongroom.store.{engine}.transaction.PAGE_BYTES", 8_000)
    monkeypatch.setattr("strongroom.store.postgres.transaction._statements", {})
    db = open_db()
    await owner(db)
    await vault(db)
    for number, data in enumerate(stored):
        await db.write(add, f"d{number}", data)
    for limit, mean_bytes in itertools.product((1, 7, 8, 9, 10**6), (0, 1_000, 1_001)):
        async with db.snapshot() as tx:
            pages = store.documents.after(tx, "u", "v", 0, None, show=Show.ALL, limit=limit, mean_bytes=mean_bytes)
            found = [[document.data for document in page] async for page in pages]
        assert [data for page in found for data in page] == stored[:limit], (limit, mean_bytes)
        assert max(sum(map(len, page)) for page in found) < 8_000 + 50_000, "what fits, and the one that does not"
    await db.close()


@async_test
async def test_a_short_list_reads_one_large_document_at_most(tmp_path: Path, clock: Clock) -> None:
    """On SQLite others wait for a short read; what lies behind the data of a row is read through all of it."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    await owner(db)
    await vault(db)
    for number in range(20):
        await db.write(add, f"d{number}", "A" * 400_000)
    connection = db._read_tx._connection
    connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS, reset=True)
    assert await db.read(store.documents.few_after, "u", "v", 0, None, Show.ALL, 100) is None
    assert connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0] < 200, "pages: a document has a hundred"
    assert await db.truncate_log(), "no statement is open"
    await db.close()


@async_test
async def test_a_cancelled_writer_leaves_the_others_alone(open_db: OpenDb) -> None:
    """A client that goes away while its write waits does not stop the queue."""
    db = open_db()
    await owner(db)
    await vault(db)
    tasks = [asyncio.create_task(db.write(add, f"d{n}")) for n in range(20)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(outcome, Document) for outcome in outcomes) == 19
    assert {document.uid for document in await everything(db)} >= {f"d{n}" for n in range(20) if n != 3}
    await db.close()


@async_test
async def test_deleting_a_vault_takes_its_documents_along(open_db: OpenDb) -> None:
    """And only its own."""
    db = open_db()
    await owner(db)
    await vault(db)
    await vault(db, "w")
    await db.write(add, "a")
    await db.write(add, "b", vault_uid="w")
    assert await db.write_long(store.vaults.delete, "u", "v", 1)
    await db.write(store.deletions.add, "u", "v", 10**15)
    assert await everything(db) == []
    assert await db.read(store.documents.by_uid, "u", "a") is None
    assert await db.read(store.documents.by_uid, "u", "b") is not None
    await db.close()


@async_test
async def test_a_refusal_in_a_read_leaves_the_reader_usable(open_db: OpenDb) -> None:
    """The next read works."""
    db = open_db()

    async def refuse(_tx: Tx) -> None:
        raise VaultNotFound

    for _ in range(3):
        with pytest.raises(VaultNotFound):
            await db.read(refuse)
    assert await db.read(store.accounts.by_email, "x") is None
    await db.close()


def _made(outcome: Any) -> Document:
    assert not isinstance(outcome, BaseException), outcome
    document, _new = outcome
    assert isinstance(document, Document)
    return document


@async_test
async def test_refusals_among_writes_of_one_account_do_not_touch_the_others(open_db: OpenDb) -> None:
    """Many at once, of which some conflict, some are undone, some break a rule: each gets its own outcome."""
    db = open_db()
    await owner(db)
    await vault(db)
    await db.write(add, "taken")

    async def create(actor: Actor, uid: str) -> Any:
        wanted = wire.requests.CreateDocument(collection="c", data="AA" if uid != "taken" else "BB", uid=uid)
        for _ in range(5):
            with suppress(Unavailable):  # on a busy machine no connection became free in time, and nothing was written
                return await db.write(documents.create, actor, AccountLimits(), "v", wanted)
        raise AssertionError("no connection became free")

    uids = ["taken" if n % 7 == 3 else f"n{n // 2 * 2 if n % 5 == 0 else n}" for n in range(60)]
    outcomes = await asyncio.gather(*(create(Actor("u"), uid) for uid in uids), return_exceptions=True)
    for uid, outcome in zip(uids, outcomes, strict=True):
        assert isinstance(outcome, UidTaken) if uid == "taken" else _made(outcome).uid == uid
    stored = await everything(db)
    assert {document.uid for document in stored} == set(uids)
    assert len({document.updated_at for document in stored}) == len(stored)


@async_test
async def test_writes_of_one_account_end_when_the_database_is_away() -> None:
    """No write hangs behind the one that met it; and all goes on when it is back."""
    server = Postgres()
    db = open_database(server.fresh(), lambda: 1_700_000_000_000)
    try:
        await owner(db)
        await vault(db)
        server.crash()
        began = asyncio.get_running_loop().time()
        wanted = [wire.requests.CreateDocument(collection="c", data="AA") for _ in range(200)]
        outcomes = await asyncio.gather(
            *(db.write(documents.create, Actor("u"), AccountLimits(), "v", one) for one in wanted),
            return_exceptions=True,
        )
        assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
        assert asyncio.get_running_loop().time() - began < 10
        server.restart()
        assert (await db.write(add, "after")).uid == "after"
    finally:
        await db.close()
        server.stop()
