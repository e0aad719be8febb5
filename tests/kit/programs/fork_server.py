"""A fork server: it has imported strongroom, and each process that a test starts is a fork of it.

To start an interpreter and import everything takes half a second of CPU; a fork takes a hundredth of that. What runs in
the fork is `python -m strongroom` with the arguments, variables, folder and streams that the test gave. An agent that
it starts is a fork of it, unless the variable TRUE_AGENT is set; with CHEAP_AGENT it hashes at the least cost. Tests
that need a true start (inherited descriptors, variables of the interpreter) get one: see processes.py.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

import httpcore2
import httpx2  # noqa: F401 (a client imports it with its first request)

import strongroom
from tests.kit import cheap_hashing

_LONGEST = 1 << 20
_DESCRIPTORS = 4  # standard input, output, error, and the pipe for the exit status


def serve(requests: socket.socket) -> dict[str, Any] | None:
    """Fork a process for each request; in the fork, return what it shall run, and None when the tests have ended."""
    running: dict[int, int] = {}
    read, write = os.pipe2(os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([requests.fileno(), read], [], [])
        if read in ready:
            os.read(read, 4096)
            _report(running)
        if requests.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(requests, _LONGEST, _DESCRIPTORS)
        if not message:
            return None
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.detach()
            _take_streams(descriptors[:3])
            return dict(json.loads(message))
        running[pid] = descriptors[3]
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        requests.sendall(str(pid).encode())


def _report(running: dict[int, int]) -> None:
    """Write the exit status of each process that has ended into its pipe."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(running[pid], status.to_bytes(4, "little"))
        os.close(running.pop(pid))


def _take_streams(descriptors: list[int]) -> None:
    """Make these the standard streams, and close everything else."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 10)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (lives as long as the process)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def run(wanted: dict[str, Any]) -> None:
    """Be the process that was asked for."""
    os.environ.clear()
    os.environ.update(wanted["environment"])
    if "COVERAGE_PROCESS_START" in os.environ:  # a measured run: see tests/coverage
        importlib.import_module("coverage").process_startup()
    os.chdir(wanted["cwd"])
    os.umask(wanted["umask"])
    for change, name in ((os.setgroups, "groups"), (os.setgid, "group"), (os.setuid, "user")):
        if wanted[name] is not None:
            change(wanted[name])
    if wanted["new_session"]:
        os.setsid()
    if wanted["cheap_hashing"]:
        cheap_hashing.install(client=False)
    vars(subprocess)["run"] = _run
    sys.argv = ["strongroom", *wanted["arguments"]]
    runpy.run_module("strongroom", run_name="__main__", alter_sys=True)


_run_truly: Any = subprocess.run


def _run(command: Any, **options: Any) -> Any:
    """As `subprocess.run`; an agent is a fork of this process, and its output comes as that of standard error."""
    if command[-2:] != ["-m", "strongroom.agent"] or "TRUE_AGENT" in os.environ:
        return _run_truly(command, **options)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        cheap = "CHEAP_AGENT" in os.environ
        _take_streams([os.open(os.devnull, os.O_RDONLY), write, write])
        os.environ.clear()
        os.environ.update(options["env"])
        os.chdir(options["cwd"])
        if cheap:
            cheap_hashing.install()
        exit_without_freeing_memory(importlib.import_module("strongroom.agent.__main__").main())
        os._exit(1)
    os.close(write)
    with os.fdopen(read, errors="replace") as told:
        said = told.read()
    _, status = os.waitpid(pid, 0)
    return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status), "", said)


def exit_without_freeing_memory(code: object) -> None:
    """End the process as `sys.exit` does, but leave the memory to the kernel: to free it object by object takes 30 ms.

    What cannot be written at the end is the interpreter's matter, which has an exit code of its own for that.
    """
    if not isinstance(code, int | None):
        return
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def _preload() -> None:
    """Import what processes of strongroom import; of MCP nothing.

    A process of another user may not be able to read the files of Python: it finds nothing that is not here.
    """
    late = (
        "encodings.ascii",
        "encodings.idna",
        "encodings.utf_8_sig",
        "glob",
        "grp",
        "importlib.readers",
        "pwd",
        "resource",
        "shlex",
    )
    measuring = ("coverage",) if "MEASURED_FOLDER" in os.environ else ()
    for one in ("asyncpg", "httptools", "uvloop", *late, *measuring):
        importlib.import_module(one)
    for module in pkgutil.walk_packages(strongroom.__path__, "strongroom."):
        if not module.name.startswith(("strongroom.__main__", "strongroom.mcp")):
            importlib.import_module(module.name)
    strongroom.store.migrations.load()
    httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)  # as in tests/conftest.py
    httpcore2.default_ssl_context()
    gc.freeze()


if __name__ == "__main__":
    _preload()
    to_run = serve(socket.socket(fileno=int(sys.argv[1])))
    if to_run is not None:
        try:
            run(to_run)
        except SystemExit as ended:
            exit_without_freeing_memory(ended.code)
            raise
