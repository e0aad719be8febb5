"""Long writes of one account do not keep others waiting: they wait before PostgreSQL's pool, or a file's writer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from strongroom.errors import Unavailable
from strongroom.server import limits
from strongroom.server.limits import LongWrites
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good
from tests.kit.people.person import Person
from tests.kit.servers.in_process import OpenServer
from tests.kit.waiting import until_async

POOL = 4
OPERATIONS = [{"op": "create", "collection": "c", "data": "AAAA"}] * 100  # more than share a transaction with others


@asynccontextmanager
async def locked(where: str, person: Person) -> Any:
    """Another program holds the row that every write of the account waits for."""
    other = await asyncpg.connect(where)
    try:
        async with other.transaction():
            await other.execute("SELECT 1 FROM ledgers WHERE user_id = $1 FOR UPDATE", person.id)
            yield
    finally:
        await other.close()


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@async_test
async def test_an_account_that_waits_for_itself_leaves_the_pool_to_others(open_server: OpenServer, where: str) -> None:
    """Twenty long writes wait for their row with one connection, and another account reads and writes."""
    async with open_server(db_pool=POOL) as server:
        greedy, honest = await server.person(), await server.person()
        vault, own = await greedy.vault(), await honest.vault()
        await greedy.document(vault)
        path = f"/vaults/{vault['uid']}/batch"
        async with locked(where, greedy):
            writes = [asyncio.create_task(greedy("POST", path, {"operations": OPERATIONS})) for _ in range(20)]
            await asyncio.sleep(0)
            for _ in range(5):
                await honest.document(own)
                good(await honest("GET", f"/vaults/{own['uid']}/documents"))
                batch = {"operations": OPERATIONS}
                good(await honest("POST", f"/vaults/{own['uid']}/batch", batch))
            assert not any(write.done() for write in writes)
        assert {answer.status_code for answer in await asyncio.gather(*writes)} == {200}
        assert good(await greedy("GET", "/auth/me"))["usage"]["documents"] == 2_001


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_a_short_write_on_a_file_waits_for_one_long_write(open_server: OpenServer) -> None:
    """However many of another account were there before it."""
    async with open_server() as server:
        greedy, honest = await server.person(), await server.person()
        vault, own = await greedy.vault(), await honest.vault()
        path = f"/vaults/{vault['uid']}/batch"
        writes = [asyncio.create_task(greedy("POST", path, {"operations": OPERATIONS})) for _ in range(20)]
        await until_async(lambda: any(write.done() for write in writes))
        before = sum(write.done() for write in writes)
        await honest.document(own)
        assert sum(write.done() for write in writes) <= before + 3
        assert {answer.status_code for answer in await asyncio.gather(*writes)} == {200}


class Counted:
    """Long writes that are counted while they run."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[str] = []
        self.go = asyncio.Event()

    def write(self, owner: str) -> Callable[[], Awaitable[str]]:
        """A write of this account, which takes until it is let go."""

        async def run() -> str:
            self.order.append(owner)
            for name in (owner, "all"):
                self.running[name] += 1
                self.most[name] = max(self.most[name], self.running[name])
            await self.go.wait()
            await asyncio.sleep(0)
            for name in (owner, "all"):
                self.running[name] -= 1
            return owner

        return run


@async_test
async def test_one_of_each_account_runs_and_half_of_the_pool_at_the_most() -> None:
    """In turns of the accounts; nothing is left of who has gone."""
    queue, counted = LongWrites(2), Counted()
    owners = ["greedy"] * 6 + ["ann", "bob"]
    tasks = [asyncio.create_task(queue.run(owner, counted.write(owner))) for owner in owners]
    await until_async(lambda: counted.running["all"] == 2)
    tasks[1].cancel()
    counted.go.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [end for end in ends if isinstance(end, str)] == ["greedy"] * 5 + ["ann", "bob"]
    assert (counted.most["greedy"], counted.most["all"]) == (1, 2)
    assert {"ann", "bob"} <= set(counted.order[:4]), "they wait for a turn, not for all of another account"
    assert (queue._accounts._inside, queue._accounts._waiting) == ({}, {})


@async_test
async def test_a_long_write_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, and leaves its place."""
    monkeypatch.setattr(limits, "LONG_WRITE_SECONDS", 0.05)
    queue, counted = LongWrites(1), Counted()
    first = asyncio.create_task(queue.run("ann", counted.write("ann")))
    await until_async(lambda: counted.running["ann"] == 1)
    for owner in ("ann", "bob"):
        with pytest.raises(Unavailable):
            await queue.run(owner, counted.write(owner))
    counted.go.set()
    assert await first == "ann"
    assert await queue.run("bob", counted.write("bob")) == "bob"
