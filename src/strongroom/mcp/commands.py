"""Runs a command of the policy: no shell, a small environment, masked and limited output, a time limit."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from strongroom.mcp.policy import Command
from strongroom.programs.masking import Masker
from strongroom.programs.private_files import FileRefused, require_trusted, require_trusted_folder

_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a command ended, and what it wrote to its standard output and standard error, masked."""

    exit_code: int | None
    output: str
    signal: str = ""
    timed_out: bool = False
    bytes_left_out: int = 0


def require_safe_program(path: str) -> None:
    """Refuse a program that is none, or that another user could have written."""
    try:
        true = Path(path).resolve()
        found = true.stat()
    except OSError as error:
        raise FileRefused(f"The program {path} cannot be run: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise FileRefused(f"The program {path} cannot be run: it is no executable file.")
    require_trusted(true, found)
    for one in {true, Path(path)}:
        require_trusted_folder(one)


async def run(command: Command, argv: Sequence[str], environment: Mapping[str, str], masker: Masker) -> Outcome:
    """Run it to its end or its time limit. Whatever it has started in its session is ended with it."""
    output = _Output(masker, command.output_bytes)
    transport, process = await _start(command, argv, environment, output)
    timed_out = False
    try:
        try:
            async with asyncio.timeout(command.timeout):
                await process.exited.wait()
                _kill(transport)  # what it has left in the background
                await process.closed.wait()
        except TimeoutError:
            timed_out = True
    finally:
        await _end(transport, process)
    code = transport.get_returncode() or 0
    output.end()
    return Outcome(
        exit_code=None if code < 0 else code,
        signal=signal.Signals(-code).name if code < 0 else "",
        output=output.text(),
        timed_out=timed_out,
        bytes_left_out=output.left_out,
    )


async def _start(
    command: Command, argv: Sequence[str], environment: Mapping[str, str], output: _Output
) -> tuple[asyncio.SubprocessTransport, _Process]:
    """Start it in a session of its own. If nobody waits for it any more when it has started, it is killed."""
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: _Process(output),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=command.folder,
            env=_ENVIRONMENT | dict(environment),
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except OSError as error:
        raise FileRefused(f"The program {argv[0]} cannot be run: {error.strerror}.") from None
    except asyncio.CancelledError:
        await _end(*await starting)
        raise


async def _end(transport: asyncio.SubprocessTransport, process: _Process) -> None:
    """Kill it, with what it has started, and wait for its end."""
    try:
        _kill(transport)
        await process.exited.wait()  # before the transport is closed, which would take the exit code for itself
    finally:
        transport.close()


def _kill(transport: asyncio.SubprocessTransport) -> None:
    """End everything in the first group of its session."""
    with suppress(ProcessLookupError):
        os.killpg(transport.get_pid(), signal.SIGKILL)


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
