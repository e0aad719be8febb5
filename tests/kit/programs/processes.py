"""Starts processes as `subprocess` does; those of strongroom as forks of a server that has imported it already."""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.kit.cheap_hashing import PROGRAM as CHEAP

_PROGRAMS: Final = {("-m", "strongroom"): False, CHEAP: True}  # and whether hashing is cheap in it
# Variables of a command: an agent that it starts is no fork, but a true start; or it hashes at the least cost.
TRUE_AGENT: Final = {"TRUE_AGENT": "1"}
CHEAP_AGENT: Final = {"CHEAP_AGENT": "1"}
_ROOT = Path(__file__).parents[3]
_LOST = 255 << 8  # the exit status of a process whose fork server has ended


class _ForkServer:
    """The fork server of this process, and the socket to it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.programs.fork_server", str(theirs.fileno())],
                cwd=_ROOT,
                env={name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def fork(self, wanted: dict[str, Any], streams: list[int]) -> tuple[int, int]:
        """Start a process: its id, and a pipe that gives its exit status."""
        read, write = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(wanted).encode()], [*streams, write])
                return int(self._socket.recv(64)), read
        finally:
            os.close(write)

    def close(self) -> None:
        """End the fork server; what it started goes on."""
        self._socket.close()
        self._process.wait()


@functools.cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


_START = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


class _Popen(subprocess.Popen[Any]):
    """As `subprocess.Popen`; a process of strongroom is a fork where nothing needs a true start."""

    _status: int | None = None  # the pipe of a fork

    def _execute_child(self, *given: Any, **named: Any) -> None:
        """Start the process: what CPython does with fork and exec."""
        start = _START.bind(self, *given, **named).arguments
        if (wanted := _wanted(start)) is None:
            super()._execute_child(*given, **named)  # type: ignore[misc]
            return
        pipes = [start[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        streams = [own if pipe == -1 else pipe for own, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid, self._status = _fork_server().fork(wanted, streams)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._status is None:
            ended: int | None = super()._internal_poll(*given, **named)  # type: ignore[misc]
            return ended
        if self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                self._try_wait(os.WNOHANG)
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """The id and the exit status, or (0, 0) of a process that has not ended."""
        if self._status is None:
            ended: tuple[int, int] = super()._try_wait(wait_flags)  # type: ignore[misc]
            return ended
        if wait_flags & os.WNOHANG and not _readable(self._status):
            return 0, 0
        told = os.read(self._status, 4)
        os.close(self._status)
        self._status = None
        status = int.from_bytes(told, "little") if told else _LOST
        self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.pid, status


def _readable(descriptor: int) -> bool:
    """Whether a read would not wait."""
    poll = select.poll()  # select() takes no descriptor beyond 1,023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _wanted(start: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the fork shall run, or None where a true start is needed."""
    command = [os.fspath(part) for part in start["args"]] if not isinstance(start["args"], str | bytes) else []
    program = next((one for one in _PROGRAMS if tuple(command[1 : 1 + len(one)]) == one), None)
    environment = dict(os.environ if start["env"] is None else start["env"])
    if (
        program is None
        or command[0] != sys.executable
        or start["preexec_fn"] is not None
        or start["pass_fds"]
        or start["shell"]
        or not start["restore_signals"]
        or _for_the_interpreter(environment) != _for_the_interpreter(os.environ)
        or not (start["cwd"] is None or Path(start["cwd"]).is_dir())
    ):
        return None
    return {
        "arguments": command[1 + len(program) :],
        "cheap_hashing": _PROGRAMS[program],
        "cwd": str(Path(start["cwd"] or ".").absolute()),
        "environment": environment,
        "groups": start["gids"],
        "group": start["gid"],
        "new_session": bool(start["start_new_session"]),
        "umask": _umask() if start["umask"] < 0 else start["umask"],
        "user": start["uid"],
    }


def _for_the_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the interpreter reads at its start."""
    names = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_")
    without_effect = "PYTHONUNBUFFERED"  # the streams of a fork are made after its start, with buffers
    return {name: value for name, value in environment.items() if name.startswith(names) and name != without_effect}


def _umask() -> int:
    """The umask of this process, which can only be read by setting it."""
    os.umask(current := os.umask(0o77))
    return current


def _run(command: Any, *, input: Any = None, timeout: float | None = None, check: bool = False, **more: Any) -> Any:  # noqa: A002 (the name in subprocess)
    """As `subprocess.run`."""
    if more.pop("capture_output", False):
        more |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        more["stdin"] = subprocess.PIPE
    with _Popen(command, **more) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


if TYPE_CHECKING:  # the types of the originals, with their overloads
    Popen, run = subprocess.Popen, subprocess.run
else:
    Popen, run = _Popen, _run
