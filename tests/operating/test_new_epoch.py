"""`strongroom db new-epoch`: whoever brings a database back by other means than a restore can tell the clients."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from pathlib import Path

import asyncpg

from tests.kit.clock import Clock
from tests.kit.programs.command_line import place_of, strongroom
from tests.kit.servers.populated_database import Served, copied_rows_of, live_in
from tests.kit.servers.process import Server
from tests.kit.waiting import until


def test_clients_see_another_epoch_and_nothing_else_changes(where: str, clock: Clock, tmp_path: Path) -> None:
    """It asks, it names the database, and both epochs; every row but the one of the epoch is as it was."""
    asyncio.run(live_in(where, clock))
    before = asyncio.run(copied_rows_of(where))
    refused = strongroom(tmp_path, "db", "new-epoch", **place_of(where))
    assert refused.returncode == 4
    assert asyncio.run(copied_rows_of(where)) == before
    done = strongroom(tmp_path, "db", "new-epoch", "--yes", "--json", **place_of(where))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    after = asyncio.run(copied_rows_of(where))
    assert told["epochBefore"] == before.pop("lineage")[0][1]
    assert told["epoch"] == after.pop("lineage")[0][1] != told["epochBefore"]
    assert after == before

    async def epoch() -> str:
        async with Served(where, clock) as served:
            answer: str = (await served.http.get("/health")).json()["epoch"]
            return answer

    assert asyncio.run(epoch()) == told["epoch"]


def test_it_is_refused_while_a_server_runs(where: str, tmp_path: Path) -> None:
    """A server knows its epoch since its start, and would go on telling the old one."""
    server = Server(tmp_path)
    server.settings = {
        **{k: v for k, v in server.settings.items() if k not in {"DB_PATH", "DATABASE_URL"}},
        **place_of(where),
    }
    server.start()
    try:
        done = strongroom(tmp_path, "db", "new-epoch", "--yes", **place_of(where))
        assert done.returncode == 2
        assert "stop" in done.stderr
        assert done.stderr.count("\n") == 1
    finally:
        assert server.end() == 0
    assert strongroom(tmp_path, "db", "new-epoch", "--yes", **place_of(where)).returncode == 0


def test_a_node_that_missed_it_serves_no_more(tmp_path: Path) -> None:
    """A node that had lost its connections meanwhile would tell clients the old epoch, and hide that rows are gone."""
    server = Server(tmp_path, "postgres").start()
    where = server.settings["DATABASE_URL"]
    try:
        with server.connect() as caller:
            assert caller.get("/ready").status_code == 200
            server.process.send_signal(signal.SIGSTOP)
            asyncio.run(_end_connections(where))
            done = strongroom(tmp_path, "db", "new-epoch", "--yes", **place_of(where))
            assert (done.returncode, done.stderr) == (0, "")
            server.process.send_signal(signal.SIGCONT)
            answer = caller.post("/auth/email/login", json={"email": "ann@example.org", "password": "not hers"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert "started again" in answer.json()["error"]["message"]
            until(lambda: caller.get("/ready").status_code == 503, "a node that is not ready")
        assert server.log().count("start it again") == 1
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.end()
    server.start()
    try:
        with server.connect() as caller:
            assert caller.get("/ready").status_code == 200
    finally:
        assert server.end() == 0


async def _end_connections(where: str) -> None:
    """End every connection to this database but the one that does it, and wait until they are gone."""
    others = (
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    connection = await asyncpg.connect(where)
    try:
        for _ in range(3):  # one that was being opened comes late
            await connection.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")
        assert await connection.fetchval(f"SELECT count(*) {others}") == 0
    finally:
        await connection.close()


def test_it_makes_no_database(tmp_path: Path) -> None:
    """A path where there is none is a sentence."""
    done = strongroom(tmp_path, "db", "new-epoch", "--yes", DB_PATH=str(tmp_path / "a" / "vault.db"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "a").exists()


def test_a_copy_of_the_file_that_is_put_back_rewinds_unseen_without_it(tmp_path: Path) -> None:
    """The reason for the command: the same epoch after a copy was put back by hand, another one after it."""
    server = Server(tmp_path)
    server.settings.pop("DATABASE_URL", None)

    def epoch() -> str:
        server.start()
        found: str = server.connect().get("/health").json()["epoch"]
        assert server.end() == 0
        return found

    first = epoch()
    shutil.copy(tmp_path / "vault.db", tmp_path / "copy")
    assert epoch() == first
    shutil.copy(tmp_path / "copy", tmp_path / "vault.db")
    assert epoch() == first
    assert strongroom(tmp_path, "db", "new-epoch", "--yes", DB_PATH=str(tmp_path / "vault.db")).returncode == 0
    assert epoch() != first
