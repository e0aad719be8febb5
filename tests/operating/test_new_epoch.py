"""`strongroom db new-epoch`: whoever brings a database back by other means than a restore can tell the clients."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from tests.conftest import Clock
from tests.contract.harness import Server
from tests.support.command_line import place_of, strongroom
from tests.support.populated_database import Served, copied_rows_of, live_in


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
        async with Served(where, clock) as house:
            answer: str = (await house.http.get("/health")).json()["epoch"]
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
