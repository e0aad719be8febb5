"""A terminal that a program runs at: keys can be pressed, its size and settings change, and what it shows is read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

PATIENCE = 60.0  # seconds; a loaded machine may need many


class Terminal:
    """A pseudo terminal with one program, whose controlling terminal it is."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.master, self._slave = pty.openpty()
        self.resize(24, 80)
        self.shown = b""
        self.process = subprocess.Popen(
            command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=env,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )

    def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def echoes(self) -> bool:
        """Whether what is typed is shown."""
        return bool(termios.tcgetattr(self._slave)[3] & termios.ECHO)

    def press(self, keys: bytes) -> None:
        """Type something."""
        os.write(self.master, keys)

    def wait_for(self, text: bytes) -> bytes:
        """Wait until a text is shown after what was waited for before; all that was shown up to its end."""
        until = time.monotonic() + PATIENCE
        while text not in self.shown:
            ready, _, _ = select.select([self.master], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{text!r} was not shown, but {self.shown!r}"
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                data = b""
            assert data, f"the program has ended, and {text!r} was not shown, but {self.shown!r}"
            self.shown += data
        before, found, self.shown = self.shown.partition(text)
        return before + found

    def rest(self) -> bytes:
        """The rest that is shown, and the end of the program."""
        os.close(self._slave)
        self._slave = -1
        while True:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                break
            if not data:
                break
            self.shown += data
        self.process.wait(PATIENCE)
        shown, self.shown = self.shown, b""
        return shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        if self._slave >= 0:
            os.close(self._slave)
