"""An operator tries three backups in turn, with the real command: no device goes back, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.client import UndecidedConflicts, keep_both, keep_mine
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.process import Server


def _operate(server: Server, *words: str) -> None:
    """A command of the operator's, beside the stopped server."""
    server.end()
    done = strongroom(server.home, *words, DB_PATH=server.settings["DB_PATH"], JWT_SECRET="x" * 32)
    assert done.returncode == 0, done.stderr
    server.start()


@pytest.mark.both_languages
@pytest.mark.parametrize("how", [keep_mine, keep_both])
def test_three_restores_in_a_row_set_nothing_back(
    clients: ClientFactory, own_server: Server, tmp_path: Path, how: object
) -> None:
    """The newest password and the deletion stay on the device that saw them, through every backup, until it decides."""
    server = own_server.start()
    server.settings["PORT"] = str(server.port)
    url, email = f"http://127.0.0.1:{server.port}", unique_email()
    first, late = clients.client(url), clients.client(url)
    first.register(email, PASSWORD)
    late.login(email, PASSWORD)  # every backup has its session
    notes = first.vault("v", create=True).collection("notes")
    password, leaked = notes.create("password 1"), notes.create("leaked 1")
    for number in range(2, 6):
        if number in {2, 3, 4}:
            _operate(server, "backup", str(tmp_path / f"backup {number - 1}"))
        password = notes.replace(password, f"password {number}")
        leaked = notes.replace(leaked, f"leaked {number}")
    replica = late.open_replica(tmp_path / "replica")
    replica.sync()
    notes.delete(leaked)
    replica.sync()
    mine = replica.vault("v").collection("notes")
    assert [note.value for note in mine] == ["password 5"]
    _operate(server, "restore", str(tmp_path / "backup 3"))
    assert len(replica.sync().conflicts) == 2
    for number in (1, 3):
        _operate(server, "restore", str(tmp_path / f"backup {number}"))
        with pytest.raises(UndecidedConflicts, match="Decide them first"):
            replica.sync()
        assert [note.value for note in mine] == ["password 5"]
        assert sorted(conflict.mine.deleted for conflict in replica.conflicts()) == [False, True]
    for _ in range(3):
        for conflict in replica.conflicts():
            conflict.resolve(keep_mine if conflict.mine.deleted else how)
        replica.sync()
    assert replica.conflicts() == []
    fresh = clients.client(url)
    fresh.login(email, PASSWORD)
    stored = sorted(note.value for note in fresh.vault("v").collection("notes"))
    assert stored == sorted(note.value for note in mine)
    assert stored == (["password 5"] if how is keep_mine else ["password 3", "password 5"])
    replica.close()
