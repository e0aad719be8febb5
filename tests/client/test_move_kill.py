"""A move whose processes are killed on the way, again and again: repeated, it comes to its end, whole and verified."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from strongroom.client import Client
from tests.client.moving_accounts import Json, contents, lines, url_of
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.samples import rounds
from tests.kit.servers.process import Server
from tests.kit.waiting import until

ROOT = Path(__file__).parents[2]
DOCUMENTS = rounds(600, 10_000)
KILLS = rounds(4, 10, "KILLS")
# Says what it does: each step that it takes, and each piece that it sends and receives.
CHILD = """
import sys
from tests.kit import cheap_hashing
cheap_hashing.install()
from strongroom.client import Client
from strongroom.client.net.driver import Driver
from strongroom.client.net.http import HttpClient, ResponseStream

said = 0
def say():
    global said
    said += 1
    print(said, flush=True)

perform, content = Driver._perform, HttpClient._content
def told(self, effect):
    say()
    return perform(self, effect)
def pieces(upload):
    for piece in content(upload):
        say()
        yield piece
Driver._perform, HttpClient._content = told, staticmethod(pieces)

what, url, path, email, password = sys.argv[1:]
if what == "export":
    with Client(url) as client:
        client.login(email, password)
        client.export_account(path)
else:
    Client.import_account(url, path, email, password).close()
"""


class Mover:
    """The program of somebody who moves, in a process of its own."""

    def __init__(self, home: Path, what: str, server: Server, path: Path, email: str) -> None:
        self.said = home / "said"
        self._errors = home / "errors"
        words = [sys.executable, "-c", CHILD, what, url_of(server), str(path), email, PASSWORD]
        with self.said.open("w") as out, self._errors.open("w") as errors:
            self.process = subprocess.Popen(words, stdout=out, stderr=errors, cwd=ROOT)

    def steps(self) -> int:
        """How many steps it has taken."""
        return self.said.read_text().count("\n")

    def reach(self, step: int) -> bool:
        """Wait until it has taken so many steps; False if it has ended before."""
        until(lambda: self.steps() >= step or self.process.poll() is not None, "steps of a move")
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def finish(self) -> str:
        """Wait for its end; what it wrote to stderr."""
        self.process.wait(300)
        return self._errors.read_text()


def furnish(server: Server, path: Path) -> tuple[str, Json]:
    """An account with many documents, with history and a trash: its email, and what is in it."""
    email = unique_email()
    with Client(url_of(server)) as client:
        client.register(email, PASSWORD)
        client.vault("many", create=True).blob.put("first")
        client.vault("many").blob.put("second")
        with client.open_replica(path) as replica:
            replica.sync()
            notes = replica.vault("many").collection("notes")
            for number in range(DOCUMENTS):
                notes.create({"number": number, "text": "x" * 200})
            replica.sync()
            made = list(notes)
            for note in made[::3]:
                notes.replace(note, {**note.value, "changed": True})
            replica.sync()
            for note in list(notes)[::10]:
                notes.delete(note)
            assert replica.sync().conflicts == []
        return email, contents(client)


def restarted(server: Server) -> None:
    """SIGKILL to a server, and its start at the same address."""
    server.settings["PORT"] = str(server.port)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(30)
    server.start()


def test_a_move_that_is_killed_comes_to_its_end(tmp_path: Path) -> None:
    """SIGKILL of the client and of either server at varied steps; then the move ends, and nothing is missing."""
    old, new = Server(tmp_path / "old"), Server(tmp_path / "new")
    path, chance = tmp_path / "account", random.Random(17)  # noqa: S311 - to be repeated
    try:
        email, before = furnish(old.start(), tmp_path / "replica")
        new.start()
        whole = Mover(tmp_path, "export", old, tmp_path / "first", email)
        assert whole.finish() == ""
        steps = whole.steps()
        for victim in ("client", "server"):
            mover = Mover(tmp_path, "export", old, path, email)
            assert mover.reach(chance.randrange(1, steps))
            restarted(old) if victim == "server" else mover.kill()
            mover.finish()
            assert not path.exists() or victim == "server"  # a step before the first byte is repeated by the client
        began = time.monotonic()
        assert Mover(tmp_path, "export", old, path, email).finish() == ""
        export_seconds = time.monotonic() - began
        steps = path.stat().st_size // 65_536 + 10  # the pieces of the file, and the requests around them
        killed = {"client": 0, "server": 0}
        mover = Mover(tmp_path, "import", new, path, email)
        while sum(killed.values()) < KILLS:
            victim = "client" if sum(killed.values()) % 2 == 0 else "server"
            step = mover.steps() + chance.randrange(1, steps)
            if mover.reach(step):
                restarted(new) if victim == "server" else mover.kill()
                killed[victim] += 1
            if mover.process.poll() is not None:
                mover = Mover(tmp_path, "import", new, path, email)
        mover.finish()
        began = time.monotonic()
        assert Mover(tmp_path, "import", new, path, email).finish() == ""
        import_seconds = time.monotonic() - began
        with Client(url_of(new)) as client:
            client.login(email, PASSWORD)
            assert contents(client) == before
            client.export_account(tmp_path / "again")
        rows = {"vault", "document", "version", "blobVersion"}
        here, there = ([row for row in lines(file) if row["kind"] in rows] for file in (tmp_path / "again", path))
        assert here == there
        kinds = [row["kind"] for row in there]
        print(  # noqa: T201
            f"{kinds.count('document')} documents, {kinds.count('version')} versions, {path.stat().st_size} bytes; "
            f"killed {killed}; export {export_seconds:.1f} s, last import {import_seconds:.1f} s"
        )
    finally:
        old.abandon()
        new.abandon()
