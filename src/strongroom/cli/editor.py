"""A person's editor, on a file that only they can read, in memory where there is such a place; wiped afterwards."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

_EDITORS: Final = "vi"
_MOST: Final = 64 << 20  # bytes of an edited file


def edit(text: str, suffix: str) -> str:
    """The text as the person leaves it."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITORS)
    with _folder() as folder:
        path = os.path.join(folder, f"item{suffix}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        try:
            done = subprocess.run([*command, path], check=False)  # noqa: S603 - the person's own choice
        except OSError as error:
            raise CommandFailed(
                f"The editor {command[0]} cannot be started: {error.strerror}; set EDITOR to one that you have.", 1
            ) from None
        if done.returncode:
            raise CommandFailed(f"The editor ended with the code {done.returncode}; nothing was changed.", 4)
        try:
            with open(path, "rb") as file:
                return file.read(_MOST).decode()
        except (OSError, UnicodeDecodeError):
            raise CommandFailed("What the editor left cannot be read as text; nothing was changed.", 1) from None


@contextmanager
def _folder() -> Iterator[str]:
    """A folder for one user; what is in it at the end, copies of the editor included, is overwritten and deleted."""
    with _signals_as_ends():
        folder = tempfile.mkdtemp(prefix="strongroom-", dir=_memory())  # with mode 0700
        try:
            yield folder
        finally:
            _wipe(folder)


def _memory() -> str | None:
    """A place that is in memory and not on a disk, if there is one."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):  # noqa: S108 - made with mkdtemp
        if place and os.path.isabs(place) and os.access(place, os.W_OK | os.X_OK):
            return place
    return None


def _wipe(folder: str) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            with suppress(OSError):
                _wipe_file(os.path.join(place, name))
        for name in folders:
            with suppress(OSError):
                os.rmdir(os.path.join(place, name))
    with suppress(OSError):
        os.rmdir(folder)


def _wipe_file(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "wb") as file:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                file.write(b"\0" * found.st_size)
                file.flush()
                os.fsync(descriptor)
    finally:
        os.unlink(path)


@contextmanager
def _signals_as_ends() -> Iterator[None]:
    """While a secret lies in a file, a signal that would end the command lets it clean up first."""

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the editor, which shares the terminal
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.signal(signal.SIGINT, interrupt)
