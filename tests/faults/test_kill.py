"""A 2xx is on disk: kill the server, or the database under it, and check."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

from tests.faults.concurrent_clients import SHORT_ANSWER, Writer, client, lost, stored
from tests.kit.asynchronous import async_test
from tests.kit.people.settled import settle_in
from tests.kit.programs import processes
from tests.kit.samples import rounds
from tests.kit.servers.postgres import Postgres
from tests.kit.servers.process import Server
from tests.kit.waiting import until_async

WRITERS = 64


@async_test
async def test_a_killed_server_has_lost_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """SIGKILL under 64 writers, again and again on one file."""
    server = Server(tmp_path, JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    server.start()
    acknowledged: dict[str, int] = {}
    _, token, vault = settle_in(server)
    try:
        for _ in range(rounds(4, 100, "KILLS")):
            url = f"http://127.0.0.1:{server.port}"
            writers = [Writer(url, token, vault) for _ in range(WRITERS)]
            alive = True
            work = asyncio.gather(*(writer.run(lambda: alive) for writer in writers))  # noqa: B023
            wanted = random.randint(50, rounds(200, 1_000))  # noqa: S311
            while sum(len(writer.acknowledged) for writer in writers) < wanted:
                assert server.process.poll() is None
                await asyncio.sleep(0.01)
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            alive = False
            await work
            for writer in writers:
                acknowledged.update(writer.acknowledged)
            server.start()
            held = await stored(f"http://127.0.0.1:{server.port}", token, vault)
            assert lost(acknowledged, held) == {}
        assert len(acknowledged) > 100
        assert server.end() == 0
        connection = apsw.Connection(str(tmp_path / "vault.db"))
        assert connection.pragma("integrity_check") == "ok"
        connection.close()
        print(f"acknowledged {len(acknowledged)}, lost 0")  # noqa: T201
    finally:
        server.abandon()


@async_test
async def test_a_killed_postgres_has_lost_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """`pg_ctl -m immediate` under writers, eight in one account and eight in accounts of their own.

    Each request is answered or refused in time, and every 2xx is there.
    """
    postgres = Postgres()
    server = Server(tmp_path, JWT_ACCESS_EXPIRY="1d", DATABASE_URL=postgres.fresh()).start()
    accounts = [settle_in(server, f"{name}@b.c") for name in "abcdefghi"]
    owners = accounts[:1] * 7 + accounts
    writers = [Writer(*account) for account in owners]
    alive = True
    work = asyncio.gather(*(writer.run(lambda: alive) for writer in writers))
    try:
        for _ in range(rounds(2, 20, "KILLS")):
            await asyncio.sleep(random.uniform(0.3, 0.8))  # noqa: S311
            await asyncio.to_thread(postgres.crash)
            await asyncio.sleep(random.uniform(0.0, 0.5))  # noqa: S311
            await asyncio.to_thread(postgres.restart)
            before = sum(len(writer.acknowledged) for writer in writers)
            deadline = time.monotonic() + 20
            while sum(len(writer.acknowledged) for writer in writers) <= before + 50:
                assert time.monotonic() < deadline, "writes did not come back after the database did"
                await asyncio.sleep(0.02)
        alive = False
        await work
        acknowledged: dict[str, int] = {}
        for account in accounts:
            own = [writer.acknowledged for writer, owner in zip(writers, owners, strict=True) if owner == account]
            known = {uid: version for one in own for uid, version in one.items()}
            assert lost(known, await stored(*account)) == {}
            acknowledged |= known
        assert {status for writer in writers for status in writer.refused} <= {409, 503}
        assert max(writer.slowest for writer in writers) < SHORT_ANSWER
        refused = sum(sum(writer.refused.values()) for writer in writers)
        slowest = max(writer.slowest for writer in writers)
        print(f"acknowledged {len(acknowledged)}, lost 0, refused {refused}, slowest {slowest:.2f} s")  # noqa: T201
        assert server.end() == 0
    finally:
        alive = False
        server.abandon()
        postgres.stop()


class Batcher:
    """Sends batches, each in a collection of its own, and keeps which were acknowledged."""

    def __init__(self, url: str, token: str, vault: str, size: int) -> None:
        self.sent: dict[str, int] = {}
        self.acknowledged: set[str] = set()
        self._url, self._token, self._vault, self._size = url, token, vault, size

    async def run(self, go_on: Callable[[], bool]) -> None:
        """Send until told to stop; a lost connection is not an answer."""
        async with client(self._url, self._token) as http:
            while go_on():
                name = str(uuid.uuid4())
                create = {"op": "create", "collection": name, "data": "A" * 500}
                self.sent[name] = self._size
                with suppress(httpx2.TransportError):
                    path = f"/vaults/{self._vault}/batch"
                    answer = await http.post(path, json={"operations": [create] * self._size})
                    if answer.status_code == 200:
                        self.acknowledged.add(name)
                    else:
                        await asyncio.sleep(0.005)


async def counted(url: str, token: str, vault: str) -> Counter[str]:
    """How many documents each collection has, and whether the vault counts as many."""
    async with client(url, token) as http:
        documents = (await http.get(f"/vaults/{vault}/documents")).json()["documents"]
        shown = (await http.get(f"/vault/{vault}")).json()
        told = (await http.get("/auth/me")).json()["usage"]
    assert shown["documents"] == told["documents"] == len(documents)
    assert shown["bytes"] == told["bytes"] == 500 * len(documents)
    return Counter(document["collection"] for document in documents)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@async_test
async def test_of_a_batch_there_is_all_or_nothing(tmp_path: Path, engine: str) -> None:
    """SIGKILL among batches that share a commit and batches that have one to themselves; PostgreSQL is killed too."""
    postgres = Postgres() if engine == "postgres" else None
    server = Server(tmp_path, JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    if postgres is not None:
        server.settings["DATABASE_URL"] = postgres.fresh()
    server.start()
    _, token, vault = settle_in(server)
    batchers: list[Batcher] = []
    try:
        for _ in range(rounds(4, 60, "KILLS")):
            url = f"http://127.0.0.1:{server.port}"
            crowd = [Batcher(url, token, vault, size) for size in (5, 30, 200, 300)]
            batchers += crowd
            alive = True
            work = asyncio.gather(*(batcher.run(lambda: alive) for batcher in crowd))  # noqa: B023
            while sum(len(batcher.acknowledged) for batcher in crowd) < 8:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await asyncio.sleep(random.uniform(0.0, 0.2))  # noqa: S311
            if postgres is not None:
                await asyncio.to_thread(postgres.crash)
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            alive = False
            await work
            if postgres is not None:
                await asyncio.to_thread(postgres.restart)
            server.start()
            held = await counted(f"http://127.0.0.1:{server.port}", token, vault)
            for batcher in batchers:
                for name, size in batcher.sent.items():
                    assert held[name] == size or (held[name] == 0 and name not in batcher.acknowledged)
        sent = sum(len(batcher.sent) for batcher in batchers)
        kept = sum(len(batcher.acknowledged) for batcher in batchers)
        assert kept >= 8
        print(f"{engine}: {sent} batches sent, {kept} acknowledged and whole, the rest whole or not there")  # noqa: T201
        assert server.end() == 0
    finally:
        server.abandon()
        if postgres is not None:
            postgres.stop()


# A file system whose fsync fails from the moment that a certain file exists.
_FAILING_DISK = """
import os, sys, apsw
class File(apsw.VFSFile):
    def __init__(self, name, flags):
        super().__init__("unix", name, flags)
    def xSync(self, flags):
        if os.path.exists("fail"):
            raise apsw.IOError("the disk says no")
        super().xSync(flags)
class Disk(apsw.VFS):
    def __init__(self):
        super().__init__("failing", "unix", makedefault=True)
    def xOpen(self, name, flags):
        return File(name, flags)
disk = Disk()
from strongroom.cli import main
sys.exit(main(["serve"]))
"""


@async_test
async def test_a_failing_fsync_stops_the_process_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """After a failed fsync the state of the disk is unknown: no write is acknowledged, and the process ends."""
    server = Server(tmp_path)
    server.settings.pop("DATABASE_URL", None)
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        with (tmp_path / "stdout").open("wb") as out, (tmp_path / "stderr").open("wb") as err:
            command = [sys.executable, "-c", _FAILING_DISK]
            started.append(processes.Popen(command, cwd=tmp_path, env=_environment(server), stdout=out, stderr=err))
        server.process = started[-1]
        server.port = _until_listening(server)

    await asyncio.to_thread(start)
    url, token, vault = settle_in(server)
    writers = [Writer(url, token, vault) for _ in range(16)]
    try:
        work = asyncio.gather(*(writer.run(lambda: started[-1].poll() is None) for writer in writers))
        await until_async(lambda: any(writer.acknowledged for writer in writers), "an acknowledged write")
        (tmp_path / "fail").touch()
        await work
        assert started[-1].returncode == 1
        assert "stopping so that nothing is lost" in (tmp_path / "stderr").read_text()
        (tmp_path / "fail").unlink()
        acknowledged = {uid: version for writer in writers for uid, version in writer.acknowledged.items()}
        assert acknowledged
        server.start()
        assert lost(acknowledged, await stored(f"http://127.0.0.1:{server.port}", token, vault)) == {}
    finally:
        server.abandon()


def _environment(server: Server) -> dict[str, str]:
    import os

    return {**os.environ, **server.settings}


def _until_listening(server: Server) -> int:
    from tests.kit.waiting import until

    port: Any = until(server._listening, "the server's address")
    return int(port)
