"""A replica is killed at any moment, and nothing that was queued is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client, keep_mine
from strongroom.client.net.driver import Driver
from strongroom.client.net.effects import Effect
from strongroom.client.replica import Replica
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.samples import rounds
from tests.kit.servers.process import Server
from tests.kit.waiting import until

ROOT = Path(__file__).parents[2]
ROUNDS = rounds(6, 40, "KILLS")
CHILD = """
import sys
from tests.kit import cheap_hashing
cheap_hashing.install()
from strongroom.client import Client, keep_mine
url, path, password, first = sys.argv[1:]
with Client(url) as client:
    client.unlock(path, password)
    replica = client.open_replica(path)
    notes = replica.vault("v").collection("notes")
    number = int(first)
    while True:
        note = notes.create({"number": number})
        print("create", number, note.uid, flush=True)
        if number % 3 == 1:
            notes.replace(notes.get(note.uid), {"number": number, "changed": True})
            print("change", number, note.uid, flush=True)
        if number % 3 == 2:
            notes.delete(notes.get(note.uid))
            print("delete", number, note.uid, flush=True)
        number += 1
        if number % 5 == 0:
            replica.sync()
"""


@pytest.fixture
def account(server: Server, tmp_path: Path) -> Iterator[tuple[Client, str, Path]]:
    """A client that has logged in, its address, and a replica that has synced once and is closed."""
    url = f"http://127.0.0.1:{server.port}"
    with Client(url) as client:
        client.register(unique_email(), PASSWORD)
        client.vault("v", create=True)
        with client.open_replica(tmp_path / "replica") as replica:
            replica.sync()
        yield client, url, tmp_path / "replica"


def test_a_killed_process_loses_nothing(account: tuple[Client, str, Path], tmp_path: Path) -> None:
    """Kill -9 while it writes and syncs, again and again: every change that was said to be done is done, once."""
    client, url, path = account
    chance = random.Random(6)  # noqa: S311
    said: dict[str, tuple[str, int]] = {}
    last: set[str] = set()  # of these, one step more may have been done that there was no time to tell of
    lines = tmp_path / "said"
    for part in range(ROUNDS):
        lines.write_text("")
        with lines.open("w") as out:
            child = subprocess.Popen(
                [sys.executable, "-c", CHILD, url, str(path), PASSWORD, str(part * 1000)], stdout=out, cwd=ROOT
            )
        until(_enough(lines, child, chance.randint(2, 25)), "writes")
        assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait(20)
        for line in lines.read_text().rpartition("\n")[0].splitlines():  # the last may be cut off
            what, figure, uid = line.split()
            said[uid] = (what, int(figure))
        last.add(uid)
    with client.open_replica(path) as replica:
        report = replica.sync()
        assert report.conflicts == []
        assert replica.pending == 0
    notes = client.vault("v").collection("notes")
    stored = {note.uid: note.value for note in notes}
    for uid, (what, number) in said.items():
        if uid in last and number % 3 == 2 and uid not in stored:
            continue
        if what == "delete":
            assert uid not in stored
        else:
            assert stored[uid]["number"] == number
            assert what == "create" or stored[uid].get("changed")
    numbers = [value["number"] for value in stored.values()]
    assert len(numbers) == len(set(numbers))


def _enough(lines: Path, child: subprocess.Popen[bytes], wanted: int) -> Callable[[], bool]:
    return lambda: len(lines.read_text().splitlines()) >= wanted or child.poll() is not None


class Crash(BaseException):
    """The process ends here."""


class Crashing(Driver):
    """A driver that ends the process at a given step, before it is taken or after."""

    def __init__(self, inner: Driver, at: int, *, after: bool) -> None:
        super().__init__(inner.http)
        self.left = at
        self._after = after

    def _perform(self, step: Effect) -> Any:
        self.left -= 1
        if self.left < 0 and not self._after:
            raise Crash
        result = super()._perform(step)
        if self.left < 0:
            raise Crash
        return result


def _queue(replica: Replica, number: int) -> None:
    """A create, a change and a deletion that wait; and a conflict with what the other device does meanwhile."""
    notes = replica.vault("v").collection("notes")
    for note in list(notes)[:3]:
        notes.replace(note, f"{note.value}+{number}")
    notes.create(f"new {number}")
    living = list(notes)
    if len(living) > 6:
        notes.delete(living[3])


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_every_step_of_a_sync(account: tuple[Client, str, Path], *, after: bool) -> None:
    """The sync is cut off at its first step, its second, and so on: the next one brings everything to the same end."""
    client, _, path = account
    notes = client.vault("v").collection("notes")
    for number in range(8):
        notes.create(f"first {number}")
    cut, at = True, 0
    while cut:
        with client.open_replica(path) as replica:
            replica.sync()
            for note in list(notes)[-2:]:
                notes.replace(note, f"{note.value}-{at}")
            _queue(replica, at)
            expected = sorted(note.value for note in replica.vault("v"))
        with client.open_replica(path) as replica:
            crashing = Crashing(client._driver, at, after=after)
            cut = False
            try:
                Replica(replica._local, crashing).sync()
            except Crash:
                cut = True
        with client.open_replica(path) as replica:
            report = replica.sync()
            conflicts = {conflict.uid for conflict in report.conflicts}
            for conflict in report.conflicts:
                conflict.resolve(keep_mine)
            assert replica.sync().conflicts == []
            here = sorted(note.value for note in replica.vault("v"))
        assert here == sorted(note.value for note in notes)
        assert len(here) >= len(expected) - len(conflicts)
        assert f"new {at}" in here
        at += 1
    assert at > 5
