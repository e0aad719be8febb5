"""Writes of one account that an engine runs together: each as if it were alone, and all of them booked."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from strongroom import store, wire
from strongroom.actions import batches, documents, keyrings
from strongroom.errors import (
    DocumentConflict,
    DocumentNotFound,
    InsufficientScope,
    KeyringConflict,
    QuotaExceeded,
    StorageFull,
    VaultNotFound,
)
from strongroom.model import AccountLimits, Actor, ApiKey, Document, Expected, Origin
from strongroom.store.postgres import combined_writes as on_postgres
from strongroom.store.postgres.connection import connect
from strongroom.store.sqlite import combined_writes as on_sqlite
from strongroom.store.sqlite.engine import SqliteDatabase
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.people.keyrings import keyring
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import rows_of
from tests.kit.waiting import PATIENCE
from tests.store import combined_scenarios
from tests.store.combined_nodes import ANN, LIMITS, Node, nodes, require_booked


def api_key(**limits: Any) -> ApiKey:
    """An API key with these limits."""
    free = dict.fromkeys(("permissions", "vault_uids", "collections", "expires_at", "last_used_at"))
    return ApiKey(**{"uid": "key", "name": "key", "created_at": 0, **free, **limits})


def _raise(*_args: Any) -> Any:
    raise ZeroDivisionError


@async_test
async def test_many_writes_are_combined(where: str, clock: Clock) -> None:
    """Of one vault or of several; the responses say what is stored."""
    await combined_scenarios.many_writes_are_combined(where, clock)


@async_test
async def test_each_refusal_is_its_own(where: str, clock: Clock) -> None:
    """Whatever is wrong with a write, it learns it, and the others are written."""
    await combined_scenarios.each_refusal_is_its_own(where, clock)


@async_test
async def test_a_repeated_write_is_answered_as_before(where: str, clock: Clock) -> None:
    """The same create, or the same put, gets what it has stored, and nothing is written twice."""
    async with nodes(where, clock, "v") as (node, _):
        first, _ = await node.create("d")
        assert await node.create("d") == (first, False)
        second = await node.put("d", 1)
        assert await node.put("d", 1) == second
        await require_booked(where)


@async_test
async def test_a_batch_that_is_not_combined_is_written_once(where: str, clock: Clock) -> None:
    """A put that was done before is answered by the action: what the statements have written by then is undone."""
    async with nodes(where, clock, "v") as (node, _):
        await node.create("d")
        await node.put("d", 1)
        operations: list[Any] = [
            wire.requests.CreateOperation(collection="c", data="AAAA"),
            wire.requests.PutOperation(uid="d", version=1, data="BBBBBBBB"),
        ]
        made = await node.db.write(batches.run, ANN, LIMITS, "v", operations)
        assert made[1].version == 2
        assert {row[1] for row in (await rows_of(where))["documents"]} == {"d", made[0].uid}
        await require_booked(where)


@async_test
async def test_a_clock_is_never_behind(where: str, clock: Clock) -> None:
    """However many are written at once, and while the time of the machine stands still."""
    await combined_scenarios.a_clock_is_never_behind(where, clock)


@async_test
async def test_history_is_kept_and_trimmed(where: str, clock: Clock) -> None:
    """The newest so many, gaps between versions or not; none where none is to be kept."""
    await combined_scenarios.history_is_kept_and_trimmed(where, clock)


@pytest.mark.parametrize("limits", [AccountLimits(documents=7), AccountLimits(bytes=30)], ids=["documents", "bytes"])
@async_test
async def test_a_quota_holds_for_all_of_a_round(where: str, clock: Clock, limits: AccountLimits) -> None:
    """As many as fit are written."""
    await combined_scenarios.a_quota_holds_for_all_of_a_round(where, clock, limits)


@async_test
async def test_bytes_of_history_stay_within_their_limit(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would exceed it is not combined: the oldest versions go."""
    await combined_scenarios.bytes_of_history_stay_within_their_limit(where, clock, monkeypatch)


@async_test
async def test_nothing_is_written_under_an_older_keyring(where: str, clock: Clock) -> None:
    """A write that was sealed with the keyring of before is refused, alone or among others."""
    await combined_scenarios.nothing_is_written_under_an_older_keyring(where, clock)


@async_test
async def test_a_limited_key_writes_within_its_scope_alone(where: str, clock: Clock) -> None:
    """A key of one vault and one collection, beside its owner: what it may not write is refused as ever."""
    async with nodes(where, clock, "v", "w") as (node, _):
        await asyncio.gather(node.create("in v"), node.create("in w", "w"), node.create("hidden", collection="d"))
        of_vault = Actor("ann", key=api_key(vault_uids=["v"]))
        of_nothing = Actor("ann", key=api_key(vault_uids=[]))
        of_collection = Actor("ann", key=api_key(collections=["c"]))
        outcomes = await asyncio.gather(
            node.create("a"),
            node.create("b", actor=of_vault),
            node.create("e", "w", actor=of_vault),
            node.create("f", actor=of_collection),
            node.create("g", collection="d", actor=of_collection),
            node.put("in v", 1, actor=of_vault),
            node.put("in w", 1, "w", actor=of_vault),
            node.put("hidden", 1, actor=of_collection),
            node.create("h", actor=of_nothing),
            node.put("in v", 2, actor=of_nothing),
            return_exceptions=True,
        )
        kinds = [type(outcome) for outcome in outcomes]
        assert kinds[:5] == [tuple, tuple, VaultNotFound, tuple, InsufficientScope]
        assert kinds[5:] == [Document, VaultNotFound, DocumentNotFound, VaultNotFound, VaultNotFound]
        await require_booked(where)


@async_test
async def test_two_nodes_write_in_one_account(where: str, clock: Clock) -> None:
    """At the same time, the same documents and others: each version is one write that was acknowledged."""
    async with nodes(where, clock, "v", "w") as (one, two):
        await asyncio.gather(*(one.create(f"d{n}", "vw"[n % 2]) for n in range(6)))
        acknowledged = Counter({f"d{n}": 1 for n in range(6)})

        numbers = itertools.count()  # no two writes have the same content: that would be one that is repeated

        async def work(node: Node, number: int) -> None:
            place, uid = "vw"[number % 2], f"d{number % 6}"
            for size in range(1, rounds(4, 40)):
                await node.create(None, place)
                stored = await node.db.read(documents.head, ANN, place, uid)
                with suppress(DocumentConflict):
                    await node.put(uid, stored.version, place, data=f"{next(numbers):08}" * size)
                    acknowledged[uid] += 1

        await asyncio.gather(*(work(node, number) for number in range(12) for node in (one, two)))
        for uid, writes in acknowledged.items():
            stored = await one.db.read(store.documents.by_uid, ANN.user_id, uid)
            assert stored is not None
            assert stored.version == writes
        assert one.combined[True]
        assert two.combined[True]
        await require_booked(where)


@async_test
async def test_a_uid_is_never_a_vaults_and_a_documents(where: str, clock: Clock) -> None:
    """One node makes the vault, another the document, at the same time: one of them is refused."""
    await combined_scenarios.a_uid_is_never_a_vaults_and_a_documents(where, clock)


@async_test
async def test_a_session_that_has_ended_writes_nothing(where: str, clock: Clock) -> None:
    """Its writes are refused; those of other sessions of the account, in the same round, are done."""
    await combined_scenarios.a_session_that_has_ended_writes_nothing(where, clock)


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_what_is_undone_is_undone_whole(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were written before the fault do not stay, of one write or of many; each is then run by itself."""
    fails = "UPDATE ledgers SET clock = NULL WHERE user_id = ?1 AND ?2 + ?3 + ?4 > 0"
    monkeypatch.setattr(on_sqlite, "_BOOK", fails)
    async with nodes(where, clock, "v") as (node, _):
        await node.create("a")
        await asyncio.gather(node.create("b"), node.create("c"), node.put("a", 1))
        assert node.combined[True] == 0
        assert {row[1]: row[6] for row in (await rows_of(where))["documents"]} == {"a": 2, "b": 1, "c": 1}
        assert [row[1:3] for row in (await rows_of(where))["versions"]] == [("a", 1)]
        await require_booked(where)


@async_test
async def test_an_unexpected_error_is_told_to_every_caller(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever, nothing of the round is written, and the next round is."""
    async with nodes(where, clock, "v") as (node, _):
        await node.create("d")
        with monkeypatch.context() as broken:
            broken.setattr(on_postgres, "run", _raise)
            broken.setattr(on_sqlite, "run", _raise)
            writes = asyncio.gather(node.create("a"), node.create("b"), node.put("d", 1), return_exceptions=True)
            outcomes = await asyncio.wait_for(writes, 30)
        assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 3
        await asyncio.gather(node.create("a"), node.put("d", 1))
        assert {row[1]: row[6] for row in (await rows_of(where))["documents"]} == {"d": 2, "a": 1}
        await require_booked(where)


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_a_full_disk_refuses_what_does_not_fit(where: str, clock: Clock) -> None:
    """What is acknowledged is there, the rest is told, and all is written when there is room again."""
    async with nodes(where, clock, "v") as (node, _):
        await node.create("d")
        assert isinstance(node.db, SqliteDatabase)
        connection = node.db._writer.connection
        pages: Any = connection.pragma("page_count")
        connection.pragma("max_page_count", pages + 20)
        large = (node.create(None, data="A" * 20_000) for _ in range(10))
        outcomes = await asyncio.gather(*large, node.put("d", 1), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)} == {StorageFull}
        made = {outcome[0].uid for outcome in outcomes if isinstance(outcome, tuple)}
        assert {row[1] for row in (await rows_of(where))["documents"]} == {"d", *made}
        await require_booked(where)
        connection.pragma("max_page_count", 1_000_000)
        await asyncio.gather(*(node.create(None, data="A" * 20_000) for _ in range(10)))
        await require_booked(where)


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@async_test
async def test_a_connection_that_breaks_under_way(where: str, clock: Clock) -> None:
    """The statement may have been done: it is repeated, and what was written once is not written twice."""
    async with nodes(where, clock, "v") as (node, _):
        await node.create("d")
        holder = await connect(where)
        await holder.execute("BEGIN")
        await holder.execute("UPDATE ledgers SET clock = clock")
        waiting = asyncio.gather(node.create("e"), node.put("d", 1), return_exceptions=True)
        while not (found := await holder.fetch(_WAITING)):  # noqa: ASYNC110 - PostgreSQL tells nobody
            await asyncio.sleep(0.01)
        for row in found:
            await holder.execute(f"SELECT pg_terminate_backend({row[0]})")
        await holder.execute("COMMIT")
        outcomes = await waiting
        assert [isinstance(outcome, BaseException) for outcome in outcomes] == [False, False], outcomes
        await holder.close()
        await require_booked(where)


_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


async def create_sealed(node: Node, actor: Actor) -> Any:
    return await node.create("new", actor=actor)


async def put_sealed(node: Node, actor: Actor) -> Any:
    return await node.put("d", 1, actor=actor)


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "write"),
    [(on_postgres._CREATE, create_sealed), (on_postgres._REPLACE, put_sealed)],
    ids=["create", "replace"],
)
@async_test
async def test_a_keyring_that_is_replaced_during_the_statement_is_not_overlooked(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, statement: Sql, write: Any
) -> None:
    """After its snapshot, and before it has read the keyring: the write is refused, and nothing of it is stored."""
    read, held = "FROM keyrings WHERE", "FROM keyrings WHERE pg_advisory_xact_lock(20)::text = '' AND"
    assert read in statement.postgres
    async with nodes(where, clock, "v") as (one, two):
        await one.create("d")
        await one.db.write(store.keyrings.insert, ANN.user_id, keyring(), 5)
        before = await rows_of(where)
        monkeypatch.setattr(statement, "postgres", statement.postgres.replace(read, held))
        holder = await connect(where)
        await holder.execute("SELECT pg_advisory_lock(20)")
        writing = asyncio.ensure_future(write(one, Actor("ann", keyring_version=5)))
        async with asyncio.timeout(PATIENCE):
            while not await holder.fetch(_WAITING):  # noqa: ASYNC110 - PostgreSQL tells nobody
                await asyncio.sleep(0.01)
        rotated = wire.requests.PutKeyring(keyring=keyring(body="rotated"), version=5)
        stored = await two.db.write(keyrings.put, ANN, rotated, Expected((5,)), None, Origin("192.0.2.1", "tests"))
        assert stored.version == 6
        assert not writing.done(), "the statement ended before the keyring was there"
        await holder.execute("SELECT pg_advisory_unlock(20)")
        await holder.close()
        with pytest.raises(KeyringConflict):
            await writing
        assert one.combined[False] == 1
        after = await rows_of(where)
        assert {name: after[name] for name in ("documents", "versions", "vaults", "ledgers")} == {
            name: before[name] for name in ("documents", "versions", "vaults", "ledgers")
        }


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.parametrize("grows_first", [True, False])
@async_test
async def test_one_grows_and_one_shrinks_at_the_limit(where: str, clock: Clock, *, grows_first: bool) -> None:
    """In one round, in the order in which they came: there is room only behind the one that shrinks."""
    async with nodes(where, clock, "v") as (node, _):
        await asyncio.gather(node.create("small", data="AAAA"), node.create("large", data="A" * 12))
        limits = AccountLimits(bytes=16)
        writes = [
            node.put("small", 1, data="B" * 12, limits=limits),
            node.put("large", 1, data="BBBB", limits=limits),
        ]
        outcomes = await asyncio.gather(*(writes if grows_first else reversed(writes)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [QuotaExceeded if grows_first else Document, Document]
        rows = {row[1]: row[6] for row in (await rows_of(where))["documents"]}
        assert rows == {"small": 1 if grows_first else 2, "large": 2}
        assert node.combined[False] >= 2 or not grows_first, "they were not in one round"
        await require_booked(where)


@pytest.mark.parametrize("grown", [8, 12, 16])
@async_test
async def test_one_grows_and_one_shrinks_beyond_the_limit(where: str, clock: Clock, grown: int) -> None:
    """In one round, of an account that has more than it may: what shrinks is written, and makes no room for the other.

    It shrinks by more, by as much, or by less than the other grows.
    """
    async with nodes(where, clock, "v") as (node, _):
        await asyncio.gather(node.create("small", data="AAAA"), node.create("large", data="A" * 12))
        limits = AccountLimits(bytes=6)
        outcomes = await asyncio.gather(
            node.put("small", 1, data="B" * grown, limits=limits),
            node.put("large", 1, data="BBBB", limits=limits),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [QuotaExceeded, Document]
        assert {row[1]: row[6] for row in (await rows_of(where))["documents"]} == {"small": 1, "large": 2}
        assert node.combined[False] >= 2, "they were not in one round"
        await require_booked(where)
