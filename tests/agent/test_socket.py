"""The agent's socket against other users, links, files that a killed agent left, many connections and bad requests."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.programs import processes
from tests.kit.programs.other_user import NOBODY, as_root, public_folder
from tests.kit.programs.process_state import alive
from tests.kit.programs.processes import TRUE_AGENT
from tests.kit.samples import LONG
from tests.kit.waiting import until

STATUS = b'{"protocol":"1","operation":"status"}\n'


@pytest.fixture
def public(url: str) -> Iterator[CommandLineUser]:
    """Somebody whose home lies where other users can look for it."""
    with public_folder() as folder:
        made = CommandLineUser(folder / "home", url)
        made.register()
        yield made
        made.close()


def sent(path: Path, line: bytes) -> bytes:
    """What the agent says to a line."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
        connected.connect(str(path))
        connected.sendall(line)
        return b"".join(iter(lambda: connected.recv(1 << 16), b""))


@contextmanager
def as_nobody(run: Callable[[], object], *, user: int = NOBODY, group: int = NOBODY) -> Iterator[Callable[[], str]]:
    """Run a function in a process of another user; what it says, line by line."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)
            os.dup2(write, 1)
            os.write(1, f"{run()}\n".encode())
        except OSError as error:
            os.write(1, f"{type(error).__name__}\n".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        yield lambda: told.readline().rstrip("\n")
    os.waitpid(pid, 0)


def asks(place: Path) -> bytes:
    """What the agent at a place says to a request."""
    with socket.socket(socket.AF_UNIX) as connected:
        connected.settimeout(30)
        connected.connect(str(place))
        connected.sendall(STATUS)
        return connected.recv(1000)


def listens(place: Path) -> bytes:
    """What the first command sends to a false agent."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        os.write(1, b"listening\n")
        connected, _ = listener.accept()
        connected.settimeout(30)
        return connected.recv(1000)


@as_root
def test_another_user_gets_nothing(public: CommandLineUser) -> None:
    """Neither past the folder, nor where somebody has opened folder and socket to all: the peer is checked."""
    place = public.home / "agent.sock"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    with as_nobody(lambda: asks(place)) as told:
        assert told() == "PermissionError"
    public.home.chmod(0o755)
    place.chmod(0o666)
    with as_nobody(lambda: asks(place)) as told:
        assert told() in {"b''", "ConnectionResetError", "BrokenPipeError"}
    assert f"refused a connection of the user {NOBODY}" in (public.home / "agent.log").read_text()
    done = public.run("status")
    assert (done.returncode, "chmod 700" in done.stderr) == (1, True)
    public.home.chmod(0o700)
    assert public.json("status")["locked"] is False


@as_root
def test_nothing_is_sent_to_another_users_socket(url: str) -> None:
    """A link that leads to a socket of somebody else: the command notices who listens, and sends no byte."""
    with public_folder() as folder:
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        person = CommandLineUser(folder / "home", url)
        person.home.mkdir(mode=0o700)
        (person.home / "agent.sock").symlink_to(shared / "evil")
        with as_nobody(lambda: listens(shared / "evil")) as told:
            assert told() == "listening"
            done = person.run("login", "a@example.com", "--server", url, "--password", "-", stdin="canary\n")
            assert (done.returncode, "Another user of this machine listens" in done.stderr) == (1, True)
            assert told() == "b''"


def test_a_folder_that_is_a_link_is_refused(stranger: CommandLineUser, tmp_path: Path) -> None:
    """Its owner could be anybody."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    stranger.home.symlink_to(tmp_path / "elsewhere")
    done = stranger.run("unlock", "--password", "-", stdin="x\n")
    done = stranger.run("login", "a@example.com", "--server", "http://127.0.0.1:9", "--password", "-", stdin="x\n")
    assert (done.returncode, "symbolic link" in done.stderr) == (1, True)
    assert not [*(tmp_path / "elsewhere").iterdir()]


@as_root
def test_a_folder_of_another_user_is_refused(stranger: CommandLineUser) -> None:
    """What lies in it is theirs."""
    stranger.home.mkdir(mode=0o700)
    os.chown(stranger.home, NOBODY, NOBODY)
    done = stranger.run("login", "a@example.com", "--server", "http://127.0.0.1:9", "--password", "-", stdin="x\n")
    assert (done.returncode, "another user" in done.stderr) == (1, True)


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_no_socket_is_not_replaced(person: CommandLineUser, kind: str, tmp_path: Path) -> None:
    """A sentence says what is in the way, and it stays as it is."""
    person.lock()
    place, other = person.home / "agent.sock", tmp_path / "other"
    other.write_text("mine")
    if kind == "file":
        place.write_text("mine")
    elif kind == "link":
        place.symlink_to(other)
    else:
        place.mkdir()
    done = person.run("unlock", "--password", "-", stdin="x\n")
    assert (done.returncode, str(place) in done.stderr) == (1, True)
    assert other.read_text() == "mine"
    assert place.is_symlink() or place.is_dir() or place.read_text() == "mine"
    place.rmdir() if kind == "folder" else place.unlink()


def test_a_command_of_another_release_can_lock(person: CommandLineUser) -> None:
    """Whatever its protocol: that is how somebody gets rid of an agent that is older than their command."""
    pid = person.pid
    assert sent(person.home / "agent.sock", b'{"protocol":"0","operation":"lock"}\n') == b""
    until(lambda: not alive(pid), "the end of the agent")


def test_a_killed_agent_leaves_nothing_in_the_way(person: CommandLineUser) -> None:
    """Its socket and its lock stay in the folder: it is locked, and the next one takes their place."""
    person.add("GitHub", "hunter2")
    os.kill(pid := person.pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the end of the agent")
    assert (person.home / "agent.sock").is_socket()
    assert person.run("get", "GitHub").returncode == 5
    person.unlock()
    assert person.said("get", "GitHub") == "hunter2\n"


def test_two_starts_at_once_make_one_agent(person: CommandLineUser) -> None:
    """Both commands succeed, and one process serves."""
    person.lock()
    command = [sys.executable, "-m", "strongroom", "unlock", "--password", "-"]
    both = [
        processes.Popen(command, env=person.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for one in both:
        out, _ = one.communicate(f"{PASSWORD}\n", timeout=60)
        assert (one.returncode, out.startswith("Unlocked")) == (0, True)
    assert person.json("status")["locked"] is False


def test_a_start_waits_for_an_agent_that_begins_or_ends(person: CommandLineUser) -> None:
    """One that has the lock and does not listen yet, or no more: the command goes on when that one is gone."""
    person.lock()
    place = person.home / "agent.lock"
    command = [sys.executable, "-m", "strongroom", "unlock", "--password", "-"]
    with place.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        one = processes.Popen(
            command,
            env=person.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert one.stdin is not None
        one.stdin.write(f"{PASSWORD}\n")
        one.stdin.flush()
        until(lambda: one.poll() is not None or opened_elsewhere(place), "the new agent to meet the lock")
    out, said = one.communicate(timeout=60)
    assert (one.returncode, out.startswith("Unlocked"), said) == (0, True, "")


def opened_elsewhere(place: Path) -> bool:
    """Whether another process has a file open."""
    with suppress(OSError):
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            with suppress(OSError):
                if link.parts[2] != str(os.getpid()) and link.readlink() == place:
                    return True
    return False


@pytest.mark.production_hashing  # agents that are true starts hash so
@pytest.mark.parametrize("descriptors", [None, 200])
def test_a_thousand_connections_keep_nobody_out(person: CommandLineUser, descriptors: int | None) -> None:
    """Silent connections cost little; where descriptors are few, the oldest go first; a command is served meanwhile."""
    person.add("GitHub", "hunter2")
    person.lock()
    if descriptors is None:
        person.unlock()
    else:
        words = f"ulimit -n {descriptors}; exec {sys.executable} -m strongroom unlock --password -"
        given = f"{PASSWORD}\n"
        subprocess.run(["bash", "-c", words], env=person.environment(), input=given, text=True, check=True)
    pid = person.pid
    silent = []
    try:
        for _ in range(1_000):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            silent.append(one)
            one.connect(str(person.home / "agent.sock"))
            with suppress(BrokenPipeError):  # it was the oldest already
                one.send(b'{"protocol"')
        assert person.said("get", "GitHub") == "hunter2\n"
    finally:
        for one in silent:
            one.close()
    assert person.said("get", "GitHub") == "hunter2\n"
    assert person.pid == pid


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"[]\n",
        b"{\n",
        b"\xff\xfe\n",
        b'"x"\n',
        b"[" * 100_000 + b"\n",
        b'{"protocol":"1","operation":"nothing"}\n',
        b'{"protocol":"1","operation":["get"]}\n',
        b'{"protocol":"1","operation":"get"}\n',
        b'{"protocol":"1","operation":"get","item":7}\n',
        b'{"protocol":"1","operation":"read","references":"x"}\n',
        b'{"protocol":"1","operation":"read","references":[1]}\n',
        b'{"protocol":"1","operation":"items","vault":5}\n',
        b'{"protocol":"1","operation":"add","item":{"type":"login","title":["canary"]}}\n',
        b'{"protocol":"1","operation":"add_many","items":"x"}\n',
        b'{"protocol":"1","operation":"add_many","items":[%s]}\n' % b",".join([b'{"type":"note","title":"x"}'] * 1_001),
        b'{"protocol":"1","operation":"export","ids":"x"}\n',
        b'{"protocol":"2","operation":"get","item":"canary"}\n',
    ],
)
def test_a_bad_request_is_a_sentence(ada: CommandLineUser, line: bytes) -> None:
    """And neither the end of the agent, nor a traceback, nor a copy of what was sent."""
    told = json.loads(sent(ada.home / "agent.sock", line))
    assert told["error"]["code"] in {"invalid", "protocol"}
    assert "canary" not in told["error"]["message"]
    assert "result" in json.loads(sent(ada.home / "agent.sock", STATUS))


def test_a_change_that_was_made_meanwhile_is_not_overwritten(ada: CommandLineUser) -> None:
    """What was read is named by its proof: with the proof of before, nothing is written."""
    ada.add("Raced", "first")
    seen = ada.json("get", "Raced")
    ada.said("edit", "Raced", "password=-", stdin="second")
    request = {"protocol": "1", "operation": "replace", "id": seen["id"], "proof": seen["proof"], "item": seen["item"]}
    told = json.loads(sent(ada.home / "agent.sock", json.dumps(request).encode() + b"\n"))
    assert told["error"]["code"] == "document_conflict"
    assert ada.said("get", "Raced") == "second\n"


def test_a_change_without_a_reply_is_not_made_twice(person: CommandLineUser) -> None:
    """An agent that ends before it replies may have made the change: the command says so, and does not repeat it."""
    person.lock()
    until(lambda: not person.running, "the end of the agent")
    asked: list[bytes] = []

    def listen(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connected, _ = listener.accept()
                with connected:
                    asked.append(connected.recv(1 << 16))

    place = person.home / "agent.sock"
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        threading.Thread(target=listen, args=(listener,), daemon=True).start()
        done = person.run("add", "login", "Once", "password=-", stdin="hunter2")
        listener.shutdown(socket.SHUT_RDWR)
    place.unlink()
    assert done.returncode == 5
    assert "has ended before it replied; look whether it was done" in done.stderr
    assert len([line for line in asked if b'"add"' in line]) == 1


def test_a_kill_at_any_step_loses_nothing_that_was_acknowledged(person: CommandLineUser) -> None:
    """Items are added while the agent is killed; what a command has called added is there afterwards."""
    added: list[str] = []
    for round_ in range(6 if LONG else 2):
        pid, began = person.pid, time.monotonic()
        person.said("add", "login", f"first {round_}", "password=-", stdin=f"first {round_}")
        added.append(f"first {round_}")
        took = time.monotonic() - began
        code = f"import os, time; time.sleep({took * (0.3 + 0.35 * round_)}); os.kill({pid}, 9)"
        with subprocess.Popen([sys.executable, "-S", "-c", code]):
            for number in range(30):
                title = f"item {round_} {number}"
                if person.run("add", "login", title, "password=-", stdin=title).returncode == 0:
                    added.append(title)
                if not alive(pid):
                    break
        until(lambda pid=pid: not alive(pid), "the end of the agent")  # type: ignore[misc]
        person.unlock()
    held = {one["title"] for one in person.json("list")}
    assert set(added) <= held
    assert person.said("get", added[-1]).strip() == added[-1]


@pytest.mark.production_hashing  # agents that are true starts hash so
def test_the_agent_leaves_no_dump_and_has_nothing_of_the_caller(person: CommandLineUser) -> None:
    """No core dump, no terminal, a folder of its own, and of the environment only what it needs."""
    person.lock()
    variables = {"CANARY_SECRET": "in the environment", **TRUE_AGENT}
    person.said("unlock", "--password", "-", stdin=f"{PASSWORD}\n", **variables)
    process = Path(f"/proc/{person.pid}")
    assert b"strongroom.agent" in (process / "cmdline").read_bytes()  # a true start
    assert "Max core file size        0                    0" in (process / "limits").read_text()
    assert b"in the environment" not in (process / "environ").read_bytes()
    assert (process / "cwd").readlink() == Path("/")
    assert {(process / "fd" / number).readlink() for number in "012"} == {Path("/dev/null")}


def test_a_module_in_the_current_folder_is_not_run(stranger: CommandLineUser, tmp_path: Path) -> None:
    """The agent is started with no regard to what lies in the folder of the command."""
    for name in ("json.py", "socket.py", "strongroom.py"):
        (tmp_path / name).write_text("import os; os.mkdir('planted')")
    words = ("login", "a@example.com", "--server", "http://127.0.0.1:9", "--password", "-")
    stranger.run(*words, stdin="x\n", **TRUE_AGENT)
    assert (stranger.home / "agent.sock").exists()
    assert not (tmp_path / "planted").exists()
    assert not (stranger.home / "planted").exists()
    stranger.said("lock")


@as_root
def test_a_user_is_told_from_a_group(public: CommandLineUser) -> None:
    """Another user in the owner's group gets nothing, and the owner in another group does."""
    place = public.home / "agent.sock"
    public.home.chmod(0o755)
    place.chmod(0o666)
    with as_nobody(lambda: asks(place), group=os.getegid()) as told:
        assert told() in {"b''", "ConnectionResetError", "BrokenPipeError"}
    with as_nobody(lambda: asks(place), user=os.geteuid()) as told:
        assert '"result"' in told()
    public.home.chmod(0o700)
    assert f"refused a connection of the user {NOBODY}" in (public.home / "agent.log").read_text()
