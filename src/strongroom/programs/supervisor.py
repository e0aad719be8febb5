"""Runs one program, and at its end kills whatever it has started: `python supervisor.py`, with a socket as its input.

It is a process of its own, so that on Linux every descendant of the program that loses its parent becomes a child of
this process, also one that has left the session (PR_SET_CHILD_SUBREAPER). It imports nothing of strongroom.

    from the socket   a line of JSON: "file" to execute, its "descriptor", "argv", "environment", "folder"
    to the socket     a line: 0, or the error number why the program was not started

The program ends too when the other end of the socket is closed. The exit status is that of the program.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Final

_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36  # of prctl
_TIME_TO_KILL: Final = 5.0  # seconds; a program of another user, which sudo has started, cannot be killed
_TICK: Final = 0.01


def main() -> None:
    """Run the program of the request on standard input."""
    _prepare()
    asked = os.dup(0)
    request = _request(asked)
    fcntl.fcntl(request["descriptor"], fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    process, problem = _start(request)
    os.dup2(nowhere, 1)  # its output ends with the program, and not with this process
    os.dup2(nowhere, 2)
    with suppress(OSError):  # the caller has gone already: the program is ended below
        os.write(asked, f"{problem}\n".encode())
    if not problem:
        _end_like(_end_all(process, _wait(process, asked, woken), woken))


def _prepare() -> None:
    """No dump and no debugger, because the request has secrets; and on Linux, orphans come here."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            prctl = ctypes.CDLL(None).prctl
            prctl(_SET_DUMPABLE, 0, 0, 0, 0)
            prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _request(asked: int) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        more = os.read(asked, 1 << 16)
        if not more:
            sys.exit(1)  # whoever asked has gone
        data += more
    return dict(json.loads(data))


def _start(request: dict[str, Any]) -> tuple[int, int]:
    """The process of the program, and 0; or an error number."""
    told, tell = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.setsid()
            os.chdir(request["folder"])
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.execve(request["file"], request["argv"], request["environment"])  # noqa: S606 - no shell, and that is right
        except OSError as error:
            os.write(tell, str(error.errno).encode())
        except BaseException:  # noqa: BLE001 - text that no system can take
            os.write(tell, str(errno.EINVAL).encode())
        finally:
            os._exit(127)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        return process, int(pipe.read() or 0)


def _wait(process: int, asked: int, woken: int) -> int | None:
    """Wait for the end of the program: its status, or None where whoever asked has gone first."""
    while True:
        ready, _, _ = select.select([asked, woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 16)
            status, _ = _reap(process)
            if status is not None:
                return status
        if asked in ready:
            return None


def _end_all(process: int, status: int | None, woken: int) -> int | None:
    """Kill every child until there is none: with each, its own children become ours. The status of the program."""
    with suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    deadline = time.monotonic() + _TIME_TO_KILL
    while True:
        ended, any_left = _reap(process)
        status = ended if status is None else status
        if not any_left or time.monotonic() > deadline:
            return status
        for child in _children():
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if select.select([woken], [], [], _TICK)[0]:
            os.read(woken, 1 << 16)


def _reap(process: int) -> tuple[int | None, bool]:
    """Take the ends of children: the status of the program if it is among them, and whether any child is left."""
    status = None
    while True:
        try:
            ended, told = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, False
        if not ended:
            return status, True
        if ended == process:
            status = told


def _children() -> list[int]:
    """The children of this process, as far as the system tells."""
    found, own = [], str(os.getpid()).encode()
    with suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - pathlib takes long to load
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                if file.read().rpartition(b")")[2].split()[1] == own:
                    found.append(int(name))
    return found


def _end_like(status: int | None) -> None:
    code = 1 if status is None else os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # there is no handler of SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
