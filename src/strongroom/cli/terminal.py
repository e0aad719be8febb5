"""The only file that prints."""

from __future__ import annotations

import shutil
import sys


class Stop(Exception):  # noqa: N818 - ends the command, said in one sentence
    """The command cannot go on; the message is one sentence for the person at the terminal."""


def say(text: str) -> None:
    """Tell."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Say what is wrong, on standard error."""
    sys.stderr.write(f"strongroom: {text}\n")
    sys.stderr.flush()


def ask_secret(prompt: str, *, twice: bool = True) -> str:
    """Ask for what must not be shown: twice at a terminal where it is new, once from a pipe."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    from getpass import getpass

    first = getpass(f"{prompt}: ")
    if twice and getpass(f"{prompt} again: ") != first:
        raise Stop("The two did not match; nothing was done.")
    return first


class Bar:
    """How far something has come: one line on standard error, drawn over and over. Nothing where nobody looks on."""

    def __init__(self) -> None:
        self._drawn = ""

    def show(self, doing: str, done: int, total: int) -> None:
        """Draw it."""
        if not sys.stderr.isatty():
            return
        head, tail = f"{doing} ", f" {100 * done // max(total, 1):3} %  {done:,} of {total:,} rows"
        room = max(0, min(40, shutil.get_terminal_size().columns - len(head) - len(tail) - 1))
        full = room * done // max(total, 1)
        self._draw(head + "█" * full + "░" * (room - full) + tail)

    def clear(self) -> None:
        """Leave the line as if nothing had been there."""
        self._draw("")

    def _draw(self, line: str) -> None:
        if line != self._drawn:
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
            self._drawn = line
