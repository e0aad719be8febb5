"""The only file that prints."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

NOT_CONFIRMED: Final = 4
NOBODY_READS: Final = 141  # as a shell says it of a program that SIGPIPE ended


def exit_codes(done: str = "done", *others: str) -> str:
    """The line of help about exit codes; `others` are those besides 0 and 2, each with its number before it."""
    refused = "2 wrong use, a bad setting, or a file or database that is refused"
    return f"Exit codes: {'; '.join([f'0 {done}', *sorted([refused, *others], key=lambda one: int(one.split()[0]))])}."


class NobodyReads(Exception):  # noqa: N818 - ends the command without a word
    """Whoever read what the command prints has gone."""


class Stop(Exception):  # noqa: N818 - ends the command, said in one sentence
    """The command cannot go on; the message is one sentence for the person at the terminal."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def open_closed_streams() -> None:
    """Put /dev/null in the place of standard streams that whoever started this has closed.

    Otherwise the next file that is opened would take their number, and what is said would be written into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, mode))


def say(text: str) -> None:
    """Tell."""
    _print(sys.stdout, text)


def complain(text: str) -> None:
    """Say what is wrong, on standard error."""
    _print(sys.stderr, f"strongroom: {text}")


def _print(stream: TextIO, text: str) -> None:
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        raise NobodyReads from None


@contextmanager
def quiet_when_nobody_reads() -> Iterator[None]:
    """End without a word, and with a code of its own, where the reader of what is printed has gone: `… | head`."""
    try:
        yield
    except NobodyReads:
        raise _silenced() from None
    finally:
        try:
            sys.stdout.flush()  # what argparse printed
        except BrokenPipeError:
            raise _silenced() from None


def _silenced() -> SystemExit:
    """Let both streams lead nowhere, for Python flushes them once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    return SystemExit(NOBODY_READS)


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


def ask_secret(prompt: str, *, twice: bool = True, piped: bool = True) -> str:
    """Ask for what must not be shown: twice at a terminal where it is new, once from a pipe if that may be.

    Empty if nobody is here to ask.
    """
    if piped and not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    if not piped and not _has_a_terminal():
        return ""
    from getpass import getpass

    first = getpass(f"{prompt}: ")
    if twice and getpass(f"{prompt} again: ") != first:
        raise Stop("The two did not match; nothing was done.")
    return first


def _has_a_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


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
