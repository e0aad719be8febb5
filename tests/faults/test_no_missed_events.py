"""No follower misses a change or sees one twice: by list, long poll or events, cut off again and again."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.faults.concurrent_clients import Writer, client
from tests.kit.asynchronous import async_test
from tests.kit.network.event_stream import Parser
from tests.kit.people.settled import settle_in
from tests.kit.samples import rounds
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server

Change = tuple[str, int]
CHANCE = random.Random()  # noqa: S311 - whatever happens, it must hold


class Goal:
    """Where the reading ends: the vault's time after the last write."""

    def __init__(self) -> None:
        self._moment: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def set(self, moment: int) -> None:
        self._moment.set_result(moment)

    def is_reached(self, cursor: int) -> bool:
        return self._moment.done() and cursor >= self._moment.result()

    async def is_set(self) -> None:
        await asyncio.wait([self._moment])


class Reader:
    """Keeps every change that it is shown, and the place from which it goes on."""

    def __init__(self, address: Callable[[], str], token: str, vault: str, goal: Goal) -> None:
        self.seen: list[Change] = []
        self.cursor = 0
        self.breaks = 0
        self._address, self._token, self._vault, self._goal = address, token, vault, goal

    async def run(self) -> None:
        """Read until the goal; a connection that is lost is made anew."""
        while not self._goal.is_reached(self.cursor):
            try:
                async with client(self._address(), self._token) as http:
                    await self._read_or_arrive(http)
            except (httpx2.TransportError, httpx2.StreamError):
                await asyncio.sleep(0.02)
            self.breaks += 1

    async def _read_or_arrive(self, http: httpx2.AsyncClient) -> None:
        """Read on; a reader that has everything when the goal is set waits for nothing more."""
        reading, goal = asyncio.create_task(self.read(http)), asyncio.create_task(self._goal.is_set())
        try:
            await asyncio.wait([reading, goal], return_when=asyncio.FIRST_COMPLETED)
            if not self._goal.is_reached(self.cursor):
                await reading
        finally:
            reading.cancel()
            goal.cancel()
            ended = await asyncio.gather(reading, goal, return_exceptions=True)
        if isinstance(ended[0], Exception):
            raise ended[0]

    async def read(self, http: httpx2.AsyncClient) -> None:
        """Read on for a while."""
        raise NotImplementedError


class ByList(Reader):
    """Asks again and again."""

    wait = ""

    async def read(self, http: httpx2.AsyncClient) -> None:
        limit = CHANCE.choice(("", "&limit=7"))
        answer = await http.get(f"/vaults/{self._vault}/documents?since={self.cursor}{limit}{self.wait}")
        if answer.status_code == 503:
            return
        page = answer.json()
        self.seen += [(row["uid"], row["version"]) for row in page["documents"]]
        self.cursor = page["next"]


class ByWaiting(ByList):
    """Asks, and is answered when there is something."""

    wait = "&wait=1"


class ByEvents(Reader):
    """Follows the vault, or (in a subclass) the account; leaves at any moment, and comes back by its last id."""

    path = "/vaults/{vault}/events"

    async def read(self, http: httpx2.AsyncClient) -> None:
        parser, enough = Parser(), CHANCE.choice((1, 5, 50, 500))
        headers = {"last-event-id": str(self.cursor)}
        async with http.stream("GET", self.path.format(vault=self._vault), headers=headers) as answer:
            if answer.status_code == 503:
                return
            assert answer.status_code == 200
            async for piece in answer.aiter_raw():
                for event in parser.feed(piece):
                    if event.name == "document":
                        assert event.id is not None
                        assert event.id > self.cursor, "out of order"
                        self.cursor = event.id
                        self.seen.append((event.data["uid"], event.data["version"]))
                        enough -= 1
                if enough <= 0 or self._goal.is_reached(self.cursor):
                    return


class ByAccount(ByEvents):
    """Follows all vaults."""

    path = "/events"


KINDS = (ByList, ByWaiting, ByEvents, ByAccount)


def report(what: str, readers: list[Reader], written: dict[str, int]) -> None:
    """No change twice; of each document the latest, and followers of events get each one."""
    every = {(uid, number) for uid, version in written.items() for number in range(1, version + 1)}
    for reader in readers:
        assert len(reader.seen) == len(set(reader.seen)), f"{type(reader).__name__} saw a change twice"
        latest = dict(sorted(reader.seen, key=lambda change: change[1]))
        lost = {uid: version for uid, version in written.items() if latest.get(uid, 0) < version}
        assert lost == {}, f"{type(reader).__name__} missed {len(lost)}"
        if isinstance(reader, ByEvents):
            assert every <= set(reader.seen), f"{len(every - set(reader.seen))} changes were not told"
    cuts = sum(reader.breaks for reader in readers if isinstance(reader, ByEvents))
    print(f"{what}: {len(every)} changes, {len(readers)} readers, {cuts} cuts, missed 0, repeated 0")  # noqa: T201


async def finished(goal: Goal, url: str, token: str, vault: str, reading: list[asyncio.Task[None]]) -> None:
    """Set the goal, and wait for everybody to reach it."""
    async with client(url, token) as http:
        listed = (await http.get(f"/vaults/{vault}/documents?since=0")).json()
    goal.set(listed["next"])
    async with asyncio.timeout(60):
        await asyncio.gather(*reading)


@pytest.mark.parametrize("nodes", ["one file", "a file with two processes", "two nodes on PostgreSQL"])
@async_test
async def test_none_is_missed_and_none_comes_twice(tmp_path: Path, nodes: str) -> None:
    """Sixteen writers, eight readers, two of each kind."""
    settings = {"JWT_ACCESS_EXPIRY": "1d", "HISTORY_VERSIONS": "20"}
    if "PostgreSQL" in nodes:
        settings["DATABASE_URL"] = postgres().fresh()
    with ExitStack() as stack:
        servers = []
        for name in ("a", "b")[: 1 if nodes == "one file" else 2]:
            server = Server(tmp_path / name, **settings)
            if "DATABASE_URL" not in settings:
                server.settings.pop("DATABASE_URL", None)
                server.settings["DB_PATH"] = str(tmp_path / "vault.db")
            stack.callback(server.abandon)
            servers.append(server.start())
        _, token, vault = settle_in(servers[0])
        urls = [f"http://127.0.0.1:{server.port}" for server in servers]
        end, goal = time.monotonic() + rounds(2, 60, "SECONDS"), Goal()
        writers = [Writer(urls[n % len(urls)], token, vault) for n in range(16)]
        readers: list[Reader] = [
            KINDS[n % 4](lambda n=n: urls[n // 4 % len(urls)], token, vault, goal)  # type: ignore[misc]
            for n in range(8)
        ]
        reading = [asyncio.create_task(reader.run()) for reader in readers]
        await asyncio.gather(*(writer.run(lambda: time.monotonic() < end) for writer in writers))
        await finished(goal, urls[0], token, vault, reading)
        assert not any(writer.refused for writer in writers)
        report(nodes, readers, {uid: version for one in writers for uid, version in one.acknowledged.items()})
        for server in servers:
            assert server.end() == 0
            assert '"event":"fault"' not in server.log()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@async_test
async def test_a_killed_server_loses_no_event(tmp_path: Path, engine: str) -> None:
    """SIGKILL under writers and readers, and a start on the same port: all that was acknowledged is told, once."""
    server = Server(tmp_path, JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    if engine == "postgres":
        server.settings["DATABASE_URL"] = postgres().fresh()
    try:
        server.start()
        server.settings["PORT"] = str(server.port)
        url, token, vault = settle_in(server)
        goal, alive = Goal(), True
        writers = [Writer(url, token, vault) for _ in range(16)]
        readers: list[Reader] = [KINDS[n % 4](lambda: url, token, vault, goal) for n in range(8)]
        reading = [asyncio.create_task(reader.run()) for reader in readers]
        writing = [asyncio.create_task(writer.run(lambda: alive)) for writer in writers]
        for _ in range(rounds(1, 20)):
            before = sum(len(writer.acknowledged) for writer in writers)
            async with asyncio.timeout(60):
                while sum(len(writer.acknowledged) for writer in writers) < before + 50:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            server.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(server.process.wait)
            await asyncio.to_thread(server.start)
        alive = False
        await asyncio.gather(*writing)
        await finished(goal, url, token, vault, reading)
        report(
            f"killed on {engine}",
            readers,
            {uid: version for one in writers for uid, version in one.acknowledged.items()},
        )
        assert server.end() == 0
    finally:
        server.abandon()
