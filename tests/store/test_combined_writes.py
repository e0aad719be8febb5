"""Writes of one account that an engine runs together: each as if it were alone, and all of them booked."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from strongroom import store, wire
from strongroom.actions import batches, documents, vaults
from strongroom.errors import (
    DocumentConflict,
    DocumentNotFound,
    InsufficientScope,
    KeyringConflict,
    QuotaExceeded,
    Refusal,
    StorageFull,
    UidTaken,
    Unauthorized,
    VaultNotFound,
)
from strongroom.model import RETAINED_ROW_BYTES, AccountLimits, Actor, ApiKey, Document, Expected
from strongroom.rules import octets
from strongroom.store import open_database
from strongroom.store.postgres import combined_writes as on_postgres
from strongroom.store.postgres.connection import connect
from strongroom.store.postgres.engine import PostgresDatabase
from strongroom.store.session_check import SessionCheck
from strongroom.store.sqlite import combined_writes as on_sqlite
from strongroom.store.sqlite.engine import SqliteDatabase
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import rows_of

ANN = Actor("ann")
LIMITS = AccountLimits(versions=3)
OPEN = Sql("SELECT email FROM users WHERE id = :id")


def api_key(**limits: Any) -> ApiKey:
    """An API key with these limits."""
    free = dict.fromkeys(("permissions", "vault_uids", "collections", "expires_at", "last_used_at"))
    return ApiKey(**{"uid": "key", "name": "key", "created_at": 0, **free, **limits})


def session(*, ended: bool) -> SessionCheck:
    """The check of a session that has ended, or has not."""

    def validate(found: Any) -> Any:
        if found is None:
            raise Unauthorized
        return found

    return SessionCheck(OPEN, validate, id="bob" if ended else ANN.user_id)


def _raise(*_args: Any) -> Any:
    raise ZeroDivisionError


class Node:
    """A node, and how many of its writes were combined, or not."""

    def __init__(self, where: str, clock: Clock) -> None:
        self.db = open_database(where, clock)
        self.combined: Counter[bool] = Counter()
        if isinstance(self.db, PostgresDatabase):
            run = self.db._combine

            async def combine(owner: str, forms: list[Any]) -> Any:
                results = await run(owner, forms)
                self.combined[results is not None] += len(forms)
                return results

            self.db._combine = combine  # type: ignore[method-assign]
        elif isinstance(self.db, SqliteDatabase):
            execute = self.db._writer._run_combined

            def combine_now(owner: str, writes: list[Any], tx: Any) -> bool:
                done = execute(owner, writes, tx)
                self.combined[done] += len(writes)
                return done

            self.db._writer._run_combined = combine_now  # type: ignore[method-assign]

    async def create(self, uid: str | None, vault: str = "v", actor: Actor = ANN, **how: Any) -> Any:
        limits = how.pop("limits", LIMITS)
        check = how.pop("check", None)
        body = wire.requests.CreateDocument(**{"collection": "c", "data": "AAAA", "uid": uid, **how})
        return await self.db.write_for(actor.user_id, check, documents.create, actor, limits, vault, body)

    async def put(self, uid: str, version: int, vault: str = "v", actor: Actor = ANN, **how: Any) -> Any:
        limits = how.pop("limits", LIMITS)
        check = how.pop("check", None)
        body = wire.requests.PutDocument(**{"data": "BBBBBBBB", **how})
        expected = Expected((version,))
        return await self.db.write_for(actor.user_id, check, documents.put, actor, limits, vault, uid, body, expected)

    async def vault(self, uid: str) -> Any:
        body = wire.requests.CreateVault(name=f"name of {uid}", uid=uid)
        return await self.db.write_for(ANN.user_id, None, vaults.create, ANN, LIMITS, body)


@asynccontextmanager
async def nodes(where: str, clock: Clock, *uids: str) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes of an account with these vaults."""
    one, two = Node(where, clock), Node(where, clock)
    try:
        await one.db.write(store.accounts.insert, ANN.user_id, "ann@example.com", "hash")
        for uid in uids:
            await one.vault(uid)
        yield one, two
    finally:
        await one.db.close()
        await two.db.close()


async def require_booked(where: str) -> None:
    """What is booked is what is there, and every timestamp of the account is there once."""
    tables = await rows_of(where)
    sizes: Counter[str] = Counter()
    live: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    last: dict[str, int] = {}
    for _, _, vault, _, data, hmac, _, _, updated_at, deleted_at, _ in tables["documents"]:
        assert deleted_at is None
        sizes[vault] += octets(data, hmac)
        live[vault] += 1
        last[vault] = max(updated_at, last.get(vault, 0))
    for _, _, _, vault, _, data, hmac, *_ in tables["versions"]:
        kept[vault] += octets(data, hmac) + RETAINED_ROW_BYTES
    for _, uid, _, _, _, _, created_at, updated_at, count, size, retained in tables["vaults"]:
        assert (count, size, retained) == (live[uid], sizes[uid], kept[uid]), uid
        assert updated_at == last.get(uid, created_at), uid
    [(_, clock, count, size, _)] = tables["ledgers"]
    assert (count, size) == (sum(live.values()), sum(sizes.values()))
    times = [row[8] for row in tables["documents"]]
    assert len(set(times)) == len(times)
    assert clock >= max(times, default=0)


@async_test
async def test_many_writes_are_combined(where: str, clock: Clock) -> None:
    """Of one vault or of several; the responses say what is stored."""
    async with nodes(where, clock, "v", "w") as (node, _):
        made = await asyncio.gather(*(node.create(f"d{n}", "vw"[n % 2], hmac="h\x00é") for n in range(20)))
        replaced = await asyncio.gather(*(node.put(f"d{n}", 1, "vw"[n % 2]) for n in range(20)))
        assert node.combined == {True: 40}
        for n, ((first, is_new), second) in enumerate(zip(made, replaced, strict=True)):
            assert is_new
            assert (second.version, second.created_at, second.collection) == (2, first.created_at, "c")
            assert await node.db.read(documents.get, ANN, "vw"[n % 2], f"d{n}") == second
            assert await node.db.read(store.versions.get, ANN.user_id, f"d{n}", 1) == first
        times = [document.updated_at for document in (*(first for first, _ in made), *replaced)]
        assert times == sorted(set(times))
        await require_booked(where)


@async_test
async def test_each_refusal_is_its_own(where: str, clock: Clock) -> None:
    """Whatever is wrong with a write, it learns it, and the others are written."""
    async with nodes(where, clock, "v", "w") as (node, _):
        await node.create("taken")
        await node.create("old")
        await node.put("old", 1)
        await node.create("other")
        await node.put("other", 1)
        outcomes: list[Any] = await asyncio.gather(
            *(node.create(f"d{n}") for n in range(10)),
            node.create("taken", data="CCCC"),
            node.create("v"),
            node.create("lost", "nowhere"),
            node.put("other", 1, data="CCCC"),
            node.put("old", 2, data="DDDD", new_version=9),
            node.put("taken", 1, "w"),
            node.put("nothing", 1),
            node.put("taken", 1, new_version=1),
            return_exceptions=True,
        )
        assert not [outcome for outcome in outcomes[:10] if isinstance(outcome, BaseException)]
        assert [document.uid for document, _ in outcomes[:10]] == [f"d{n}" for n in range(10)]
        kinds = [type(outcome) for outcome in outcomes[10:]]
        assert kinds[:4] == [UidTaken, UidTaken, VaultNotFound, DocumentConflict]
        assert outcomes[14].version == 9
        assert kinds[5:] == [DocumentNotFound, DocumentNotFound, DocumentConflict]
        for uid in ("v", "taken"):
            with pytest.raises(UidTaken):
                await node.create(uid, data="CCCC")
        await require_booked(where)


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
    async with nodes(where, clock, "v") as (node, _):
        times = []
        for count in (3, 1, 5):
            made = await asyncio.gather(*(node.create(None) for _ in range(count)))
            times += [document.updated_at for document, _ in made]
        assert times == sorted(set(times))
        await require_booked(where)


@async_test
async def test_history_is_kept_and_trimmed(where: str, clock: Clock) -> None:
    """The newest so many, gaps between versions or not; none where none is to be kept."""
    async with nodes(where, clock, "v") as (node, _):
        await node.create("d")
        version = 1
        for chosen in (2, 3, 7, 8, 20, 21):
            assert (await node.put("d", version, data="BB" * chosen, new_version=chosen)).version == chosen
            version = chosen
        kept = await node.db.read(store.versions.of_document, ANN.user_id, "d")
        assert [one.version for one in kept] == [20, 8, 7]
        rows = sorted((await rows_of(where))["versions"], key=lambda row: int(row[2]))
        assert [row[5] for row in rows] == ["BB" * chosen for chosen in (7, 8, 20)]
        assert [row[10] for row in rows[:-1]] == [row[8] for row in rows[1:]]  # replaced when the next was written
        await node.put("d", 21, limits=AccountLimits(versions=1))
        kept = await node.db.read(store.versions.of_document, ANN.user_id, "d")
        assert [one.version for one in kept] == [21]
        await node.create("e")
        await node.put("e", 1, limits=AccountLimits(versions=0))
        assert await node.db.read(store.versions.of_document, ANN.user_id, "e") == []
        assert node.combined[False] == 0
        await require_booked(where)


@pytest.mark.parametrize("limits", [AccountLimits(documents=7), AccountLimits(bytes=30)], ids=["documents", "bytes"])
@async_test
async def test_a_quota_holds_for_all_of_a_round(where: str, clock: Clock, limits: AccountLimits) -> None:
    """As many as fit are written."""
    async with nodes(where, clock, "v") as (node, _):
        outcomes: list[Any] = []
        for _ in range(7):
            three = (node.create(None, limits=limits) for _ in range(3))
            outcomes += await asyncio.gather(*three, return_exceptions=True)
        assert Counter(isinstance(one, QuotaExceeded) for one in outcomes) == {False: 7, True: 14}
        await require_booked(where)


@async_test
async def test_bytes_of_history_stay_within_their_limit(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would exceed it is not combined: the oldest versions go."""
    monkeypatch.setattr("strongroom.rules.RETENTION_MINIMUM", 2 * (RETAINED_ROW_BYTES + 8))
    async with nodes(where, clock, "v") as (node, _):
        limits = AccountLimits(bytes=100)
        await node.create("d", limits=limits, data="AAAAAAAA")
        for version in range(1, 6):
            await node.put("d", version, limits=limits)
        kept = await node.db.read(store.versions.of_document, ANN.user_id, "d")
        assert [one.version for one in kept] == [5, 4]
        await require_booked(where)


@async_test
async def test_nothing_is_written_under_an_older_keyring(where: str, clock: Clock) -> None:
    """A write that was sealed with the keyring of before is refused, alone or among others."""
    async with nodes(where, clock, "v") as (node, _):
        await node.db.write(store.keyrings.insert, ANN.user_id, "keyring", 5)
        newest, older = Actor("ann", keyring_version=5), Actor("ann", keyring_version=4)
        outcomes = await asyncio.gather(
            node.create("a", actor=newest), node.create("b", actor=older), node.create("c"), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [tuple, KeyringConflict, tuple]
        with pytest.raises(KeyringConflict):
            await node.put("a", 1, actor=older)
        assert (await node.put("a", 1, actor=newest)).version == 2
        await require_booked(where)


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
    async with nodes(where, clock, "v") as (one, two):
        for number in range(rounds(600, 3000)):
            uid = f"twin{number}"
            outcomes = await asyncio.gather(one.vault(uid), two.create(uid), return_exceptions=True)
            assert Counter(isinstance(outcome, Refusal) for outcome in outcomes) == {True: 1, False: 1}, outcomes


@async_test
async def test_a_session_that_has_ended_writes_nothing(where: str, clock: Clock) -> None:
    """Its writes are refused; those of other sessions of the account, in the same round, are done."""
    async with nodes(where, clock, "v") as (node, _):
        await node.create("d")
        outcomes = await asyncio.gather(
            node.create("a", check=session(ended=True)),
            node.put("d", 1, check=session(ended=True)),
            node.create("b", check=session(ended=False)),
            node.create("c"),
            return_exceptions=True,
        )
        assert [isinstance(outcome, Unauthorized) for outcome in outcomes] == [True, True, False, False], outcomes
        rows = {row[1]: row[6] for row in (await rows_of(where))["documents"]}
        assert rows == {"d": 1, "b": 1, "c": 1}
        await require_booked(where)


@async_test
async def test_what_is_undone_is_undone_whole(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were written before the fault do not stay, of one write or of many; each is then run by itself."""
    if "://" in where:
        pytest.skip("it is one statement there")
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
