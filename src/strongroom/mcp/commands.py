"""Runs a command of the policy: no shell, a small environment, masked and limited output, a time limit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from strongroom.mcp.policy import Command
from strongroom.mcp.program import Program
from strongroom.programs import supervisor
from strongroom.programs.masking import Masker
from strongroom.programs.private_files import FileRefused

_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_TIME_TO_END: Final = 10.0  # seconds for a supervisor to kill what there is; it takes half of that itself


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a command ended, and what it wrote to its standard output and standard error, masked."""

    exit_code: int | None
    output: str
    signal: str = ""
    timed_out: bool = False
    bytes_left_out: int = 0


async def run(
    command: Command, program: Program, argv: Sequence[str], environment: Mapping[str, str], masker: Masker
) -> Outcome:
    """Run it to its end or its time limit. Whatever it has started is ended with it."""
    output = _Output(masker, command.output_bytes)
    process = _Process(output)
    ours, theirs = socket.socketpair()
    ours.settimeout(0)
    starting = asyncio.ensure_future(_start(process, theirs, program.descriptor))
    timed_out = False
    try:
        await asyncio.shield(starting)
        await _ask(ours, command, program, argv, environment)
        try:
            async with asyncio.timeout(command.timeout):
                await process.exited.wait()
                await process.closed.wait()
        except TimeoutError:
            timed_out = True
    finally:
        ours.close()  # and the supervisor ends everything
        code = await asyncio.shield(asyncio.ensure_future(_end(starting, process)))
    output.end()
    return Outcome(
        exit_code=None if code < 0 else code,
        signal=signal.Signals(-code).name if code < 0 else "",
        output=output.text(),
        timed_out=timed_out,
        bytes_left_out=output.left_out,
    )


async def _start(process: _Process, theirs: socket.socket, descriptor: int) -> asyncio.SubprocessTransport:
    """Start a supervisor. It gets the program's descriptor, and by its socket what to do; no secret yet."""
    with theirs:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: process,
            *(sys.executable, "-I", "-S", supervisor.__file__),
            stdin=theirs.fileno(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=_ENVIRONMENT,
            pass_fds=[descriptor],
            start_new_session=True,
        )
    return transport


async def _ask(
    ours: socket.socket, command: Command, program: Program, argv: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Let the supervisor start the program."""
    request = {
        "file": program.file,
        "descriptor": program.descriptor,
        "argv": list(argv),
        "environment": _ENVIRONMENT | dict(environment),
        "folder": command.folder,
    }
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(ours, json.dumps(request).encode() + b"\n")
        told = await loop.sock_recv(ours, 100)
    except OSError:
        told = b""
    if told != b"0\n":
        reason = os.strerror(int(told)) if told else "its supervisor has ended"
        raise FileRefused(f"The program {argv[0]} cannot be run: {reason}.")


async def _end(starting: asyncio.Future[asyncio.SubprocessTransport], process: _Process) -> int:
    """Wait for the end of the supervisor, whose socket is closed; its exit code."""
    transport = await starting
    try:
        async with asyncio.timeout(_TIME_TO_END):
            await process.exited.wait()
    except TimeoutError:
        transport.kill()
        await process.exited.wait()
    transport.close()
    return transport.get_returncode() or 0


class _Process(asyncio.SubprocessProtocol):
    """A process: its output is taken, and its end and the end of its output are told apart."""

    def __init__(self, output: _Output) -> None:
        self._output = output
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - there is one pipe
        """Take output."""
        self._output.take(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """No more output comes."""
        self.closed.set()

    def process_exited(self) -> None:
        """It has ended."""
        self.exited.set()


class _Output:
    """The output so far: masked first, and then cut, so that no secret is cut in two."""

    def __init__(self, masker: Masker, most: int) -> None:
        self._filter = masker.filter()
        self._most = most
        self._shown = bytearray()
        self.left_out = 0

    def take(self, data: bytes) -> None:
        """Add output."""
        self._add(self._filter.feed(data))

    def end(self) -> None:
        """Add what was held back."""
        self._add(self._filter.end())

    def text(self) -> str:
        """The output as text."""
        return self._shown.decode("utf-8", "replace")

    def _add(self, data: bytes) -> None:
        room = self._most - len(self._shown)
        self._shown += data[:room]
        self.left_out += max(0, len(data) - room)
