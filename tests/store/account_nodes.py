"""Two nodes that write in many accounts, and what their database must hold afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from strongroom import store, wire
from strongroom.actions import documents, vaults
from strongroom.model import AccountLimits, Actor
from strongroom.rules import octets, row_bytes
from strongroom.store import Database, open_database
from tests.kit.clock import Clock
from tests.kit.servers.populated_database import rows_of

OWNERS = [f"u{number}" for number in range(10)]


class Node:
    """A node."""

    def __init__(self, where: str, clock: Clock) -> None:
        self.db: Database = open_database(where, clock)

    async def create(self, owner: str, uid: str, vault: str = "v", **how: Any) -> Any:
        limits = how.pop("limits", AccountLimits())
        actor = Actor(owner, keyring_version=how.pop("keyring_version", None))
        body = wire.requests.CreateDocument(**{"collection": "c", "data": "AAAA", "uid": uid, **how})
        return await self.db.write_for(owner, None, documents.create, actor, limits, vault, body)

    async def vault(self, owner: str, uid: str) -> Any:
        body = wire.requests.CreateVault(name=f"name of {uid}", uid=uid)
        return await self.db.write_for(owner, None, vaults.create, Actor(owner), AccountLimits(), body)

    @property
    def commits(self) -> int:
        """How many there were."""
        return sum(self.db.commit_metrics.writes.counts)


@asynccontextmanager
async def nodes(where: str, clock: Clock) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes, and accounts with a vault each."""
    one, two = Node(where, clock), Node(where, clock)
    try:
        for owner in OWNERS:
            await one.db.write(store.accounts.insert, owner, f"{owner}@example.com", "hash")
            await one.vault(owner, "v")
        yield one, two
    finally:
        await one.db.close()
        await two.db.close()


async def require_booked(where: str, expected: dict[str, set[str]]) -> None:
    """These documents are there, what is booked is what is there, and an account has every timestamp once."""
    tables = await rows_of(where)
    found: dict[str, set[str]] = {owner: set() for owner in expected}
    times: dict[str, list[int]] = {owner: [] for owner in expected}
    sizes: Counter[tuple[str, str]] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], int] = {}
    rows: Counter[tuple[str, str]] = Counter()
    for owner, uid, vault, collection, data, hmac, _, created_at, updated_at, *_ in tables["documents"]:
        found[owner].add(uid)
        times[owner].append(updated_at)
        assert created_at == updated_at
        sizes[owner, vault] += octets(data, hmac)
        counts[owner, vault] += 1
        rows[owner, vault] += row_bytes(collection)
        last[owner, vault] = max(updated_at, last.get((owner, vault), 0))
    assert found == expected
    for owner, uid, _, _, _, _, created_at, updated_at, count, size, _, in_rows in tables["vaults"]:
        assert (count, size, in_rows) == (counts[owner, uid], sizes[owner, uid], rows[owner, uid])
        assert updated_at == last.get((owner, uid), created_at)
    for owner, clock, count, size, _, in_rows in tables["ledgers"]:
        assert (count, size, in_rows) == (
            sum(number for (whose, _), number in counts.items() if whose == owner),
            sum(number for (whose, _), number in sizes.items() if whose == owner),
            sum(number for (whose, _), number in rows.items() if whose == owner),
        )
        assert len(set(times[owner])) == len(times[owner])
        assert clock >= max(times[owner], default=0)
