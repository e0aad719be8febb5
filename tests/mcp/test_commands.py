"""What runs is the program that was checked, and nothing that it has started outlives it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from strongroom.mcp import commands
from strongroom.mcp.policy import Command, Policy
from strongroom.mcp.program import Program
from strongroom.mcp.tools import Refused, Tools
from strongroom.mcp.use_log import UseLog
from strongroom.programs import supervisor
from strongroom.programs.masking import Masker
from strongroom.programs.private_files import FileRefused
from tests.kit.faults.protection import AS_SOMEBODY, is_protected
from tests.kit.programs.command_line import clean_environment
from tests.kit.programs.other_user import NOBODY, as_root
from tests.kit.programs.process_state import alive
from tests.kit.waiting import PATIENCE, until

_ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process of ours")


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    """A folder that only its owner can write."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    """A program of the owner."""
    path.write_text(text)
    path.chmod(mode)
    return path


def outcome(command: Command, program: Program) -> dict[str, Any]:
    """What comes of a command whose program was checked before."""
    done = asyncio.run(commands.run(command, program, command.argv, command.environment, Masker([])))
    return {name: getattr(done, name) for name in done.__struct_fields__}


def called(private_folder: Path, command: Command) -> dict[str, Any]:
    """What the tool gives for a command of the policy."""
    log = UseLog(str(private_folder / "log"))
    try:
        told = asyncio.run(Tools(Policy(command=[command]), log).call("run_command", {"argv": command.argv}))
    finally:
        log.close()
    return dict(json.loads(told))


# What was checked


@pytest.mark.parametrize("kind", ["binary", "script"])
def test_a_link_that_is_swapped_after_the_check_changes_nothing(private_folder: Path, kind: str) -> None:
    """The program of the check runs, not the one that the link names by then."""
    if kind == "binary":
        shutil.copy("/bin/echo", private_folder / "good")
    else:
        script(private_folder / "good", '#!/bin/sh\necho "$@"\n')
    script(private_folder / "evil", "#!/bin/sh\necho swapped\n")
    link = private_folder / "program"
    link.symlink_to("good")
    command = Command(argv=[str(link), "checked"])
    with Program(str(link)) as program:
        link.unlink()
        link.symlink_to("evil")
        assert outcome(command, program)["output"] == "checked\n"
    with Program(str(link)) as program:
        assert outcome(command, program)["output"] == "swapped\n"


@_ON_LINUX
def test_a_file_that_is_replaced_after_the_check_does_not_run(private_folder: Path) -> None:
    """A binary is executed by the descriptor that was checked."""
    shutil.copy("/bin/echo", private_folder / "program")
    command = Command(argv=[str(private_folder / "program"), "checked"])
    with Program(str(private_folder / "program")) as program:
        script(private_folder / "other", "#!/bin/sh\necho replaced\n").replace(private_folder / "program")
        assert outcome(command, program)["output"] == "checked\n"


def test_a_program_keeps_its_name_and_gets_no_descriptor(private_folder: Path) -> None:
    """It sees the words of the policy as its arguments, and no open file but its three streams."""
    (private_folder / "link").symlink_to("/bin/sh")
    told = called(private_folder, Command(argv=[str(private_folder / "link"), "-c", "echo $0; ls /proc/$$/fd"]))[
        "output"
    ].split()
    assert told == [str(private_folder / "link"), "0", "1", "2"]


@pytest.mark.parametrize("where", ["a", "a/b", "a/b/program"])
def test_a_place_that_others_can_write_is_refused(private_folder: Path, where: str) -> None:
    """Whichever folder of the path it is: who can write it can put another program there."""
    (private_folder / "a" / "b").mkdir(parents=True)
    program = script(private_folder / "a" / "b" / "program", "#!/bin/sh\necho ran\n")
    command = Command(argv=[str(program)])
    assert called(private_folder, command)["output"] == "ran\n"
    (private_folder / where).chmod(0o777)
    with pytest.raises(Refused, match=f"Others can write {private_folder / where}"):
        called(private_folder, command)
    (private_folder / where).chmod(0o775)
    with pytest.raises(Refused, match="chmod go-w"):
        called(private_folder, command)


@pytest.mark.parametrize("link", ["relative", "absolute", "upwards"])
def test_folders_behind_a_link_are_checked_too(private_folder: Path, link: str) -> None:
    """Those that lead to the link, and those that it leads to."""
    (private_folder / "far" / "inner").mkdir(parents=True)
    (private_folder / "near").mkdir()
    program = script(private_folder / "far" / "inner" / "program", "#!/bin/sh\necho ran\n")
    up = ".././near/../far/inner/program"
    targets = {"relative": "../far/inner/program", "absolute": str(program), "upwards": up}
    (private_folder / "near" / "link").symlink_to(targets[link])
    command = Command(argv=[str(private_folder / "near" / "link")])
    assert called(private_folder, command)["output"] == "ran\n"
    for folder in ("far", "near"):
        (private_folder / folder).chmod(0o777)
        with pytest.raises(Refused, match=f"Others can write {private_folder / folder}"):
            called(private_folder, command)
        (private_folder / folder).chmod(0o755)
    (private_folder / "near" / "link").unlink()
    (private_folder / "near" / "link").symlink_to("link")
    with pytest.raises(Refused, match="symbolic links"):
        called(private_folder, command)


@as_root
def test_a_link_of_another_user_is_refused(private_folder: Path) -> None:
    """In a folder like /tmp, where everybody may make links: its owner could change it at any time."""
    shared = private_folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to("/bin/true")
    command = Command(argv=[str(shared / "link")])
    assert called(private_folder, command)["exit_code"] == 0
    os.lchown(shared / "link", NOBODY, NOBODY)
    with pytest.raises(Refused, match="belongs to another user"):
        called(private_folder, command)


@as_root
@pytest.mark.parametrize("which", ["program", "folder", "sticky", "interpreter"])
def test_what_another_user_owns_is_refused(private_folder: Path, which: str) -> None:
    """A program, a folder above it, with the sticky bit too, and the interpreter that a script names."""
    folder = private_folder / "folder"
    folder.mkdir()
    folder.chmod(0o1755 if which == "sticky" else 0o755)
    shutil.copy("/bin/sh", private_folder / "interpreter")
    places = {
        "folder": folder,
        "sticky": folder,
        "interpreter": private_folder / "interpreter",
        "program": folder / "program",
    }
    script(places["program"], f"#!{private_folder}/interpreter\necho ran\n")
    command = Command(argv=[str(places["program"])])
    assert called(private_folder, command)["output"] == "ran\n"
    os.chown(places[which], NOBODY, NOBODY)
    with pytest.raises(Refused, match=f"{places[which]} belongs to another user"):
        called(private_folder, command)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("#!sh", "names no interpreter"),
        ("#!", "names no interpreter"),
        ("#!/no/such/interpreter", "No such file"),
        ("#!{home}/program", "names no interpreter"),
    ],
)
def test_a_script_without_a_safe_interpreter_is_refused(private_folder: Path, line: str, sentence: str) -> None:
    """A relative one, none, one that is not there, and a circle."""
    program = script(private_folder / "program", line.format(home=private_folder) + "\n")
    with pytest.raises(Refused, match=sentence):
        called(private_folder, Command(argv=[str(program)]))


def test_what_is_no_program_is_refused(private_folder: Path) -> None:
    """A folder, a file that cannot be executed, and text that no kernel can start."""
    (private_folder / "folder").mkdir()
    script(private_folder / "text", "echo\n", 0o644)
    for name in ("folder", "text"):
        with pytest.raises(FileRefused, match="it is no executable file"):
            Program(str(private_folder / name))
    script(private_folder / "odd", "\x00\x01")
    with pytest.raises(Refused, match="Exec format error"):
        called(private_folder, Command(argv=[str(private_folder / "odd")]))
    with pytest.raises(Refused, match="No such file"):
        called(private_folder, Command(argv=["/bin/true"], folder=str(private_folder / "none")))


# What is left behind


def left_behind(folder: Path) -> str:
    """Lines of a shell that leave a process in another session, whose parent has ended, with its id in a file."""
    note = f'echo $$ > "{folder}/part"; mv "{folder}/part" "{folder}/pid"; exec sleep 1000'
    return f"(setsid sh -c '{note}' > /dev/null 2>&1 &)\nwhile ! test -e {folder}/pid; do sleep 0.01; done\n"


@_ON_LINUX
@pytest.mark.parametrize(
    ("rest", "told"),
    [("exit 3", {"exit_code": 3}), ("kill -9 $$", {"signal": "SIGKILL"}), ("sleep 1000", {"timed_out": True})],
)
def test_no_descendant_outlives_a_command(private_folder: Path, rest: str, told: dict[str, Any]) -> None:
    """Also one that has left the session and whose parent has ended: at the end of the command or its time."""
    program = script(private_folder / "program", f"#!/bin/sh\n{left_behind(private_folder)}{rest}\n")
    done = called(private_folder, Command(argv=[str(program)], timeout=20 if "timed_out" not in told else 2))
    assert {name: done[name] for name in told} == told
    assert not alive(int((private_folder / "pid").read_text()))


@_ON_LINUX
def test_a_tree_of_descendants_is_killed(private_folder: Path) -> None:
    """Sessions within sessions, each of which ignores every signal that can be ignored."""
    (private_folder / "pids").mkdir()
    tree = script(
        private_folder / "tree",
        "#!/bin/bash\ntrap '' HUP INT TERM QUIT\ntouch pids/$$\n"
        "test $1 -gt 0 && for n in 1 2; do setsid ./tree $(($1 - 1)) > /dev/null & done\nwhile :; do sleep 1; done\n",
    )
    start = f"setsid {tree} 3 > /dev/null &\nwhile test $(ls pids | wc -l) -lt 15; do sleep 0.01; done\n"
    program = script(private_folder / "program", f"#!/bin/sh\n{start}")
    assert called(private_folder, Command(argv=[str(program)], folder=str(private_folder)))["exit_code"] == 0
    pids = [int(one.name) for one in (private_folder / "pids").iterdir()]
    assert len(pids) == 15
    assert [pid for pid in pids if alive(pid)] == []


def supervisors(server: int) -> list[int]:
    """The children of a server that run commands for it."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
                if parent == str(server) and b"supervisor.py" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
    return found


@_ON_LINUX
def test_a_command_ends_when_its_server_is_killed(private_folder: Path) -> None:
    """The supervisor, whose memory is protected, notices and ends everything: also where nobody could tell it."""
    program = script(private_folder / "program", f"#!/bin/sh\n{left_behind(private_folder)}sleep 1000\n")
    policy = private_folder / "mcp.toml"
    policy.write_text(f'[[command]]\nargv = ["{program}"]\n')
    policy.chmod(0o600)
    command = [sys.executable, "-m", "strongroom", "mcp", "--policy", str(policy), "--log", str(private_folder / "log")]
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": version},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "run_command", "arguments": {"argv": [str(program)]}}},
    ]
    with subprocess.Popen(
        command, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **AS_SOMEBODY
    ) as server:
        assert server.stdin is not None
        for message in messages:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
        until((private_folder / "pid").exists, "the command")
        assert [is_protected(pid) for pid in supervisors(server.pid)] == [True]
        server.send_signal(signal.SIGKILL)
    left = int((private_folder / "pid").read_text())
    until(lambda: not alive(left), "the end of what the command has started")


@_ON_LINUX
def test_a_secret_of_a_command_is_in_its_own_environment_only(private_folder: Path) -> None:
    """Neither in the arguments nor in the environment of the supervisor; and the program has no core dump."""
    show = "; ".join(f'tr "\\0" " " < /proc/$p/{name}' for name in ("cmdline", "environ"))
    look = f'p=$(cut -d" " -f4 /proc/$$/stat); {show}; ulimit -Hc'
    done = called(private_folder, Command(argv=["/bin/sh", "-c", look], environment={"SECRET": "canary"}))
    assert done["exit_code"] == 0
    assert "supervisor.py" in done["output"]
    assert "canary" not in done["output"].replace(look, "")
    assert done["output"].split()[-1] == "0"


@_ON_LINUX
def test_a_command_whose_caller_has_gone_before_it_began_ends() -> None:
    """The supervisor cannot answer any more: it ends the program, which would keep the output open."""
    ours, theirs = socket.socketpair()
    descriptor = os.open("/bin/sh", os.O_RDONLY)
    request = {
        "file": "/bin/sh",
        "descriptor": descriptor,
        "argv": ["/bin/sh", "-c", "sleep 1000 & sleep 1000"],
        "environment": {},
        "folder": "/",
    }
    ours.sendall(json.dumps(request).encode() + b"\n")
    ours.close()
    command = [sys.executable, "-I", "-S", supervisor.__file__]
    with subprocess.Popen(
        command, stdin=theirs.fileno(), stdout=subprocess.PIPE, pass_fds=[descriptor], start_new_session=True
    ) as started:
        theirs.close()
        os.close(descriptor)
        assert started.communicate(timeout=PATIENCE)[0] == b""
    assert started.returncode == -signal.SIGKILL
