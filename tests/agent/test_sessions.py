"""login, unlock, lock, logout, status: what is open, and what a locked agent gives."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.programs.process_state import alive
from tests.kit.waiting import until


def test_a_lock_ends_the_agent_and_forgets_everything(person: CommandLineUser) -> None:
    """After `lock` there is no process that could have a key; the password opens it again, a wrong one does not."""
    person.add("GitHub", "hunter2")
    pid = person.pid
    person.lock()
    assert not alive(pid)
    assert person.json("status")["locked"] is True
    done = person.run("get", "GitHub")
    assert (done.returncode, done.stdout) == (5, "")
    assert person.run("unlock", "--password", "-", stdin="wrong\n").returncode == 6
    assert person.run("get", "GitHub").returncode == 5
    person.unlock()
    assert person.said("get", "GitHub") == "hunter2\n"
    assert person.pid != pid


def test_it_locks_when_unused(person: CommandLineUser) -> None:
    """After the time that was asked for, and not before; `status` is no use."""
    person.unlock("--lock-after", "1s")
    pid = person.pid
    until(lambda: not alive(pid), "the end of the agent")
    assert person.json("status")["locked"] is True


def test_without_a_server_everything_but_a_first_login_works(person: CommandLineUser, tmp_path: Path) -> None:
    """Unlock, read and write from the replica; the server's absence is said by sync, with its exit code."""
    person.add("Before", "one")
    person.said("sync")
    person.lock()
    settings = person.home / "account.json"
    settings.write_text(settings.read_text().replace(person.url, "http://127.0.0.1:9"))
    person.unlock()
    assert person.said("get", "Before") == "one\n"
    person.add("Offline", "two")
    assert person.said("get", "Offline") == "two\n"
    assert person.json("status")["pending"] == 1
    assert person.run("logout").returncode == 9
    person.lock()
    settings.write_text(settings.read_text().replace("http://127.0.0.1:9", person.url))
    person.unlock()
    person.said("sync")
    assert person.json("status")["pending"] == 0
    other = CommandLineUser(tmp_path / "second", person.url, person.email)
    other.login()
    assert other.said("get", "Offline") == "two\n"
    other.close()


def test_a_second_login_is_the_same_and_another_account_is_refused(person: CommandLineUser) -> None:
    """Nothing is lost by logging in twice; two accounts need two homes."""
    person.add("GitHub", "hunter2")
    person.login()
    assert person.said("get", "GitHub") == "hunter2\n"
    done = person.run("login", "other@example.com", "--password", "-", stdin=f"{PASSWORD}\n")
    assert done.returncode == 9
    assert "STRONGROOM_HOME" in done.stderr
    person.said("sync")
    pid = person.pid
    person.said("logout")
    until(lambda: not alive(pid), "the end of the agent")
    assert sorted(path.name for path in person.home.iterdir()) == ["agent.lock", "agent.log"]
    assert "Nobody is logged in" in person.said("status")


def test_a_forgotten_password_does_not_keep_the_copy_on_the_device(person: CommandLineUser) -> None:
    """`logout --force` deletes it without the keys, and says that the session is still open on the server."""
    person.lock()
    assert person.run("logout").returncode == 5
    assert "end the session from another device" in person.said("logout", "--force")
    assert sorted(path.name for path in person.home.iterdir()) == ["agent.lock", "agent.log"]


def test_files_are_for_their_owner_alone(person: CommandLineUser) -> None:
    """The folder, and everything in it."""
    assert stat.S_IMODE(person.home.stat().st_mode) == 0o700
    for path in person.home.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name


def test_a_first_use_says_what_to_do(stranger: CommandLineUser) -> None:
    """Every command says to log in, with the exit code for it; and `status` is no failure."""
    for words in (["list"], ["get", "x"], ["sync"], ["unlock", "--password", "-"]):
        done = stranger.run(*words, stdin="x\n")
        assert done.returncode == 5, words
        assert "strongroom login" in done.stderr
    assert stranger.run("status").returncode == 0


def test_a_conflict_is_shown_and_decided(person: CommandLineUser, tmp_path: Path) -> None:
    """Both sides are kept until one is chosen; the list names the fields, and shows no value."""
    person.add("Shared", "base")
    person.said("sync")
    other = CommandLineUser(tmp_path / "second", person.url, person.email)
    other.login()
    other.said("edit", "Shared", "password=-", stdin="theirs-canary")
    settings = person.home / "account.json"
    text = settings.read_text()
    person.lock()
    settings.write_text(text.replace(person.url, "http://127.0.0.1:9"))
    person.unlock()
    person.said("edit", "Shared", "password=-", stdin="mine-canary")
    person.lock()
    other.said("sync")
    settings.write_text(text)
    person.unlock()
    person.said("sync")
    shown = person.said("conflicts")
    assert "Personal/Shared" in shown
    assert "password" in shown
    assert "canary" not in shown
    assert person.json("status")["conflicts"] == 1
    person.said("conflicts", "Shared", "--keep", "both")
    person.said("sync")
    assert person.json("status")["conflicts"] == 0
    assert sorted(one["title"] for one in person.json("list")) == ["Shared", "Shared"]
    other.close()


ASLEEP = """
import sys
from pathlib import Path
from strongroom.agent import process
process.asleep = lambda: float(Path(sys.argv[1]).read_text())
process.serve(lambda: None)
"""


CLOCK = """
import sys, time
from pathlib import Path
from strongroom.agent import process
real = time.time
time.time = lambda: real() + float(Path(sys.argv[1]).read_text())
process.serve(lambda: None)
"""


@pytest.mark.production_hashing  # agents that are true starts hash so
def test_a_clock_that_is_set_does_not_move_the_lock(person: CommandLineUser, tmp_path: Path) -> None:
    """Set an hour on, it does not lock early; set an hour back, it still locks when unused, and changes are sent."""
    person.add("GitHub", "hunter2")
    person.said("sync")
    person.lock()
    clock = tmp_path / "clock"
    clock.write_text("0")
    with subprocess.Popen([sys.executable, "-c", CLOCK, str(clock)], env=person.environment()) as agent:
        until((person.home / "agent.sock").exists, "the agent to listen")
        person.unlock("--lock-after", "30m")
        clock.write_text("3600")
        assert person.said("get", "GitHub") == "hunter2\n"
        clock.write_text("-3600")
        person.add("GitLab", "hunter3")
        person.said("sync")
        assert person.json("status")["pending"] == 0
        person.unlock("--lock-after", "1s")
        assert agent.wait(60) == 0
    assert "not used" in (person.home / "agent.log").read_text()


@pytest.mark.production_hashing  # agents that are true starts hash so
def test_it_locks_when_the_machine_was_asleep(person: CommandLineUser, tmp_path: Path) -> None:
    """The clock of this test says how long: a moment is no sleep, and some seconds are."""
    person.add("GitHub", "hunter2")
    person.lock()
    clock = tmp_path / "asleep"
    clock.write_text("100.0")
    command = [sys.executable, "-c", ASLEEP, str(clock)]
    with subprocess.Popen(command, env=person.environment()) as agent:
        until((person.home / "agent.sock").exists, "the agent to listen")
        person.unlock()
        clock.write_text("101.0")
        assert person.said("get", "GitHub") == "hunter2\n"
        clock.write_text("111.0")
        assert person.run("get", "GitHub").returncode == 5
        assert agent.wait(60) == 0
    assert "asleep" in (person.home / "agent.log").read_text()
