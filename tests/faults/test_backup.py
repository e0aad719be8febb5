"""A backup taken under writers is a prefix of what they were told; and a damaged database is mended by one."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.conftest import runs
from tests.contract.harness import SECRET, Server, launch
from tests.faults.crowd import Writer, rounds
from tests.faults.test_kill import settle_in
from tests.moving import rows_of
from tests.postgres import postgres

WRITERS = 16


def strongroom(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command as an operator types it."""
    hidden = ("JWT_SECRET", "DB_PATH", "DATABASE_URL", "PORT", "BACKUP_DIR")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "strongroom", *arguments]
    return subprocess.run(
        command, cwd=home, env={**clean, **settings}, capture_output=True, text=True, check=False, timeout=120
    )


def where_of(server: Server) -> dict[str, str]:
    return {name: server.settings[name] for name in ("DB_PATH", "DATABASE_URL") if name in server.settings}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@runs
async def test_a_backup_is_a_prefix_of_what_was_acknowledged(tmp_path: Path, engine: str) -> None:
    """16 writers, a backup at a random moment, a restore elsewhere, into each engine in turn.

    What was acknowledged before it began is there. What is there ends at one moment of the account's clock, before
    which nothing is missing and after which there is nothing; and the counts agree with the rows.
    """
    server = Server(tmp_path / "home", JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    if engine == "postgres":
        server.settings["DATABASE_URL"] = postgres().fresh()
    server.start()
    url, token, vault = settle_in(server)
    writers = [Writer(url, token, vault) for _ in range(WRITERS)]
    alive = True
    work = asyncio.gather(*(writer.run(lambda: alive) for writer in writers))
    found: list[tuple[list[tuple[int, str, int]], str]] = []
    try:
        for number in range(rounds(2, 50)):
            await asyncio.sleep(random.uniform(0.0, 0.5))  # noqa: S311
            before = [moment for writer in writers for moment in writer.moments]
            done = await asyncio.to_thread(strongroom, tmp_path, "backup", f"{number}.backup", **where_of(server))
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            other = postgres().fresh() if number % 2 else str(tmp_path / f"{number}.db")
            target = {"DATABASE_URL" if number % 2 else "DB_PATH": other}
            done = await asyncio.to_thread(strongroom, tmp_path, "restore", f"{number}.backup", **target)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            found.append((before, other))
        alive = False
        await work
    finally:
        alive = False
        server.abandon()
    everything = [moment for writer in writers for moment in writer.moments]
    for before, other in found:
        _is_a_prefix(before, everything, await rows_of(other))
    assert len(everything) > 20
    print(f"{len(found)} backups under {len(everything)} acknowledged writes: each a prefix")  # noqa: T201


def _is_a_prefix(
    before: list[tuple[int, str, int]], everything: list[tuple[int, str, int]], rows: dict[str, list[Any]]
) -> None:
    [ledger] = rows["ledgers"]
    end = ledger[1]
    assert all(moment <= end for moment, _, _ in before)
    wanted: dict[str, tuple[int, int]] = {}
    for moment, uid, version in sorted(everything):
        if moment <= end:
            wanted[uid] = (version, moment)
    held = {row[1]: (row[6], row[8]) for row in rows["documents"]}
    assert wanted.items() <= held.items()
    # What is there beyond it was committed, and its answer was cut off when the writers ended: at most one each.
    unheard = set(held) - set(wanted)
    assert len(unheard) <= WRITERS
    [counted] = rows["vaults"]
    assert counted[8] == len(held) == ledger[2]
    assert counted[9] == sum(len(row[4]) for row in rows["documents"]) == ledger[3]


# A damaged page


def damage(path: Path) -> None:
    """Write nonsense over an inner page of the documents."""
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    size: Any = connection.pragma("page_size")
    page: Any = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'documents'").fetchall()[0][0]
    connection.close()
    with path.open("rb+") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


@runs
async def test_a_damaged_page_is_refused_named_and_mended(tmp_path: Path) -> None:
    """The server says so and names the command; the doctor finds it; the restore brings back what was backed up."""
    server = Server(tmp_path)
    server.settings.pop("DATABASE_URL", None)
    server.start()
    url, token, vault = settle_in(server)
    writer = Writer(url, token, vault)
    await writer.run(lambda: len(writer.acknowledged) < 30)
    assert strongroom(tmp_path, "backup", "good", **server.settings).returncode == 0
    assert server.end() == 0
    path = Path(server.settings["DB_PATH"])
    sound = strongroom(tmp_path, "doctor", **server.settings)
    assert "ok       integrity" in sound.stdout
    damage(path)

    ended = launch(tmp_path, server.settings)
    assert ended.wait(20) == 2
    words = (tmp_path / "stderr").read_text()
    assert words.count("\n") == 1
    assert "is damaged" in words
    assert "'strongroom restore FILE'" in words

    told = strongroom(tmp_path, "doctor", **server.settings)
    assert told.returncode == 1
    [line] = [line for line in told.stdout.splitlines() if line.startswith("fault    integrity")]
    assert "damaged" in line
    assert "strongroom restore FILE" in told.stdout

    done = strongroom(tmp_path, "restore", "good", **server.settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert [file for file in tmp_path.iterdir() if ".before-" in file.name]
    server.start()
    with server.connect(token) as http:
        listed = http.get(f"/vaults/{vault}/documents").json()["documents"]
    assert {document["uid"] for document in listed} >= set(writer.acknowledged)
    assert server.end() == 0
    assert "ok       integrity" in strongroom(tmp_path, "doctor", **server.settings).stdout


def test_a_damaged_beginning_is_refused_and_mended(tmp_path: Path) -> None:
    """Where the very first page is gone, nothing tells that it was a database; the sentence says what to do."""
    server = Server(tmp_path)
    server.settings.pop("DATABASE_URL", None)
    server.start()
    assert strongroom(tmp_path, "backup", "good", **server.settings).returncode == 0
    assert server.end() == 0
    path = Path(server.settings["DB_PATH"])
    with path.open("rb+") as file:
        file.write(b"\xa5" * 4096)
    assert launch(tmp_path, server.settings).wait(20) == 2
    assert "'strongroom restore FILE'" in (tmp_path / "stderr").read_text()
    assert strongroom(tmp_path, "doctor", **server.settings).returncode == 1
    assert strongroom(tmp_path, "restore", "good", **server.settings).returncode == 0
    server.start()
    assert server.end() == 0
    assert SECRET not in server.log()
