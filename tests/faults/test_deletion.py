"""Deleting a vault or an account delays no writer, and a kill in between is resumed."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.actions import deletions
from tests.kit.asynchronous import async_test
from tests.kit.calibration import reference_time
from tests.kit.network.responses import good
from tests.kit.people.person import Person
from tests.kit.people.settled import settle_in
from tests.kit.programs.command_line import strongroom
from tests.kit.samples import rounds
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import database_of
from tests.kit.servers.populated_database import alter, rows_of
from tests.kit.servers.process import Server
from tests.kit.waiting import until

ATTEMPTS = 6  # the machine has other things to do: what a step costs is the shortest time that it took
COUNT = rounds(2_000, 100_000)
KILLED = 4_000
LARGE = rounds(1_000_000, 5_000_000)
MARK = "REVMRVRFRA=="  # the content of what is deleted
_ROWS = """
    WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
    INSERT INTO {table} (user_id, uid, vault_uid, collection, data, version, created_at, updated_at{columns})
    SELECT v.user_id, '0192f0c2-0000-7000-8000-' || substr(CAST(1000000000000 + n * 7919 % 999983 AS TEXT), 2),
           v.uid, 'c', '{data}', {version}, n, n{values} FROM numbers, vaults AS v WHERE v.uid = '{vault}'
"""


async def fill(where: str, vault: str, count: int = COUNT, data: str = MARK) -> None:
    """So many documents in a vault, each with a version that was replaced."""
    given = {"count": count, "vault": vault, "data": data}
    await alter(where, _ROWS.format(**given, table="documents", columns="", values="", version=2))
    await alter(where, _ROWS.format(**given, table="versions", columns=", replaced_at", values=", n", version=1))


def clock_of(where: str) -> Callable[[], float]:
    """Processor time on a file, and time on the wall on a database that is another process."""
    return time.monotonic if "://" in where else time.process_time


async def steps(server: InProcessServer, where: str) -> list[float]:
    """Delete everything: the time of each transaction, in which no other writer can write."""
    clock, took, more, progress = clock_of(where), [], True, deletions.DeletionProgress()
    while more:
        began = clock()
        more = await database_of(server.app).write_long(deletions.delete_some, progress)
        took.append(clock() - began)
    return took


async def time_of_deletion(person: Person, what: str, vault: dict[str, Any], clock: Callable[[], float]) -> float:
    """Delete a vault or the account; how long that took."""
    began = clock()
    if what == "vault":
        good(await person("DELETE", f"/vault/{vault['uid']}"))
    else:
        good(await person("DELETE", "/auth/me", {"password": "correct horse"}))
    return clock() - began


@pytest.mark.alone
@pytest.mark.parametrize("what", ["vault", "account"])
@async_test
async def test_no_transaction_of_a_deletion_takes_long(open_server: OpenServer, where: str, what: str) -> None:
    """Neither the first, after which all is gone for everybody, nor any that deletes rows: as of a small vault."""
    clock = clock_of(where)
    shortest: list[float] = []
    longest = allowed = 0.0
    async with open_server() as server:
        for _ in range(ATTEMPTS):
            person = await server.person()
            vault = await person.vault()
            await fill(where, vault["uid"])
            await alter(where, f"UPDATE documents SET data = '{'A' * LARGE}' WHERE updated_at = 7")
            took = [await time_of_deletion(person, what, vault, clock), *await steps(server, where)]
            shortest = [min(pair) for pair in zip(shortest or took, took, strict=True)]
            longest, allowed = max(shortest), min(reference_time(1024 * 1024, clock) for _ in range(ATTEMPTS))
            print(f"{len(took)} transactions, the longest {longest * 1000:.1f} of {allowed * 1000:.1f} ms")  # noqa: T201
            if longest <= allowed:
                break
        assert len(shortest) > COUNT // 64
        assert longest <= allowed
        assert MARK not in str(await rows_of(where))


async def time_of_a_write(person: Person, vault: dict[str, Any]) -> float:
    began = time.monotonic()
    await person.document(vault)
    return time.monotonic() - began


@async_test
async def test_writers_continue_beside_a_deletion(open_server: OpenServer, where: str) -> None:
    """Most of the time is theirs."""
    async with open_server() as server:
        person, other = await server.person(), await server.person()
        vault, own = await person.vault(), await other.vault()
        await fill(where, vault["uid"])
        good(await person("DELETE", f"/vault/{vault['uid']}"))
        deletion = asyncio.create_task(server.finish_deletions())
        waits = []
        while not deletion.done():
            waits.append(await time_of_a_write(other, own))
        await deletion
        alone = statistics.median([await time_of_a_write(other, own) for _ in range(30)])
        print(f"{len(waits)} writes: median {statistics.median(waits) * 1000:.1f}, longest {max(waits) * 1000:.1f} ms")  # noqa: T201
        assert len(waits) > COUNT // 200
        assert statistics.median(waits) <= max(8 * alone, reference_time(1024 * 1024, time.monotonic))


def files_of(home: Path) -> bytes:
    """All that the database has on disk."""
    return b"".join(path.read_bytes() for path in home.glob("vault.db*") if path.suffix != ".db-shm")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("what", ["vault", "account"])
def test_a_killed_server_continues_with_a_deletion(tmp_path: Path, engine: str, what: str) -> None:
    """At the next start, again and again, until nothing is left: no row, and in a file no byte of the content."""
    server = Server(tmp_path, engine, JWT_ACCESS_EXPIRY="1d")
    where = server.settings.get("DATABASE_URL", server.settings["DB_PATH"])
    try:
        server.start()
        _, token, vault = settle_in(server)
        assert server.end() == 0
        asyncio.run(fill(where, vault, KILLED))
        server.start()
        with server.connect(token) as http:
            if what == "vault":
                good(http.delete(f"/vault/{vault}"))
            else:
                good(http.request("DELETE", "/auth/me", json={"password": "correct horse"}))
        kills, left = 0, KILLED
        while left and kills < 4:
            until(lambda: len(found(where)) < left, "another step")  # noqa: B023
            server.process.kill()
            server.process.wait()
            left, kills = len(found(where)), kills + 1
            server.start()
            with server.connect(token) as http:
                assert http.get(f"/vault/{vault}").status_code == (404 if what == "vault" else 401)
        until(lambda: not waiting(where), "the end of the deletion")
        assert kills > 1
        tables = asyncio.run(rows_of(where))
        assert (tables["documents"], tables["versions"]) == ([], [])
        assert bool(tables["users"]) == (what == "vault")
        if engine == "sqlite":
            assert MARK.encode() not in files_of(tmp_path)
    finally:
        server.abandon()


def found(where: str) -> list[Any]:
    """The documents that are there."""
    return asyncio.run(rows_of(where))["documents"]


def waiting(where: str) -> list[Any]:
    """The deletions that are not finished."""
    return asyncio.run(rows_of(where))["deletions"]


def test_a_deletion_by_an_operator_is_finished_when_the_command_is(tmp_path: Path) -> None:
    """And what a command that was killed has left, a server deletes."""
    settings = {"JWT_SECRET": "x" * 32, "DB_PATH": str(tmp_path / "vault.db"), "input": "correct horse\n"}
    assert strongroom(tmp_path, "db", "migrate", **settings).returncode == 0
    assert strongroom(tmp_path, "users", "add", "ada@example.com", **settings).returncode == 0
    assert strongroom(tmp_path, "users", "delete", "ada@example.com", "--yes", **settings).returncode == 0
    tables = asyncio.run(rows_of(settings["DB_PATH"]))
    assert tables["users"] == tables["deletions"] == tables["events"] == []
    assert b"ada@example.com" not in files_of(tmp_path)
