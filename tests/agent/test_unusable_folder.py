"""A folder that cannot be used: a full disk, one that is read-only, a file in its place. A sentence says what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.programs.command_line import STRONGROOM
from tests.kit.programs.mount_namespace import Machine, needs_another_user
from tests.kit.waiting import until

FREE = "free some space, and run this again."
ANOTHER = "STRONGROOM_HOME can name another one."


class ComputerWithSmallDisk:
    """A person's computer with a disk of one megabyte, on which their home is."""

    def __init__(self, folder: Path, url: str) -> None:
        self.disk = folder / "disk"
        self.disk.mkdir()
        self._folder = folder
        self._machine = Machine(f"mount -t tmpfs -o size=1200k,mode=700 tmpfs {self.disk}")
        self.person = CommandLineUser(self.disk / "home", url, production_hashing=True)
        self.other = CommandLineUser(self.disk / "other", url, production_hashing=True)

    def run(
        self, *words: str, stdin: str = PASSWORD, of: CommandLineUser | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of strongroom."""
        environment = (of or self.person).environment()
        return self._machine.run([*STRONGROOM, *words], self._folder, environment, root=True, given=f"{stdin}\n")

    def register(self, person: CommandLineUser) -> subprocess.CompletedProcess[str]:
        """Make an account."""
        words = ("login", person.email, "--server", person.url, "--register", "--password", "-")
        return self.run(*words, of=person)

    def shell(self, script: str) -> None:
        """Run something on the disk."""
        done = self._machine.run(["sh", "-c", script], self._folder, self.person.environment(), root=True)
        assert done.returncode == 0, done.stderr

    def fill(self) -> None:
        """Leave no byte free."""
        self.shell(f"dd if=/dev/zero of={self.disk}/fill bs=4096 2>/dev/null || true")

    def close(self) -> None:
        """Leave no agent and no mount behind."""
        with suppress(subprocess.TimeoutExpired):
            for person in (self.person, self.other):
                self.run("lock", of=person)
        self._machine.close()


@pytest.fixture
def computer(tmp_path: Path, url: str) -> Iterator[ComputerWithSmallDisk]:
    """A computer with a small disk."""
    made = ComputerWithSmallDisk(tmp_path, url)
    yield made
    made.close()


def is_refused(done: subprocess.CompletedProcess[str], *words: str) -> bool:
    """Whether a command ended with one sentence that has these words."""
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("strongroom: The ")
    assert done.stderr.count("\n") == 1
    return all(word in done.stderr for word in words)


@needs_another_user
def test_a_full_disk(computer: ComputerWithSmallDisk) -> None:
    """Unlocking says so, and works again with some space; a new account is refused before the server has made it."""
    assert computer.register(computer.person).returncode == 0
    assert computer.run("add", "login", "GitHub", "password=-", stdin="hunter2").returncode == 0
    assert computer.run("lock").returncode == 0
    computer.fill()
    assert is_refused(
        computer.run("unlock", "--password", "-"), "The copy of the account in ", "the disk is full", FREE
    )
    assert is_refused(computer.register(computer.other), "The folder ", "No space left on device", FREE)
    computer.shell(f"rm {computer.disk}/fill")
    assert computer.run("unlock", "--password", "-").returncode == 0
    assert computer.run("get", "GitHub").stdout == "hunter2\n"
    assert computer.register(computer.other).returncode == 0


@needs_another_user
def test_a_read_only_disk(computer: ComputerWithSmallDisk) -> None:
    """Nothing is changed, and nothing is a traceback; when it can be written to again, all is there."""
    assert computer.register(computer.person).returncode == 0
    assert computer.run("add", "login", "GitHub", "password=-", stdin="hunter2").returncode == 0
    assert computer.run("lock").returncode == 0

    def read_only() -> bool:
        with suppress(AssertionError):  # the agent that was locked closes its files
            computer.shell(f"mount -o remount,ro {computer.disk}")
            return True
        return False

    until(read_only, "the disk is read-only")
    assert is_refused(computer.run("unlock", "--password", "-"), "agent.lock", "Read-only", ANOTHER)
    assert is_refused(computer.run("logout", "--force"), "cannot be deleted", "Read-only", ANOTHER)
    assert is_refused(computer.register(computer.other), "cannot be made", "Read-only", ANOTHER)
    computer.shell(f"mount -o remount,rw {computer.disk}")
    assert computer.run("unlock", "--password", "-").returncode == 0
    assert computer.run("get", "GitHub").stdout == "hunter2\n"


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_in_the_place_of_the_folder(stranger: CommandLineUser, tmp_path: Path, below: str) -> None:
    """It is not called damaged, and stays as it is."""
    (tmp_path / "file").write_text("something else")
    home = str(tmp_path / "file" / below)
    login = ("login", stranger.email, "--server", stranger.url, "--password", "-")
    for words in (("status",), ("unlock", "--password", "-"), ("get", "GitHub"), ("lock",), ("logout",), login):
        done = stranger.run(*words, stdin=f"{PASSWORD}\n", STRONGROOM_HOME=home)
        assert is_refused(done, f"{tmp_path}/file", "set STRONGROOM_HOME to a folder.")
    assert (tmp_path / "file").read_text() == "something else"
