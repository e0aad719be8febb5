"""PostgreSQL goes back to a moment before a mistake by its own log; docs/operating.md has the recipe with pgBackRest.

Here the same steps are played with PostgreSQL's own tools: a base backup, an archive of the log, a recovery up to a
moment, a new epoch, and strongroom serves it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.programs.command_line import strongroom
from tests.kit.servers.postgres import postgres
from tests.kit.servers.postgres_replication import Node
from tests.kit.servers.process import Server
from tests.kit.waiting import until


@pytest.fixture
def node() -> Iterator[Node]:
    """A PostgreSQL that archives its log."""
    node = Node("recovered")
    postgres().give(node.folder)
    node.run("initdb", "--auth=trust", "--username=postgres", "-D", str(node.data))
    archive = node.folder / "archive"
    archive.mkdir()
    postgres().give(archive)
    node.settle("archive_mode = on", f"archive_command = 'test ! -f {archive}/%f && cp %p {archive}/%f'")
    node.ctl("start")
    try:
        yield node
    finally:
        node.ctl("stop", "-m", "immediate")
        shutil.rmtree(node.folder, ignore_errors=True)


def test_what_was_deleted_is_there_again_and_clients_are_told(node: Node, tmp_path: Path) -> None:
    """Without the new epoch nothing would tell them; with it, what was there before the mistake is served under it."""
    node.sql("CREATE DATABASE vault")
    server = Server(tmp_path, DATABASE_URL=f"postgresql://postgres@127.0.0.1:{node.port}/vault", JWT_ACCESS_EXPIRY="1d")
    server.start()
    base = node.folder / "base"
    node.run("pg_basebackup", "-c", "fast", "-D", str(base), "-d", f"host=127.0.0.1 port={node.port} user=postgres")
    registered = server.connect().post(
        "/auth/email/register", json={"email": "ada@example.com", "password": "correct horse"}
    )
    token = registered.json()["accessToken"]
    http = server.connect(token)
    vault = http.post("/vault", json={"name": "precious"}).json()
    epoch = http.get("/health").json()["epoch"]
    moment = node.sql("SELECT clock_timestamp()")
    assert http.delete(f"/vault/{vault['uid']}").status_code == 200
    segment = node.sql("SELECT pg_walfile_name(pg_current_wal_lsn())")
    node.sql("SELECT pg_switch_wal()")
    until((node.folder / "archive" / segment).exists, "the log in the archive", 60)
    assert server.end() == 0

    node.ctl("stop", "-m", "fast")
    shutil.rmtree(node.data)
    base.rename(node.data)
    node.settle(
        f"restore_command = 'cp {node.folder}/archive/%f %p'",
        f"recovery_target_time = '{moment}'",
        "recovery_target_action = promote",
    )
    (node.data / "recovery.signal").touch()
    postgres().give(node.data / "recovery.signal")
    node.ctl("start")
    until(lambda: node.sql("SELECT pg_is_in_recovery()") == "f", "the end of the recovery", 60)

    where = {"DATABASE_URL": server.settings["DATABASE_URL"]}
    assert epoch in strongroom(tmp_path, "stats", "--json", **where).stdout, "the database itself does not tell"
    done = strongroom(tmp_path, "db", "new-epoch", "--yes", **where)
    assert (done.returncode, done.stderr) == (0, "")
    server.start()
    try:
        http = server.connect(token)
        assert [one["name"] for one in http.get("/vault").json()["vaults"]] == ["precious"]
        assert http.get("/health").json()["epoch"] != epoch
    finally:
        assert server.end() == 0
