"""Runs one program with an environment of its own, and masks its output.

The program stays in the process group of its caller and keeps its standard input, so keys such as Ctrl-C and Ctrl-Z
reach it as always. Where the output is a terminal, the program writes to a pseudo terminal of the same size.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from strongroom.agent.protection import LimitsOfCaller, protect_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from strongroom.programs.masking import Masker

_CHUNK: Final = 1 << 16
_BY_KERNEL: Final = 0x80  # si_code of a signal that no process has sent
_FORWARDED: Final = frozenset(
    {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP}
)
_HANDLED: Final = _FORWARDED | {signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT}
_NOT_EXECUTABLE: Final = 126  # as shells say it
_NOT_FOUND: Final = 127


class CannotStart(Exception):  # noqa: N818 - an outcome that is told to a person
    """The program cannot be started. `code` is the exit code that a shell would give."""

    def __init__(self, program: str, error: OSError) -> None:
        reason = "there is no such program" if isinstance(error, FileNotFoundError) else error.strerror
        super().__init__(f"Cannot run {program}: {reason}.")
        self.code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE


def replace_process(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become the program; this returns only by an exception."""
    try:
        with LimitsOfCaller():
            os.execve(_found(command[0], environment), list(command), dict(environment))  # noqa: S606 - no shell, and that is right
    except OSError as error:
        raise CannotStart(command[0], error) from None


def run_masked(command: Sequence[str], environment: Mapping[str, str], masker: Masker) -> int:
    """Run the program to its end, with masked output; its wait status (see os.WIFEXITED and the like)."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller may have ignored it, and then nobody could be waited for
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)  # they are waited for, and never missed
    outputs = _Outputs()
    try:
        try:
            with LimitsOfCaller():
                process = os.posix_spawn(
                    _found(command[0], environment),
                    list(command),
                    dict(environment),
                    file_actions=outputs.file_actions(),
                    setsigmask=previous,
                    setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU],  # Python, or this module, ignores them
                )
        except OSError as error:
            raise CannotStart(command[0], error) from None
        finally:
            outputs.close_childs_ends()
        relays = [threading.Thread(target=one.run, args=(masker,)) for one in outputs.relays]
        for relay in relays:
            relay.start()
        status = _wait(process, outputs)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # from now on it ends the wait for processes in the background
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    for relay in relays:
        relay.join()  # a process in the background may still write; what it writes is masked too
    outputs.restore()
    return status


def end_like(status: int) -> int:
    """The exit code for a wait status. If a signal ended the program, it ends this process too."""
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        protect_memory()  # a signal that ended the program with a dump must not make one of this process
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


def _found(program: str, environment: Mapping[str, str]) -> str:
    """The file of a program, which is looked for in the PATH of its own environment."""
    if "/" in program:
        return program
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError
    return found


def _wait(process: int, outputs: _Outputs) -> int:
    """Wait for the end of the program; meanwhile pass on signals, sizes of the terminal, and stops."""
    while True:
        number, from_terminal = _next_signal()
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
            if ended and not os.WIFSTOPPED(status):
                return status
            if ended:
                outputs.drain()
                os.kill(os.getpid(), signal.SIGSTOP)  # so that the shell sees a job that has stopped
                os.kill(process, signal.SIGCONT)
        elif number == signal.SIGWINCH:
            outputs.copy_size()
            os.kill(process, signal.SIGWINCH)
        elif number in _FORWARDED and not from_terminal:
            os.kill(process, number)


def _next_signal() -> tuple[int, bool]:
    """The next signal, and whether a key of the terminal made it: then the program has got it too."""
    if sys.platform == "darwin":  # it does not say who has sent a signal
        number = signal.sigwait(_HANDLED)
        return number, number in {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP} and os.isatty(0)
    told = signal.sigwaitinfo(_HANDLED)
    return told.si_signo, told.si_code == _BY_KERNEL


class _Relay:
    """Copies what the program writes to where this process writes, masked."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._busy = threading.Lock()

    def run(self, masker: Masker) -> None:
        """Copy until the end."""
        masked = masker.filter()
        with suppress(OSError):  # nobody reads the output any more: the program notices when it writes
            more = True
            while more:
                select.select([self._source], [], [])
                with self._busy:
                    data = self._read()
                    self.before_write()
                    _write(self._target, masked.feed(data))
                    more = bool(data)
            _write(self._target, masked.end())
        os.close(self._source)

    def drain(self) -> None:
        """Wait until what the program has written is shown."""
        with suppress(OSError):
            while True:
                with self._busy:
                    if not select.select([self._source], [], [], 0)[0]:
                        return
                time.sleep(0.001)  # let the thread that copies take its turn

    def before_write(self) -> None:
        """What is to be done before output is shown."""

    def _read(self) -> bytes:
        try:
            return os.read(self._source, _CHUNK)
        except OSError as error:
            if error.errno == errno.EIO:  # a pseudo terminal that nobody has open
                return b""
            raise


class _TerminalRelay(_Relay):
    """The same for a terminal. A program that changes the settings of its output changes those of the true one."""

    def __init__(self, master: int, target: int) -> None:
        super().__init__(master, target)
        self._master = master
        self._settings = termios.tcgetattr(master)
        self.changed = False

    def before_write(self) -> None:
        """Take over the settings that the program has made, such as no echo, but not how line ends are written."""
        with suppress(termios.error):
            settings = termios.tcgetattr(self._master)
            if settings != self._settings:
                self._settings = settings
                taken = [*settings]
                taken[1] |= termios.OPOST
                self.changed = True
                termios.tcsetattr(self._target, termios.TCSADRAIN, taken)


class _Outputs:
    """The ends of the program's standard output and standard error."""

    def __init__(self) -> None:
        self.relays: list[_Relay] = []
        self._terminal: tuple[int, int] | None = None  # the true terminal, and ours
        self._saved: list[int | list[bytes | int]] | None = None
        self._childs: dict[int, int] = {}
        together = _same(1, 2)
        for number in (1, 2):
            if number == 2 and together:
                self._childs[2] = self._childs[1]
            elif os.isatty(number):
                self._open_terminal(number)
            else:
                self._open_pipe(number)

    def file_actions(self) -> list[tuple[int, int, int]]:
        """How the program gets its ends."""
        return [(os.POSIX_SPAWN_DUP2, end, number) for number, end in self._childs.items()]

    def close_childs_ends(self) -> None:
        """Close the ends of the program in this process."""
        for end in set(self._childs.values()):
            os.close(end)

    def drain(self) -> None:
        """Wait until what the program has written is shown."""
        for relay in self.relays:
            relay.drain()

    def copy_size(self) -> None:
        """Give our terminal the size of the true one."""
        if self._terminal is not None:
            true, ours = self._terminal
            with suppress(OSError):
                size = fcntl.ioctl(true, termios.TIOCGWINSZ, bytes(struct.calcsize("HHHH")))
                fcntl.ioctl(ours, termios.TIOCSWINSZ, size)

    def restore(self) -> None:
        """Give the true terminal its settings again, if it has taken over others of the program's output."""
        changed = any(isinstance(one, _TerminalRelay) and one.changed for one in self.relays)
        if self._terminal is not None and self._saved is not None and changed:
            with suppress(OSError, termios.error):
                termios.tcsetattr(self._terminal[0], termios.TCSADRAIN, self._saved)

    def _open_terminal(self, number: int) -> None:
        if self._terminal is not None:  # standard error at another terminal than standard output
            self._open_pipe(number)
            return
        ours, childs = pty.openpty()
        settings = termios.tcgetattr(number)
        self._saved = [*settings]
        settings[1] &= ~termios.OPOST  # the true terminal does it
        termios.tcsetattr(childs, termios.TCSANOW, settings)
        signal.signal(
            signal.SIGTTOU, signal.SIG_IGN
        )  # settings may be taken over while a job of the program is in front
        self._terminal = number, ours
        self.copy_size()
        self.relays.append(_TerminalRelay(ours, number))
        self._childs[number] = childs

    def _open_pipe(self, number: int) -> None:
        ours, childs = os.pipe()
        self.relays.append(_Relay(ours, number))
        self._childs[number] = childs


def _same(one: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return False


def _write(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
