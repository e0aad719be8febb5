"""Requests that arrive together are handled together; a batch that takes long gives way, and accounts take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from strongroom.server.transport import batching
from strongroom.server.transport.batching import RequestBatcher
from tests.kit.asynchronous import async_test
from tests.kit.waiting import until_async


class Sent:
    """A request whose steps are noted."""

    def __init__(self, sender: str, steps: list[tuple[str, str]], batcher: RequestBatcher) -> None:
        self.sender = sender
        self._steps = steps
        self._batcher = batcher

    def begin(self) -> None:
        self._steps.append(("begin", self.sender))
        self._batcher.complete(self, 100)

    def send(self) -> None:
        self._steps.append(("send", self.sender))

    def record(self) -> None:
        pass

    def break_off(self, error: Exception) -> None:
        raise error


def submitter(batcher: RequestBatcher, steps: list[tuple[str, str]]) -> Callable[[str], None]:
    """Submits a request of a sender."""
    return lambda sender: batcher.submit(Sent(sender, steps, batcher))


@async_test
async def test_what_arrives_together_is_handled_before_anything_is_sent() -> None:
    """As long as it is quick."""
    steps: list[tuple[str, str]] = []
    submit = submitter(RequestBatcher(asyncio.get_running_loop()), steps)
    for sender in ("ann", "bob", "ann"):
        submit(sender)
    await until_async(lambda: len(steps) == 6)
    assert [kind for kind, _ in steps] == ["begin"] * 3 + ["send"] * 3


@async_test
async def test_a_batch_that_takes_long_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request is handled in each round; somebody who comes later waits for two of another account at the most."""
    monkeypatch.setattr(batching, "STEP_SECONDS", 0.0)
    steps: list[tuple[str, str]] = []
    batcher = RequestBatcher(asyncio.get_running_loop())
    submit = submitter(batcher, steps)
    for _ in range(64):
        submit("greedy")
    while len(steps) < 2:  # noqa: ASYNC110 - it is the rounds of the event loop that count
        await asyncio.sleep(0)
    assert steps == [("begin", "greedy"), ("send", "greedy")], "its response does not wait for the others"
    for sender in ("ann", "bob"):
        submit(sender)
    await until_async(lambda: len(steps) == 2 * 66)
    begun = [sender for kind, sender in steps if kind == "begin"]
    assert {begun.index("ann"), begun.index("bob")} <= {1, 2, 3}
    assert begun.count("greedy") == 64
    submit("ann")
    await until_async(lambda: steps[-1] == ("send", "ann"))
