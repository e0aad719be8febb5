"""Commands say in one sentence what came of them, and their help says what their exit codes mean."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import apsw
import pytest

from strongroom.store import open_database
from tests.kit.network.ports import free_port
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.process import Server

COMMANDS = (
    "serve", "init", "backup", "restore", "doctor", "salvage", "db copy", "db migrate", "db new-epoch", "users list",
    "users add", "users enable", "users disable", "users delete", "users sign-out", "users reset-throttle",
    "users reset-second-factor", "keys list",
    "keys revoke", "invite create", "invite list", "invite revoke", "stats", "vacuum", "config", "ready", "systemd",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_the_exit_codes(tmp_path: Path, command: str) -> None:
    """Once, in the same words; 2 means the same everywhere."""
    shown = " ".join(strongroom(tmp_path, *command.split(), "--help").stdout.split())
    assert shown.lower().count("exit code") == 1
    assert "Exit codes: 0 " in shown
    assert "2 wrong use, a bad setting, or a file or database that is refused" in shown


def test_help_of_db_names_what_it_has(tmp_path: Path) -> None:
    """The menu, too."""
    assert "new-epoch" in " ".join(strongroom(tmp_path, "db", "--help").stdout.split())
    assert "new epoch" in " ".join(strongroom(tmp_path, "--help").stdout.split())


def made(path: Path) -> Path:
    asyncio.run(open_database(str(path), lambda: time.time_ns() // 1_000_000).close())
    return path


def test_an_account_that_exists_is_not_added_again(tmp_path: Path) -> None:
    """Exit code 2, and a sentence for the operator, who does not log in."""
    made(tmp_path / "vault.db")
    add = ("users", "add", "ada@example.com")
    assert strongroom(tmp_path, *add, DB_PATH="vault.db", input="correct horse\n").returncode == 0
    again = strongroom(tmp_path, *add, DB_PATH="vault.db", input="another horse\n")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "strongroom: There is already an account ada@example.com; nothing was changed.\n"


@pytest.mark.parametrize(
    ("address", "code"),
    [("abc", 2), ("203.0.113", 2), ("203.0.113.7:80", 2), ("", 2), ("10.0.0.0/8", 2), ("203.0.113.7", 0), ("::1", 0)],
)
def test_what_is_no_address_has_no_failures(tmp_path: Path, address: str, code: int) -> None:
    """To forget nothing, because of a slip of the finger, must not look like success."""
    made(tmp_path / "vault.db")
    done = strongroom(tmp_path, "users", "reset-throttle", "--address", address, DB_PATH="vault.db")
    assert done.returncode == code, done
    assert code == 0 or "--address must be an IP address like 203.0.113.7" in done.stderr


def test_ready_says_so_in_a_sentence(tmp_path: Path) -> None:
    """Whether it is, what is not well, or that nobody answers."""
    settings = {"PORT": str(free_port()), "HOST": "127.0.0.1"}
    nobody = strongroom(tmp_path, "ready", **settings)
    assert nobody.returncode == 1
    assert f"no response from a server at port {settings['PORT']}: Connection refused." in nobody.stderr
    for free, told in (("1000", "The server is ready.\n"), (str(10**15 - 1), "failed: disk.")):
        server = Server(tmp_path / free, READY_FREE_BYTES=free, **settings)
        server.settings.pop("DATABASE_URL", None)
        server.start()
        try:
            done = strongroom(tmp_path, "ready", **settings)
        finally:
            assert server.end() == 0
        assert done.returncode == (free != "1000"), done
        assert told in done.stdout
        assert done.stderr == ""


def test_vacuum_on_a_full_disk_is_a_sentence(small_disk: Path) -> None:
    """Exit code 2; nothing is lost, and the room that it took on the way is free again: the next command works."""
    path = made(small_disk / "vault.db")
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE ballast (value BLOB)")
    connection.execute("INSERT INTO ballast VALUES (randomblob(3500000))")
    connection.close()
    before = path.read_bytes()
    beside = apsw.Connection(str(path))  # as a server has it
    beside.execute("SELECT count(*) FROM ballast").fetchall()
    done = strongroom(small_disk, "vacuum", "--yes", DB_PATH=str(path))
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    assert "not enough free space on the disk" in done.stderr
    assert path.read_bytes() == before
    assert strongroom(small_disk, "stats", DB_PATH=str(path)).returncode == 0
    left = {one.name: one.stat().st_size for one in small_disk.iterdir() if one != path}
    assert sum(left.values()) < 100_000, left
    beside.close()
