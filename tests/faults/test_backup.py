"""A backup taken under writers holds a prefix of what was acknowledged; and a damaged database is restored from one."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.concurrent_clients import Writer
from tests.kit.asynchronous import async_test
from tests.kit.people.settled import settle_in
from tests.kit.programs.command_line import strongroom
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import damage, rows_of
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server, launch
from tests.kit.servers.secret import SECRET

WRITERS = 16
BATCH = 5
A_LIFE = 5  # rounds on one database, which grows with each
Moment = tuple[int, str, int]


def where_of(server: Server) -> dict[str, str]:
    return {name: server.settings[name] for name in ("DB_PATH", "DATABASE_URL") if name in server.settings}


class Batcher(Writer):
    """Creates documents by the batch, of which all or none are to be found."""

    def __init__(self, url: str, token: str, vault: str) -> None:
        super().__init__(url, token, vault)
        self.batches: list[list[int]] = []

    async def _one(self, http: httpx2.AsyncClient) -> None:
        wanted = [{"op": "create", "collection": "c", "data": "C" * 200} for _ in range(BATCH)]
        answer = await http.post(f"/vaults/{self._vault}/batch", json={"operations": wanted})
        assert answer.status_code == 200, answer.text
        made = answer.json()["results"]
        self.moments += [(document["updatedAt"], document["uid"], 1) for document in made]
        self.batches.append([document["updatedAt"] for document in made])


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@async_test
async def test_a_backup_is_a_prefix_of_what_was_acknowledged(tmp_path: Path, engine: str) -> None:
    """16 writers, a backup at a random moment, a restore elsewhere, into each engine in turn.

    What was acknowledged before it began is there. What is there ends at one moment of the account's clock: before it
    nothing is missing, after it there is nothing, no batch and no replacement is half there, and the counts agree.
    """
    count, cut, total = rounds(2, 50, "BACKUPS"), 0, 0
    for start in range(0, count, A_LIFE):
        numbers = range(start, min(start + A_LIFE, count))
        late, writes = await _rounds_of_a_server(tmp_path, engine, numbers)
        cut, total = cut + late, total + writes
    assert cut
    print(f"{count} backups of {engine} under {total} acknowledged writes: each a prefix, {cut} cut through them")  # noqa: T201


async def _rounds_of_a_server(home: Path, engine: str, numbers: range) -> tuple[int, int]:
    """Some rounds on one database: how many backups left out writes that came later, and how many writes there were."""
    server = Server(home / f"from {numbers[0]}", JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    if engine == "postgres":
        server.settings["DATABASE_URL"] = postgres().fresh()
    server.start()
    url, token, vault = settle_in(server)
    writers = [Batcher(url, token, vault) if n % 4 == 0 else Writer(url, token, vault) for n in range(WRITERS)]
    cut = 0
    try:
        for number in numbers:
            before = await _backed_up_under(writers, server, home / "one.backup")
            other = postgres().fresh() if number % 2 else str(home / f"{number}.db")
            target = {"DATABASE_URL" if number % 2 else "DB_PATH": other}
            done = await asyncio.to_thread(strongroom, home, "restore", "--new", "one.backup", **target)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            (home / "one.backup").unlink()
            cut += _is_a_prefix(before, writers, await rows_of(other)) > 0
    finally:
        server.abandon()
    return cut, sum(len(writer.moments) for writer in writers)


async def _backed_up_under(writers: list[Writer], server: Server, path: Path) -> list[Moment]:
    """Have them write, and make a backup meanwhile; what was acknowledged before it began."""
    alive = True
    work = asyncio.gather(*(writer.run(lambda: alive) for writer in writers))
    try:
        await asyncio.sleep(random.uniform(0.0, 0.5))  # noqa: S311
        before = [moment for writer in writers for moment in writer.moments]
        done = await asyncio.to_thread(strongroom, path.parent, "backup", path.name, **where_of(server))
    finally:
        alive = False
        await work
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return before


def _is_a_prefix(before: list[Moment], writers: list[Writer], rows: dict[str, list[Any]]) -> int:
    """Look at a copy; how many writes came too late for it."""
    [ledger] = rows["ledgers"]
    end = ledger[1]
    assert all(moment <= end for moment, _, _ in before)
    everything = sorted(moment for writer in writers for moment in writer.moments)
    wanted = {uid: (version, moment) for moment, uid, version in everything if moment <= end}
    assert {row[1]: (row[6], row[8]) for row in rows["documents"]} == wanted
    replaced = {(uid, 1) for uid, (version, _) in wanted.items() if version == 2}
    assert {(row[1], row[2]) for row in rows["versions"]} == replaced
    for writer in writers:
        for batch in writer.batches if isinstance(writer, Batcher) else []:
            assert len({moment <= end for moment in batch}) == 1
    [counted] = rows["vaults"]
    assert counted[7] == end
    assert counted[8] == len(wanted) == ledger[2]
    assert counted[9] == sum(len(row[4]) for row in rows["documents"]) == ledger[3]
    return sum(moment > end for moment, _, _ in everything)


# A damaged page


@async_test
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
