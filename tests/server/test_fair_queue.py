"""The queue of password work: addresses take turns, accounts take turns, and each has a share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from strongroom.errors import Unavailable
from strongroom.server import fair_queue, passwords
from strongroom.server.fair_queue import FairQueue, Place
from strongroom.server.passwords import MOST_WAITING, WAITING_PER_ACCOUNT, WAITING_PER_ADDRESS, PasswordPool
from tests.kit.asynchronous import async_test
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of
from tests.kit.waiting import until_async


def queue_of(*places: str) -> FairQueue[str]:
    """A queue with work at places like `a1`: address a, account 1."""
    queue: FairQueue[str] = FairQueue(per_account=100)
    for number, place in enumerate(places):
        queue.add(Place(place[0], place[1:]), f"{place}.{number}")
    return queue


def order(queue: FairQueue[str]) -> str:
    """The places in the order of their turns."""
    found = []
    while (work := queue.next()) is not None:
        found.append(work.partition(".")[0])
    return " ".join(found)


@pytest.mark.parametrize(
    ("arrived", "served"),
    [
        ("a1 a1 a1 b2 c3", "a1 b2 c3 a1 a1"),
        ("a1 a1 b2 b2", "a1 b2 a1 b2"),
        ("a1 a1 a1 a2", "a1 a2 a1 a1"),
        ("a1 b1 a1 b1", "a1 b1 a1 b1"),
    ],
)
def test_addresses_take_turns_and_then_accounts(arrived: str, served: str) -> None:
    """However much one of them has sent, and in whatever order."""
    queue = queue_of(*arrived.split())
    assert len(queue) == len(arrived.split())
    assert order(queue) == served
    assert len(queue) == 0


def test_who_was_not_served_for_the_longest_time_is_next() -> None:
    """Also an address that had a turn and nothing to do since; one that always has something comes after it."""
    queue = queue_of("a1", "b2", "b2", "b2")
    assert [queue.next(), queue.next(), queue.next()] == ["a1.0", "b2.1", "b2.2"]
    queue.add(Place("a", "1"), "a1 again")
    assert queue.next() == "a1 again"


def test_the_work_that_is_taken_out_is_the_newest_of_the_greediest() -> None:
    """Of the address that has the most, and of the account that has the most there."""
    queue = queue_of("a1", "b2", "b3", "b3", "c4")
    assert (queue.longest, queue.remove_longest(), queue.count("b")) == (3, "b3.3", 2)


def test_nothing_is_kept_of_who_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """But the last turns of some addresses."""
    monkeypatch.setattr(fair_queue, "REMEMBERED", 2)
    queue = queue_of("a1", "b2", "c3", "c3")
    queue.discard(Place("c", "3"), "c3.3")
    queue.discard(Place("c", "3"), "c3.3")
    assert order(queue) == "a1 b2 c3"
    assert (queue._lines, queue._of_address, queue._of_account) == ({}, {}, {})
    assert list(queue._turns) == ["b", "c"]


class Blocked:
    """A pool whose threads work only when they are let."""

    def __init__(self, pool: PasswordPool) -> None:
        self.pool = pool
        self.tasks: list[asyncio.Task[str]] = []
        self.done: list[str] = []
        self._go = threading.Event()

    async def add(self, address: str, account: str, count: int = 1) -> None:
        """Work at this place; each waits, or is refused."""
        self.tasks += [asyncio.create_task(self._one(address, account)) for _ in range(count)]
        await asyncio.sleep(0)

    async def _one(self, address: str, account: str) -> str:
        try:
            await self.pool.run(Place(address, account), lambda _: self._go.wait(60), "")
        except Unavailable:
            return "refused"
        self.done.append(address)
        return "done"

    def go(self) -> None:
        """Let the threads work."""
        self._go.set()


@asynccontextmanager
async def blocked_pool(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Blocked]:
    """A server's pool whose threads are taken by another address."""
    monkeypatch.setattr(passwords, "REFUSAL_SECONDS", 0)
    async with open_server() as server:
        blocked = Blocked(context_of(server.app).passwords)
        await blocked.add("busy", "busy", 2)
        try:
            yield blocked
        finally:
            blocked.go()
            await asyncio.gather(*blocked.tasks)


@async_test
async def test_an_address_has_a_share_and_others_a_place_beside_it(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beyond the share is refused at once; whoever comes next from elsewhere is served before all of it."""
    async with blocked_pool(open_server, monkeypatch) as blocked:
        for account in range(WAITING_PER_ADDRESS + 5):
            await blocked.add("greedy", str(account))
        await until_async(lambda: sum(task.done() for task in blocked.tasks) == 5)
        await blocked.add("honest", "her own")
        blocked.go()
        ends = await asyncio.gather(*blocked.tasks)
        assert ends.count("refused") == 5
        assert ends[-1] == "done"
        assert blocked.done.index("honest") <= 4, (
            "after those that ran, and a turn of the other address for each thread"
        )


@async_test
async def test_where_all_places_are_taken_the_greediest_loses_one(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen addresses fill the queue; the next sixteen addresses still get a place each."""
    async with blocked_pool(open_server, monkeypatch) as blocked:
        for number in range(MOST_WAITING):
            await blocked.add(f"greedy {number % 16}", str(number))
        refused_first = 2  # those that run take places, too
        await until_async(lambda: sum(task.done() for task in blocked.tasks) == refused_first)
        for number in range(16):
            await blocked.add(f"honest {number}", f"honest {number}")
        await until_async(lambda: sum(task.done() for task in blocked.tasks) == refused_first + 16)
        assert blocked.pool.waiting == MOST_WAITING
        await blocked.add("greedy 0", "more")
        blocked.go()
        ends = await asyncio.gather(*blocked.tasks)
        assert ends[-17:] == [*["done"] * 16, "refused"]


@async_test
async def test_an_account_has_a_share_and_one_place_at_each_address(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nobody who only knows an email keeps its owner out."""
    async with blocked_pool(open_server, monkeypatch) as blocked:
        for number in range(WAITING_PER_ACCOUNT):
            await blocked.add(f"guesser {number // 8}", "ann")
        await blocked.add("guesser 0", "ann")
        await blocked.add("ann's own", "ann")
        blocked.go()
        assert (await asyncio.gather(*blocked.tasks))[-2:] == ["refused", "done"]


@async_test
async def test_work_that_nobody_waits_for_gives_its_place_back(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has gone leaves no work behind that was not begun."""
    async with blocked_pool(open_server, monkeypatch) as blocked:
        await blocked.add("gone", "gone", 3)
        for task in blocked.tasks[-3:]:
            task.cancel()
        await asyncio.gather(*blocked.tasks[-3:], return_exceptions=True)
        del blocked.tasks[-3:]
        assert blocked.pool.waiting == 2
