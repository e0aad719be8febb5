"""What a person is asked: at the terminal itself, never from standard input unless `-` says so."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TextIO

from strongroom.cli.terminal import CommandFailed, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST: Final = 1 << 20  # characters of a secret from standard input
STDIN: Final = "-"


class NoTerminal(CommandFailed):
    """Somebody should be asked, and there is no terminal."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"There is no terminal to ask for {wanted}.", 5)


def ask(prompt: str, *, default: str = "") -> str:
    """A line that a person types; the default for an empty one."""
    with _terminal(prompt) as (inward, outward):
        outward.write(f"{plain(prompt)}{f' [{plain(default)}]' if default else ''}: ")
        outward.flush()
        line = inward.readline()
    if not line:
        raise CommandFailed("Nothing was typed; nothing was done.", 4)
    return line.rstrip("\r\n") or default


def ask_secret(prompt: str, *, again: str | None = None) -> str:
    """A secret that a person types, and does not see. With `again`, it is typed twice."""
    first = _hidden(prompt)
    if again is not None and _hidden(again) != first:
        raise CommandFailed("The two entries do not match; nothing was done.", 4)
    return first


def secret(prompt: str, source: str | None, *, again: str | None = None) -> str:
    """A secret: from the terminal, or the first line of standard input where `source` is `-`."""
    if source is None:
        return ask_secret(prompt, again=again)
    if source != STDIN:
        raise CommandFailed(
            f"{prompt}: a secret never stands on the command line; write - to give it by standard input."
        )
    line = sys.stdin.readline(_MOST)
    if not line:
        raise CommandFailed(f"{prompt}: standard input is empty; nothing was done.")
    return line.rstrip("\r\n")


def all_of_input() -> str:
    """All of standard input, as text, without a line end after it."""
    try:
        found = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise CommandFailed("Standard input is not text in UTF-8; nothing was done.") from None
    return found.removesuffix("\n").removesuffix("\r")


def show(text: str, *, end: str = "\n") -> None:
    """Show something at the terminal itself, which is in no pipe and no file."""
    with _terminal("a reader") as (_, outward):
        outward.write(text + end)
        outward.flush()


def _hidden(prompt: str) -> str:
    import termios

    with _terminal(prompt) as (inward, outward):
        before = termios.tcgetattr(inward)
        hidden = before.copy()
        hidden[3] &= ~termios.ECHO
        try:
            termios.tcsetattr(inward, termios.TCSAFLUSH, hidden)
            outward.write(f"{plain(prompt)}: ")
            outward.flush()
            line = inward.readline()
        finally:
            termios.tcsetattr(inward, termios.TCSAFLUSH, before)
            outward.write("\n")
            outward.flush()
    if not line:
        raise CommandFailed("Nothing was typed; nothing was done.", 4)
    return line.rstrip("\r\n")


@contextmanager
def _terminal(wanted: str) -> Iterator[tuple[TextIO, TextIO]]:
    """The terminal that this command runs at, for reading and writing."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise NoTerminal(wanted[:1].lower() + wanted[1:]) from None
    with (
        os.fdopen(descriptor, "r", encoding="utf-8", errors="surrogateescape", newline="\n") as inward,
        os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace") as outward,
    ):
        yield inward, outward


def has_terminal() -> bool:
    """Whether somebody can be asked."""
    with suppress(NoTerminal), _terminal(""):
        return True
    return False
