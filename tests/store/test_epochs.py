"""A database has one epoch on all nodes, until it is restored."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from strongroom import create_server
from strongroom.store import open_database
from strongroom.store.maintenance.copy import copy
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of
from tests.kit.servers.populated_database import Served, alter, rows_of
from tests.kit.servers.postgres import postgres
from tests.kit.servers.secret import SECRET
from tests.kit.servers.silent_watcher import SilentWatcher


@async_test
async def test_every_answer_about_a_vault_carries_the_epoch(open_server: OpenServer) -> None:
    """So does health; and it is the same after a restart."""
    async with open_server() as server:
        epoch = (await server.http.get("/health")).json()["epoch"]
        assert uuid.UUID(epoch).version == 7
        person = await server.person()
        vault = await person.vault(data="x", salt="")
        path = f"/vault/{vault['uid']}"
        put = (await person("PUT", path, {"data": "y", "salt": ""})).json()
        got = [(await person("GET", road)).json() for road in (path, f"/vault/by-name/{vault['name']}")]
        listed = (await person("GET", "/vault")).json()["vaults"]
        assert [one["epoch"] for one in (vault, put, *got, *listed)] == [epoch] * 5
    async with open_server() as server:
        assert (await server.http.get("/health")).json()["epoch"] == epoch


@async_test
async def test_a_lineage_that_was_ended_begins_anew(open_server: OpenServer, where: str) -> None:
    """As an operator does after restoring a backup by other means."""
    async with open_server() as server:
        epoch = (await server.http.get("/health")).json()["epoch"]
    await alter(where, "DELETE FROM lineage")
    async with open_server() as server:
        assert (await server.http.get("/health")).json()["epoch"] != epoch


@async_test
async def test_nodes_that_start_at_once_agree(where: str) -> None:
    """Eight servers open a new database at the same time: one epoch, one row."""
    await open_database(where, lambda: 1).close()
    place: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}

    def start(_: int) -> Any:
        return create_server(jwt_secret=SECRET, **place)

    with ThreadPoolExecutor(8) as threads:
        servers = list(threads.map(start, range(8)))
    try:
        assert len({context_of(server).epoch for server in servers}) == 1
        assert len((await rows_of(where))["lineage"]) == 1
    finally:
        for server in servers:
            await server.release()


@async_test
async def test_a_copy_goes_on_with_the_lineage(tmp_path: Path, clock: Clock) -> None:
    """Even into a target on which a server was started before, and which had begun one of its own."""
    source, target = str(tmp_path / "vault.db"), postgres().fresh()
    async with Served(source, clock) as server:
        epoch = (await server.http.get("/health")).json()["epoch"]
    async with Served(target, clock) as server:
        assert (await server.http.get("/health")).json()["epoch"] != epoch
    await copy(source, target, clock, SilentWatcher())
    async with Served(target, clock) as server:
        assert (await server.http.get("/health")).json()["epoch"] == epoch
