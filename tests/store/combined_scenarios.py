"""What writes of one account that an engine runs together are put through; planted faults must show here."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from strongroom import store
from strongroom.actions import documents
from strongroom.errors import (
    DocumentConflict,
    DocumentNotFound,
    KeyringConflict,
    QuotaExceeded,
    Refusal,
    UidTaken,
    Unauthorized,
    VaultNotFound,
)
from strongroom.model import RETAINED_ROW_BYTES, AccountLimits, Actor
from tests.kit.clock import Clock
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import rows_of
from tests.store.combined_nodes import ANN, nodes, require_booked, session


async def many_writes_are_combined(where: str, clock: Clock) -> None:
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


async def each_refusal_is_its_own(where: str, clock: Clock) -> None:
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


async def a_clock_is_never_behind(where: str, clock: Clock) -> None:
    """However many are written at once, and while the time of the machine stands still."""
    async with nodes(where, clock, "v") as (node, _):
        times = []
        for count in (3, 1, 5):
            made = await asyncio.gather(*(node.create(None) for _ in range(count)))
            times += [document.updated_at for document, _ in made]
        assert times == sorted(set(times))
        await require_booked(where)


async def history_is_kept_and_trimmed(where: str, clock: Clock) -> None:
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


async def a_quota_holds_for_all_of_a_round(where: str, clock: Clock, limits: AccountLimits) -> None:
    """As many as fit are written."""
    async with nodes(where, clock, "v") as (node, _):
        outcomes: list[Any] = []
        for _ in range(7):
            three = (node.create(None, limits=limits) for _ in range(3))
            outcomes += await asyncio.gather(*three, return_exceptions=True)
        assert Counter(isinstance(one, QuotaExceeded) for one in outcomes) == {False: 7, True: 14}
        await require_booked(where)


async def bytes_of_history_stay_within_their_limit(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def nothing_is_written_under_an_older_keyring(where: str, clock: Clock) -> None:
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


async def a_uid_is_never_a_vaults_and_a_documents(where: str, clock: Clock) -> None:
    """One node makes the vault, another the document, at the same time: one of them is refused."""
    async with nodes(where, clock, "v") as (one, two):
        for number in range(rounds(600, 3000)):
            uid = f"twin{number}"
            outcomes = await asyncio.gather(one.vault(uid), two.create(uid), return_exceptions=True)
            assert Counter(isinstance(outcome, Refusal) for outcome in outcomes) == {True: 1, False: 1}, outcomes


async def a_session_that_has_ended_writes_nothing(where: str, clock: Clock) -> None:
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
