"""What creates of many accounts in one statement are put through; planted faults must show here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom import store
from strongroom.errors import (
    Refusal,
    UidTaken,
)
from strongroom.store.postgres import combined_accounts
from strongroom.store.postgres.connection import connect
from tests.kit.clock import Clock
from tests.kit.servers.populated_database import alter, rows_of
from tests.store.account_nodes import OWNERS, Node, nodes, require_booked
from tests.store.refused_creates import (
    unfinished_import,
)


async def creates_of_many_accounts_share_a_statement(where: str, clock: Clock) -> None:
    """All are stored, and each caller is told of its own; an account's timestamps are in the order of its creates."""
    async with nodes(where, clock) as (node, _):
        before = node.commits
        made = await asyncio.gather(*(node.create(owner, uid) for uid in "abc" for owner in OWNERS))
        assert [(document.uid, new) for document, new in made] == [(uid, True) for uid in "abc" for _ in OWNERS]
        assert node.commits - before < len(OWNERS)
        await require_booked(where, {owner: set("abc") for owner in OWNERS})
        for number in range(len(OWNERS)):
            times = [document.updated_at for document, _ in made[number :: len(OWNERS)]]
            assert times == sorted(set(times))
        stored = {(row[0], row[1]): row[8] for row in (await rows_of(where))["documents"]}
        assert stored == {
            (owner, document.uid): document.updated_at for owner, (document, _) in zip(OWNERS * 3, made, strict=True)
        }


async def a_refusal_touches_no_other_account(
    where: str, clock: Clock, refused: Callable[[Node, str], Awaitable[Any]], why: type[Refusal]
) -> None:
    """Whatever stands against the create of one account, those of the others are stored, with their keyrings too."""
    async with nodes(where, clock) as (node, _):
        for owner in OWNERS:
            await node.create(owner, "there")
        for owner in OWNERS[:6]:
            await node.db.write(store.keyrings.insert, owner, "keyring", 5)
        if refused is unfinished_import:
            await alter(where, "UPDATE ledgers SET importing = 1 WHERE user_id = 'u4'")
        creates = [
            refused(node, owner) if owner == "u4" else node.create(owner, "x", keyring_version=5) for owner in OWNERS
        ]
        outcomes = await asyncio.gather(*creates, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [why if owner == "u4" else tuple for owner in OWNERS]
        await require_booked(where, {owner: {"there"} if owner == "u4" else {"there", "x"} for owner in OWNERS})


async def what_another_node_commits_during_the_statement_is_not_overlooked(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its snapshot, and before its lock: the account is left out, and its create refused for the right reason."""
    read = "SELECT account.*, ledgers.clock"
    slow = combined_accounts._CREATE.postgres.replace(read, f"{read}, pg_sleep(CASE user_id WHEN 'u4' THEN 1 END)")
    async with nodes(where, clock) as (one, two):
        monkeypatch.setattr(combined_accounts._CREATE, "postgres", slow)
        other = await connect(where)

        async def sleeps() -> bool:
            asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            return bool(await other.fetchval(asked))

        creates = asyncio.gather(*(one.create(owner, "twin") for owner in OWNERS), return_exceptions=True)
        while not await sleeps():  # noqa: ASYNC110 - nothing but PostgreSQL knows
            await asyncio.sleep(0.01)
        await two.vault("u4", "twin")
        assert await sleeps(), "the statement ended before the vault was there"
        outcomes = await creates
        await other.close()
        assert [type(outcome) for outcome in outcomes] == [UidTaken if owner == "u4" else tuple for owner in OWNERS]
        await require_booked(where, {owner: set() if owner == "u4" else {"twin"} for owner in OWNERS})
