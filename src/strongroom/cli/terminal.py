"""The only file that prints."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

NOT_CONFIRMED: Final = 4


class Stop(Exception):  # noqa: N818 - ends the command, said in one sentence
    """The command cannot go on; the message is one sentence for the person at the terminal."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def say(text: str) -> None:
    """Tell."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Say what is wrong, on standard error."""
    sys.stderr.write(f"strongroom: {text}\n")
    sys.stderr.flush()


def show_json(value: Any) -> None:
    """Tell in JSON."""
    import msgspec

    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: AbstractSet[int] = frozenset()) -> None:
    """Tell in columns; those in `right` are numbers. What others chose to be called cannot move the cursor."""
    lines = [tuple(heads), *(tuple(_plain(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        cells = [f"{cell:>{widths[at]}}" if at in right else f"{cell:{widths[at]}}" for at, cell in enumerate(line)]
        say("  ".join(cells).rstrip())


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def confirm(question: str, *, yes: bool, word: str = "y") -> None:
    """Ask before something is done; go on only if the answer is the word."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Stop(f"Not done, because nobody is here to ask: {question} Say --yes to do it.", NOT_CONFIRMED)
    wanted = "y or n" if word == "y" else f"type {word} to go on"
    sys.stderr.write(f"{_plain(question)} ({wanted}) ")
    sys.stderr.flush()
    given = sys.stdin.readline().strip()
    if given != word and not (word == "y" and given.lower() in {"y", "yes"}):
        raise Stop("Nothing was done.", NOT_CONFIRMED)


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
