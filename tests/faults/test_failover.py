"""The primary dies, the replica takes its place, and two nodes behind a proxy go on: nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from pathlib import Path
from typing import Any

import httpx2

from tests.faults.concurrent_clients import Writer, lost, stored
from tests.faults.proxy import Balancer
from tests.kit.asynchronous import async_test
from tests.kit.people.settled import settle_in
from tests.kit.samples import rounds
from tests.kit.servers.postgres_replication import Pair
from tests.kit.servers.process import Server
from tests.kit.waiting import until_async

WRITERS = 16


class Timed(Writer):
    """A writer that records when each request began and ended, and when each write was acknowledged."""

    def __init__(self, *where: str) -> None:
        super().__init__(*where)
        self.spans: list[tuple[float, float]] = []
        self.heard: list[float] = []

    async def _sent(self, http: httpx2.AsyncClient, *request: Any) -> bool:
        began = time.monotonic()
        try:
            done = await super()._sent(http, *request)
        finally:
            self.spans.append((began, time.monotonic()))
        if done:
            self.heard.append(time.monotonic())
        return done


@async_test
async def test_the_replica_takes_over_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """Again and again, each becoming the other; at last one of the nodes dies too, and the other serves on."""
    pair = await asyncio.to_thread(Pair, "strongroom")
    nodes = [Server(tmp_path / name, JWT_ACCESS_EXPIRY="1d", DATABASE_URL=pair.url) for name in ("a", "b")]
    try:
        for node in nodes:
            node.start()
        _, token, vault = settle_in(nodes[0])
        async with Balancer([node.port for node in nodes]) as proxy:
            await until_async(lambda: len(proxy.ready) == 2, "both nodes to be ready")
            url = f"http://127.0.0.1:{proxy.port}"
            acknowledged: dict[str, int] = {}
            stalls, after = [], []
            for each in range(rounds(1, 10, "KILLS")):
                if each:
                    await asyncio.to_thread(pair.follow)
                await until_async(lambda: pair.waits, "the replica to be waited for")
                writers = [Timed(url, token, vault) for _ in range(WRITERS)]
                killed, promoted = await _fail_over(pair, proxy, writers)
                stalls.append(max(later - one for one, later in _pairs(writers)))
                after.append(
                    max(end - max(began, promoted) for w in writers for began, end in w.spans if end > promoted)
                )
                for writer in writers:
                    acknowledged.update(writer.acknowledged)
                assert lost(acknowledged, await stored(url, token, vault)) == {}
                usual = max(end - began for w in writers for began, end in w.spans if end < killed)
                assert after[-1] < max(promoted - killed, 20 * usual)  # a request that hangs takes far longer than both
            print(  # noqa: T201
                f"failovers {len(stalls)}, acknowledged {len(acknowledged)}, lost 0, "
                f"longest stall {max(stalls):.1f} s, longest request after the promotion {max(after):.1f} s"
            )
            nodes[0].end(signal.SIGKILL)
            await until_async(lambda: proxy.ready == {nodes[1].port}, "the proxy to notice")
            assert lost(acknowledged, await stored(url, token, vault)) == {}
    finally:
        for node in nodes:
            node.abandon()
        await asyncio.to_thread(pair.abandon)


async def _fail_over(pair: Pair, proxy: Balancer, writers: list[Timed]) -> tuple[float, float]:
    """Write, lose the primary, notice, promote, write on; when it was lost and when the promotion was done."""
    alive = True
    work = asyncio.gather(*(writer.run(lambda: alive) for writer in writers))
    await until_async(lambda: sum(len(writer.heard) for writer in writers) > 100, "some writes")
    killed = time.monotonic()
    await asyncio.to_thread(pair.kill)
    await until_async(lambda: not proxy.ready, "the nodes to say that they are not ready")
    await asyncio.to_thread(pair.promote)
    promoted = time.monotonic()
    await until_async(lambda: all(w.heard and w.heard[-1] > promoted for w in writers), "everybody to write again")
    alive = False
    await work
    await until_async(lambda: len(proxy.ready) == 2, "the proxy to notice")
    return killed, promoted


def _pairs(writers: list[Timed]) -> list[tuple[float, float]]:
    """Each moment at which a write was acknowledged, with the next."""
    heard = sorted(moment for writer in writers for moment in writer.heard)
    return list(itertools.pairwise(heard))
