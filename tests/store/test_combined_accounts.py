"""Creates of different accounts at once: each as if its account were alone, and all of them booked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from strongroom import store
from strongroom.errors import (
    ImportUnfinished,
    KeyringConflict,
    QuotaExceeded,
    Refusal,
    UidTaken,
    Unavailable,
    VaultNotFound,
)
from strongroom.store.postgres import combined_accounts
from strongroom.store.postgres.account_batches import MAX_STATEMENTS, AccountBatcher
from strongroom.store.postgres.connection import connect
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.samples import rounds
from tests.kit.waiting import until_async
from tests.store import account_scenarios
from tests.store.account_nodes import OWNERS, Node, nodes, require_booked
from tests.store.refused_creates import (
    older_keyring,
    quota_of_bytes,
    quota_of_documents,
    uid_of_a_document,
    uid_of_a_vault,
    unfinished_import,
    unknown_vault,
)


@async_test
async def test_creates_of_many_accounts_share_a_statement(where: str, clock: Clock) -> None:
    """All are stored, and each caller is told of its own; an account's timestamps are in the order of its creates."""
    await account_scenarios.creates_of_many_accounts_share_a_statement(where, clock)


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (quota_of_documents, QuotaExceeded),
        (quota_of_bytes, QuotaExceeded),
        (unknown_vault, VaultNotFound),
        (uid_of_a_document, UidTaken),
        (uid_of_a_vault, UidTaken),
        (older_keyring, KeyringConflict),
        (unfinished_import, ImportUnfinished),
    ],
    ids=lambda value: value.__name__,
)
@async_test
async def test_a_refusal_touches_no_other_account(
    where: str, clock: Clock, refused: Callable[[Node, str], Awaitable[Any]], why: type[Refusal]
) -> None:
    """Whatever stands against the create of one account, those of the others are stored, with their keyrings too."""
    await account_scenarios.a_refusal_touches_no_other_account(where, clock, refused, why)


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@pytest.mark.parametrize("table", ["ledgers", "keyrings"])
@async_test
async def test_nobody_waits_for_an_account_that_is_locked(where: str, clock: Clock, table: str) -> None:
    """Another node holds the lock of one account: the others are stored meanwhile, and that one afterwards."""
    async with nodes(where, clock) as (node, _):
        for owner in OWNERS:
            await node.db.write(store.keyrings.insert, owner, "keyring", 5)
        other = await connect(where)
        await other.execute("BEGIN")
        await other.execute(f"SELECT 1 FROM {table} WHERE user_id = 'u4' FOR UPDATE")
        tasks = {owner: asyncio.ensure_future(node.create(owner, "x", keyring_version=5)) for owner in OWNERS}
        await until_async(lambda: all(task.done() for owner, task in tasks.items() if owner != "u4"), "the others", 10)
        again = [node.create(owner, "y", keyring_version=5) for owner in OWNERS if owner != "u4"]
        await asyncio.wait_for(asyncio.gather(*again), 10)
        assert not tasks["u4"].done()
        await other.execute("COMMIT")
        await asyncio.gather(*tasks.values())
        await other.close()
        await require_booked(where, {owner: {"x"} if owner == "u4" else {"x", "y"} for owner in OWNERS})


@async_test
async def test_two_nodes_create_in_the_same_accounts(where: str, clock: Clock) -> None:
    """A uid is created once, whoever comes first; what is refused is refused for its own reason."""
    async with nodes(where, clock) as (one, two):
        expected: dict[str, set[str]] = {owner: set() for owner in OWNERS}
        for number in range(rounds(12, 200)):
            uid = f"d{number}"
            creates = [
                node.create(owner, uid, data=data) for owner in OWNERS for node, data in ((one, "AAAA"), (two, "BBBB"))
            ]
            outcomes = await asyncio.gather(*creates, return_exceptions=True)
            for mine, theirs in zip(outcomes[::2], outcomes[1::2], strict=True):
                assert {type(mine), type(theirs)} == {tuple, UidTaken}, (mine, theirs)
            for owner in OWNERS:
                expected[owner].add(uid)
        await require_booked(where, expected)


@async_test
async def test_a_uid_is_never_a_vaults_and_a_documents(where: str, clock: Clock) -> None:
    """One node makes vaults, another documents of the same uids, in many accounts at once: one of each is refused."""
    async with nodes(where, clock) as (one, two):
        for number in range(rounds(60, 300)):
            uid = f"twin{number}"
            outcomes = await asyncio.gather(
                *(one.vault(owner, uid) for owner in OWNERS),
                *(two.create(owner, uid) for owner in OWNERS),
                return_exceptions=True,
            )
            for pair in zip(outcomes[: len(OWNERS)], outcomes[len(OWNERS) :], strict=True):
                assert Counter(isinstance(outcome, Refusal) for outcome in pair) == {True: 1, False: 1}, pair


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@async_test
async def test_what_another_node_commits_during_the_statement_is_not_overlooked(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its snapshot, and before its lock: the account is left out, and its create refused for the right reason."""
    await account_scenarios.what_another_node_commits_during_the_statement_is_not_overlooked(where, clock, monkeypatch)


@async_test
async def test_a_lost_connection_is_no_lost_write(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement was run, and its result never came: each create is repeated by itself, and stored once."""
    create = combined_accounts.create

    async def lost(*args: Any) -> Any:
        await create(*args)
        raise asyncpg.ConnectionDoesNotExistError

    monkeypatch.setattr(combined_accounts, "create", lost)
    async with nodes(where, clock) as (node, _):
        made = await asyncio.gather(*(node.create(owner, "x") for owner in OWNERS))
        assert [document.uid for document, _ in made] == ["x"] * len(OWNERS)
        await require_booked(where, {owner: {"x"} for owner in OWNERS})


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@async_test
async def test_a_statement_that_fails_is_counted_and_each_account_written(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator learns of it, once; no caller does."""
    monkeypatch.setattr(combined_accounts._CREATE, "postgres", combined_accounts._CREATE.postgres + ", nothing")
    async with nodes(where, clock) as (node, _):
        told: list[str] = []
        node.db.warn = told.append
        for uid in "xy":
            await asyncio.gather(*(node.create(owner, uid) for owner in OWNERS))
        assert len(told) == 1
        assert "a query for many requests at once" in told[0]
        assert node.db.commit_metrics.failed_batches >= 2
        await require_booked(where, {owner: {"x", "y"} for owner in OWNERS})


@async_test
async def test_an_outage_is_told_to_all_that_wait() -> None:
    """Those that wait behind a statement that met it do not wait for as long again, one after the other."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    asked: list[list[str]] = []

    async def create_many(wanted: Any) -> Any:
        asked.append(list(wanted))
        begun.set()
        await go_on.wait()
        raise Unavailable(1)

    batcher = AccountBatcher(create_many)
    waiting = asyncio.gather(*(batcher.create(f"u{n}", []) for n in range(100)), return_exceptions=True)
    await begun.wait()
    go_on.set()
    assert {type(outcome) for outcome in await asyncio.wait_for(waiting, 10)} == {Unavailable}
    assert len(asked) == MAX_STATEMENTS
