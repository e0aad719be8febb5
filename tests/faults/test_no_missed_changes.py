"""The cursor has no hole: clients that poll `since` during concurrent writes see every change, each once."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.concurrent_clients import Writer, client
from tests.kit.asynchronous import async_test
from tests.kit.people.settled import settle_in
from tests.kit.samples import rounds
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server


class Reader:
    """Polls with the last `next` and keeps every change that it is shown."""

    def __init__(self, url: str, token: str, vault: str) -> None:
        self.seen: list[tuple[str, int]] = []
        self._url, self._token, self._vault = url, token, vault

    async def run(self, done: asyncio.Event) -> None:
        """Poll until all is written, and once more."""
        since = 0
        async with client(self._url, self._token) as http:
            while True:
                last_time = done.is_set()
                limit = "" if len(self.seen) % 2 else "&limit=7"
                page = (await http.get(f"/vaults/{self._vault}/documents?since={since}{limit}")).json()
                self.seen += [(row["uid"], row["version"]) for row in page["documents"]]
                since = page["next"]
                if last_time and not page["documents"]:
                    return


@pytest.mark.parametrize("nodes", ["one file", "a file with two processes", "two nodes on PostgreSQL"])
@async_test
async def test_no_change_is_missed_and_none_is_shown_twice(tmp_path: Path, nodes: str) -> None:
    """Sixteen writers, two readers, on each engine."""
    settings = {"JWT_ACCESS_EXPIRY": "1d"}
    if "PostgreSQL" in nodes:
        settings["DATABASE_URL"] = postgres().fresh()
    if "processes" in nodes:
        settings["WORKERS"] = "2"
    with ExitStack() as stack:
        servers = []
        for name in ("a", "b")[: 2 if "nodes" in nodes else 1]:
            server = Server(tmp_path / name, **settings)
            if "DATABASE_URL" not in settings:
                server.settings.pop("DATABASE_URL", None)
            stack.callback(server.abandon)
            servers.append(server.start())
        _, token, vault = settle_in(servers[0])
        urls = [f"http://127.0.0.1:{server.port}" for server in servers]
        end = time.monotonic() + rounds(2, 30, "SECONDS")
        writers = [Writer(urls[n % len(urls)], token, vault) for n in range(16)]
        readers = [Reader(urls[n % len(urls)], token, vault) for n in range(2)]
        done = asyncio.Event()
        reading = [asyncio.create_task(reader.run(done)) for reader in readers]
        await asyncio.gather(*(writer.run(lambda: time.monotonic() < end) for writer in writers))
        done.set()
        await asyncio.gather(*reading)
        written = {uid: version for writer in writers for uid, version in writer.acknowledged.items()}
        assert not any(writer.refused for writer in writers)
        for reader in readers:
            assert len(reader.seen) == len(set(reader.seen)), "a change was shown twice"
            latest = dict(sorted(reader.seen, key=lambda change: change[1]))
            assert latest == written
        print(f"{nodes}: {sum(written.values())} changes, missed 0, repeated 0")  # noqa: T201
