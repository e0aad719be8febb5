"""Which writes share a transaction on PostgreSQL: those of one owner, named by the request."""

from __future__ import annotations

import asyncio

from strongroom.model import Actor
from strongroom.store import Tx, open_database
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres


@async_test
async def test_only_writes_of_one_named_owner_share_a_transaction(clock: Clock) -> None:
    """The owner is a parameter; what the action takes as its arguments decides nothing."""
    db = open_database(postgres().fresh(), clock)
    transactions: list[Tx] = []

    async def write(tx: Tx, actor: Actor) -> str:
        transactions.append(tx)
        return actor.user_id

    def used() -> int:
        count = len(set(map(id, transactions)))
        transactions.clear()
        return count

    one = Actor("u")
    assert await asyncio.gather(*(db.write_for("u", None, write, one) for _ in range(5))) == ["u"] * 5
    assert used() == 1
    await asyncio.gather(*(db.write_for(f"u{number}", None, write, one) for number in range(5)))
    assert used() == 5
    await asyncio.gather(*(db.write(write, one) for _ in range(5)))
    assert used() == 5
    await db.close()
