"""One replica in several processes: one writes, the others read, and a kill of the writer leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from strongroom.client import ReadOnlyReplica
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.programs import processes

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from tests.kit import cheap_hashing
cheap_hashing.install()
from strongroom.client import Client

url, path, password = sys.argv[1:]
with Client(url) as client:
    client.unlock(path, password)
    replica = client.open_replica(path)
    print(replica.read_only, flush=True)
    for line in sys.stdin:
        command, _, value = line.strip().partition(" ")
        if command == "write":
            print(replica.vault("v").collection("notes").create(value).value, flush=True)
        if command == "vault":
            client.vault(value, create=True).collection("notes").create("in it")
            print(replica.sync().pulled, flush=True)
        if command == "rotate":
            client.vault("v").rotate()
            print(replica.sync().pulled, flush=True)
"""


class Other:
    """Another process that has opened the replica."""

    def __init__(self, url: str, path: Path) -> None:
        self._process = processes.Popen(
            [sys.executable, "-c", PROGRAM, url, str(path), PASSWORD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.read_only = {"True": True, "False": False}[self._line()]

    def _line(self) -> str:
        assert self._process.stdout is not None
        return str(self._process.stdout.readline()).strip()

    def ask(self, command: str) -> str:
        """Give it a command, and wait until it is done."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._line()

    def end(self) -> None:
        """Let it close the replica."""
        self._hang_up()
        assert self._process.wait(60) == 0

    def kill(self) -> None:
        """End it at once, with SIGKILL."""
        self._process.kill()
        self._process.wait(60)
        self._hang_up()

    def _hang_up(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class LocalAccount:
    """An account with one document, and its replica."""

    def __init__(self, clients: ClientFactory, path: Path) -> None:
        self.clients = clients
        self.path = path
        self.client = clients.client()
        self.client.register(unique_email(), PASSWORD)
        self.client.vault("v", create=True).collection("notes").create("first")
        replica = self.client.open_replica(path)
        replica.sync()
        replica.close()

    def other(self) -> Other:
        return Other(self.clients.url, self.path)


@pytest.fixture
def account(clients: ClientFactory, tmp_path: Path) -> LocalAccount:
    return LocalAccount(clients, tmp_path / "replica")


def values(replica: Any) -> list[str]:
    return sorted(note.value for note in replica.vault("v"))


def test_one_writes_and_the_others_read(account: LocalAccount) -> None:
    """A reader sees what the writer stores, as soon as it is stored; its own writes are refused with a sentence."""
    other = account.other()
    assert not other.read_only
    with closing(account.client.open_replica(account.path)) as replica:
        assert replica.read_only
        assert values(replica) == ["first"]
        assert other.ask("write second") == "second"
        assert values(replica) == ["first", "second"]
        assert replica.pending == 1
        notes = replica.vault("v").collection("notes")
        for write in (
            lambda: notes.create("x"),
            lambda: notes.replace(next(iter(notes)), "x"),
            lambda: notes.delete(next(iter(notes))),
            lambda: replica.vault("w", create=True),
            replica.sync,
        ):
            with pytest.raises(ReadOnlyReplica, match=r"Another process, .* has this replica open and writes to it"):
                write()
        assert values(replica) == ["first", "second"]
        account.client.vault("online", create=True)  # the client itself is not bound by the replica
        with pytest.raises(ReadOnlyReplica):
            account.client.open_replica(account.path, read_only=False)
    other.end()


@pytest.mark.parametrize("how", ["end", "kill"])
def test_the_writer_ends(account: LocalAccount, how: str) -> None:
    """Closed or killed: the next write of a reader succeeds, and who opens the replica then reads."""
    other = account.other()
    other.ask("write second")
    with closing(account.client.open_replica(account.path)) as replica:
        assert replica.read_only
        getattr(other, how)()
        assert values(replica) == ["first", "second"]
        replica.vault("v").collection("notes").create("third")
        assert not replica.read_only
        another = account.other()
        assert another.read_only
        assert replica.sync().pushed == 2
        another.end()
    assert sorted(note.value for note in account.client.vault("v").collection("notes")) == ["first", "second", "third"]


def test_a_kill_leaves_nothing_to_clean_up(account: LocalAccount) -> None:
    """After any number of kills, the next process writes."""
    for number in range(3):
        other = account.other()
        assert not other.read_only
        other.ask(f"write number {number}")
        other.kill()
    with closing(account.client.open_replica(account.path, read_only=False)) as replica:
        assert values(replica) == ["first", "number 0", "number 1", "number 2"]


def test_a_replica_that_is_opened_for_reading(account: LocalAccount) -> None:
    """It never writes, also where nobody else does, and does not keep another from writing."""
    with closing(account.client.open_replica(account.path, read_only=True)) as replica:
        assert replica.read_only
        with pytest.raises(ReadOnlyReplica, match="opened for reading only"):
            replica.vault("v").collection("notes").create("x")
        other = account.other()
        assert not other.read_only
        other.ask("write second")
        assert values(replica) == ["first", "second"]
        other.end()
    with pytest.raises(errors.Invalid, match="does not exist"):
        account.client.open_replica(account.path.with_name("none"), read_only=True)


@pytest.mark.parametrize("command", ["vault w", "rotate"])
def test_a_reader_follows_the_keys_of_the_writer(account: LocalAccount, command: str) -> None:
    """New vaults and new keys that the writer has stored are read without a server."""
    other = account.other()
    with closing(account.client.open_replica(account.path)) as replica:
        assert values(replica) == ["first"]
        other.ask(command)
        assert values(replica) == ["first"]
        if command == "vault w":
            assert [note.value for note in replica.vault("w")] == ["in it"]
    other.end()


def test_two_in_one_process(account: LocalAccount) -> None:
    """The second reads; closing it does not end the lock of the first."""
    with closing(account.client.open_replica(account.path)) as first:
        with closing(account.client.open_replica(account.path)) as second:
            assert (first.read_only, second.read_only) == (False, True)
        other = account.other()
        assert other.read_only
        first.vault("v").collection("notes").create("second")
        other.end()
