"""Long responses give way: one step in each round of the event loop, and accounts take turns."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.server import turns
from strongroom.server.turns import Steps, Turns
from tests.kit.asynchronous import async_test


@async_test
async def test_accounts_take_turns_one_in_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many responses one of them has; a short request is served between any two steps."""
    monkeypatch.setattr(turns, "STEP_SECONDS", 0.0)
    shared, done, rounds = Turns(), [], 0
    finished = asyncio.Event()

    async def respond(owner: str, count: int) -> None:
        steps = Steps(shared, owner)
        for _ in range(count):
            await steps.give_way()
            done.append((owner, rounds))

    async def others() -> None:
        nonlocal rounds
        while not finished.is_set():
            await asyncio.sleep(0)
            rounds += 1

    beside = asyncio.create_task(others())
    await asyncio.gather(*(respond("greedy", 5) for _ in range(4)), respond("ann", 5), respond("bob", 5))
    finished.set()
    await beside
    assert [owner for owner, _ in done[:15]] == ["greedy", "ann", "bob"] * 5
    assert len({number for _, number in done}) == len(done) == 30, "two steps in one round"
    assert not shared._scheduled


@async_test
async def test_a_short_response_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one whose client has gone leaves no turn behind."""
    monkeypatch.setattr(turns, "STEP_SECONDS", 1_000.0)
    shared = Turns()
    await Steps(shared, "ann").give_way()
    assert not shared._scheduled
    waiting = [asyncio.create_task(shared.wait("ann")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[1].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert waiting[2].exception() is None
    assert len(shared._queue) == 0
