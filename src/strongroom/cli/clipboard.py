"""The clipboard: the program that this desktop has, or the terminal itself (OSC 52)."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from typing import Final, NamedTuple

from strongroom.cli import prompts
from strongroom.cli.terminal import CommandFailed

_MOST: Final = 74_994  # bytes that terminals take by OSC 52
# A process that outlives the command waits, and clears the clipboard if it still holds what was copied. It gets the
# value by a pipe: in no argument and no variable.
_CLEAR: Final = """
import subprocess, sys, time
seconds, count = float(sys.argv[1]), int(sys.argv[2])
paste, copy = sys.argv[3 : 3 + count], sys.argv[3 + count :]
value = sys.stdin.buffer.read()
time.sleep(seconds)
held = subprocess.run(paste, capture_output=True, check=False, stdin=subprocess.DEVNULL).stdout
if held == value:
    subprocess.run(copy, input=b"", check=False)
"""


class _Program(NamedTuple):
    """A program that copies its standard input, one that prints the clipboard, and where it works."""

    copy: tuple[str, ...]
    paste: tuple[str, ...]
    variable: str | None


_PROGRAMS: Final = (
    _Program(("wl-copy",), ("wl-paste", "--no-newline"), "WAYLAND_DISPLAY"),
    _Program(("xclip", "-selection", "clipboard"), ("xclip", "-selection", "clipboard", "-o"), "DISPLAY"),
    _Program(("xsel", "--clipboard", "--input"), ("xsel", "--clipboard", "--output"), "DISPLAY"),
    _Program(("pbcopy",), ("pbpaste",), None),
)


class Clipboard:
    """A clipboard: of the desktop by a program, or of the terminal."""

    def __init__(self, program: _Program | None) -> None:
        self._program = program

    @property
    def name(self) -> str:
        """What copies."""
        return "the terminal (OSC 52)" if self._program is None else self._program.copy[0]

    @property
    def clears(self) -> bool:
        """Whether it can be cleared."""
        return self._program is not None

    def copy(self, value: bytes, seconds: int) -> None:
        """Copy a value, and clear it after a time if it is still there."""
        if self._program is None:
            if len(value) > _MOST:
                raise CommandFailed("The value is too long for the clipboard of a terminal.", 1)
            prompts.show(f"\x1b]52;c;{base64.b64encode(value).decode()}\a", end="")
            return
        done = subprocess.run(  # noqa: S603
            self._program.copy, input=value, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if done.returncode:
            raise CommandFailed(f"{self.name} failed; nothing was copied.", 1)
        words = [str(seconds), str(len(self._program.paste)), *self._program.paste, *self._program.copy]
        later = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-c", _CLEAR, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        assert later.stdin is not None  # noqa: S101 - it is a pipe
        later.stdin.write(value)
        later.stdin.close()
        later.returncode = 0  # it outlives this process, and nobody waits for it


def find() -> Clipboard:
    """The clipboard of this desktop, or of the terminal; a sentence where there is none."""
    for program in _PROGRAMS:
        shown = program.variable is None or os.environ.get(program.variable)
        if shown and shutil.which(program.copy[0]) and shutil.which(program.paste[0]):
            return Clipboard(program)
    if prompts.has_terminal():
        return Clipboard(None)
    raise CommandFailed("There is no clipboard here: install wl-clipboard, xclip or xsel, or use a terminal.", 1)
